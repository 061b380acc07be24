"""nnef-hw: from a trained neural network to a bit-exact FPGA accelerator with open tools."""

__version__ = "0.1.0"
