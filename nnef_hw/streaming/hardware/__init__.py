"""Streaming plans as Amaranth components.

Only these modules of ``streaming`` import Amaranth. They connect parts and decide nothing.
"""
