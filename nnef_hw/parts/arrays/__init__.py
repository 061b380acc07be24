"""Parts with multipliers: arrays, constant matrices, requantizers.

Their components are in ``rtl.arrays``. The shared engine has a room of its own.
"""
