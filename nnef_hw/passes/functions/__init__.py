"""Passes over functions of activations: tables, divisions, selections.

Whatever depends on one number becomes one operator. Products of two tensors are in ``forms``.
"""
