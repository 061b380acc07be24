"""NNEF as a language: characters to a syntax tree with places.

Scanner, grammar, recovery from mistakes, types and literals are here. What an operator means stands
in ``evaluation``.
"""
