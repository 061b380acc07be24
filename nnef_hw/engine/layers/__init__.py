"""Layers of the shared engine: loops, memory contents and cycles of each kind.

A further kind of layer is a file here. Where tensors lie and when passes run is decided elsewhere.
"""
