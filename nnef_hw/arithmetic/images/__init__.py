"""Images as NumPy arrays [N, C, ...]: windows over them, borders, elements that change places.

Real numbers and codes alike. Nothing rounds here, and nothing knows graphs.
"""
