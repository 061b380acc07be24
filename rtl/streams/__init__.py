"""Components that pass streams on: queues, forks, widths, states.

Nothing is computed in them. ``parts.streams`` has their facts.
"""
