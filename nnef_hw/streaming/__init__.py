"""The streaming architecture: hardware of its own for every layer, joined by streams.

A fixed graph becomes layers, foldings are searched, beat times give the cycles. See
docs/scheduling.md; Amaranth is imported in ``hardware`` alone.
"""
