"""Numbers that all shared engines have in common."""

__all__ = ["CODE_BITS", "LEVELS"]

CODE_BITS = 8
"""Bits of an activation code and of a weight."""
LEVELS = 6
"""Loops of a layer; level 0 is the innermost."""
