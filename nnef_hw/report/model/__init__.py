"""Reports and results as values: frozen dataclasses, their JSON, and its schema.

Nothing here computes a figure or shows one.
"""
