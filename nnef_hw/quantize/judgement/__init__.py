"""Losses of a quantized network, why it loses, and which scheme loses less.

Warnings are made here, with figures and the best remedy that was tried. Formats are chosen one
floor up.
"""
