"""Passes over loops: unrolling, and bodies joined with the graph around them.

A loop of several steps keeps one body. Time as an axis of windows is in ``time``.
"""
