"""TensorFlow Lite operators to nodes of the Graph: the machinery of all.

The order of axes, conversions of codes, and states are here. Operators themselves are in
``operators``.
"""
