"""Places for all cells in logic tiles, by ourselves: for designs whose wires nextpnr crowds.

Only families that know their tiles (``tiles.py``) use it. Except for these it needs scipy.
"""
