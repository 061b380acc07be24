"""Stream layers with weights: convolutions and linear layers on arrays.

One file for each array that may compute them. What all layers have in common is in ``layers``.
"""
