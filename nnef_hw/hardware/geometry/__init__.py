"""Geometry of windows and of memories made of block RAM primitives.

Both are arithmetic on shapes alone. No module here knows a device by name.
"""
