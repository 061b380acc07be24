"""Cycles of the engine: loads, passes, sends, and words from beside the chip.

What stays on the chip is chosen by these cycles. They equal those of the hardware.
"""
