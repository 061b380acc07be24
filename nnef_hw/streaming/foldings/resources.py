"""How much of a device's logic a design may fill."""

from __future__ import annotations

from nnef_hw.hardware.devices import Device

__all__ = ["LUT_SHARE", "usable_luts"]

LUT_SHARE = 0.95
"""Share of the device's LUTs that placement can be trusted to use."""


def usable_luts(device: Device, used: int) -> int:
    """Return how many LUTs a design may fill: a share that reaches the clock, if it keeps to it."""
    comfortable = int(device.lut * device.stream_share)
    return comfortable if used <= comfortable else int(device.lut * LUT_SHARE)
