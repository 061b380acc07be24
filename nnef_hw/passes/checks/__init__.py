"""Reasons why a simplified graph has no hardware.

Each reason has a place, a cause and a remedy. Nothing here changes a graph.
"""
