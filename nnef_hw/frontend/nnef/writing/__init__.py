"""Graphs to NNEF: conform, expand, print, hash, write.

Equal graphs give equal files. Reading stands in the rooms beside this one.
"""
