"""Integer arithmetic of TensorFlow Lite's reference kernels.

Its two roundings, its division and its functions of 16-bit codes are defined here, bit for bit.
Graphs and tables of operators stand elsewhere.
"""
