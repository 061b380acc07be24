"""The engine for a target: the size of its array, its plan, its resources.

Sizes are tried, and the fastest that fits is taken. What a size computes stands in ``program``.
"""
