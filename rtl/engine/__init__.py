"""The shared engine's components, each usable alone.

Sequencer, memories, array, requantizer and borders are here. ``parts.engine`` has their facts.
"""
