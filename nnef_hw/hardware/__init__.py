"""Facts of hardware that need no Amaranth: windows, block RAM, FPGAs, memory chips.

Schedules and components read the same facts. How a component is built or planned stands elsewhere.
"""
