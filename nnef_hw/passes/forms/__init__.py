"""Passes that write operators in the few canonical forms.

Matrix products, reductions, normalizations, slices and axes end here as windows and linear layers.
Functions and images have rooms of their own.
"""
