"""What a quantized network loses, why, and which scheme loses less.

Warnings are made here, with figures and the best remedy that was tried. Formats are chosen one
floor up.
"""
