"""Passes that merge operators into the one before or after.

Scales, pads, activations and averages cost no hardware behind these. Nothing here adds a node.
"""
