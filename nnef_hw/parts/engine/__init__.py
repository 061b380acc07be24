"""Parts of the shared engine: its program, pipeline and sizes.

Their components are in ``rtl.engine``. The network on an engine is planned in ``nnef_hw.engine``.
"""
