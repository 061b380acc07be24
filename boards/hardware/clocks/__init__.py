"""Between the oscillator's clock domain and the accelerator's, which a PLL makes."""

__all__ = ["BOARD_DOMAIN"]

BOARD_DOMAIN = "board"
"""Clock domain of the oscillator, where the accelerator has another clock."""
