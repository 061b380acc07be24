"""Passes over images: borders, pads, resizing, transposed convolution.

They end as windows and moves of codes. Linear algebra is in ``forms``.
"""
