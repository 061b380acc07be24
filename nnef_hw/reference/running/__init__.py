"""Ground of both references: windows, loops, sequences, moves.

What is here is the same for real numbers and codes. No operator is computed here.
"""
