"""Components with multipliers: arrays, constant matrices, requantizers.

Multipliers choose DSP blocks or LUTs here. ``parts.arrays`` has their facts.
"""
