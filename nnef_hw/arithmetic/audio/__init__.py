"""Integer arithmetic of audio front ends: spectra, filter banks, logarithms, features.

Everything from samples of 16 bits to features is defined here to the bit. Graphs, formats of
activations and hardware stand elsewhere.
"""
