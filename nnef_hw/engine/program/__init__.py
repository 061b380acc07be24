"""The engine's program: instructions, their image, and the design that runs it.

The widths of an engine follow from its program. The size of its array is chosen in ``planning``.
"""
