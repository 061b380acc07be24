"""Rules of a valid NNEF document that hold whatever its values are.

Declarations, types and names are checked here, each violation with its place. No value is computed.
"""
