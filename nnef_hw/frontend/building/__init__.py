"""Ground of all front ends: nodes are made here, files are read here.

Every format makes its graph with the same builder, by the same rules of shapes. No module here
knows a format.
"""
