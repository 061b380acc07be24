"""Evaluation of NNEF: statements to nodes, expressions to values.

Operators, dialects, variables and quantization files are applied here. Shapes and attributes are
completed by ``frontend.shapes``.
"""
