"""Parts that reduce or rearrange images: pools, pads, transposition, resampling.

Their components are in ``rtl.images``. Windows come from ``windows``.
"""
