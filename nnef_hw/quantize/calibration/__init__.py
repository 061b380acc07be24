"""Ranges, rounding and equalization of a network on samples.

A scheme says what is wanted; observers say what was seen. Formats are chosen one floor up.
"""
