"""Hardware between the pins of a board and a design.

Host link, clock, memory pins and counters are here. A board itself is data, one file in ``boards``.
"""
