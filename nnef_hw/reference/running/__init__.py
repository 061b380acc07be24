"""Ground of both references: order of nodes, loops, sequences, batches.

What is here is the same for real numbers and codes. No operator is computed here.
"""
