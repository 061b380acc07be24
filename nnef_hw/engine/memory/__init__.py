"""Places of the engine's tensors and programs, on the chip and beside it.

Lifetimes, addresses, flash and SDRAM are here. Cycles are counted in ``timing``.
"""
