"""Integer arithmetic: rounding, requantization, tables, products by adders.

The definitions here are the only ones; reference, schedule and hardware read them. Nothing here
knows of graphs, devices or files.
"""
