"""Sample files: inputs with labels, their split, and scores on them.

Samples are read, checked against a graph, and split for calibration. Quantization and simulation
take them from here.
"""
