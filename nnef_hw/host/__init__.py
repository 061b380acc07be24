"""The host's side of a board: packets, manifest, streams, serial port.

Everything here runs with NumPy and pyserial alone, so that a host needs no compiler. What simulates
or builds a design stands in ``run`` and ``flow``.
"""
