"""A network on the shared engine: its layers in order, between inputs and outputs.

How a graph becomes these, and beats of an input become words. Layers themselves are in ``layers``.
"""
