"""What stands between the readers of memories and the pins, in Verilog."""

from pathlib import Path

__all__ = ["PADS", "pads_verilog"]

PADS = Path(__file__).with_name("pads.v")
"""Modules whose names begin with ``nnef_hw_``, behavioural in simulation."""


def pads_verilog():
    """Return the modules."""
    return PADS.read_text()
