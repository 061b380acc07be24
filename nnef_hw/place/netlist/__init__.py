"""Netlists in the JSON of yosys and nextpnr: their bits and places, and repairs of an ECP5's.

Nothing here places or routes.
"""
