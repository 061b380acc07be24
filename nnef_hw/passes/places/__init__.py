"""Passes of integer inputs: places in tables, in caches, and behind which a mask hides.

What follows from an integer input alone is a table with a row for each integer; nothing that is
computed of other inputs is here.
"""
