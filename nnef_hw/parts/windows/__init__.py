"""Parts that turn streams into windows: line buffers, and cycles of passes.

Their components are in ``rtl.windows``. What sums over windows is in ``arrays``.
"""
