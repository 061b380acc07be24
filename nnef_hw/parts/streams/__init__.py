"""Parts that pass streams on: queues, forks, widths, states.

Nothing is computed in them. Their components are in ``rtl.streams``.
"""
