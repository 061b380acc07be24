"""Engine plans as Amaranth components.

Only this module of ``engine`` imports Amaranth. It connects parts and decides nothing.
"""
