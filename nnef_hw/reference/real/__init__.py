"""The float reference: each operator in vectorised NumPy float64.

Functions are registered by operator. ``reference.float`` runs graphs with them; integers are in
``reference.fixed``.
"""
