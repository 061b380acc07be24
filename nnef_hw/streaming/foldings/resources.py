"""Shares of a device's logic that a design may fill."""

from __future__ import annotations

from nnef_hw.hardware.devices import LUT_SHARE, Device

__all__ = ["usable_luts"]


def usable_luts(device: Device, used: int) -> int:
    """Return how many LUTs a design may fill: a share that reaches the clock, if it keeps to it."""
    comfortable = int(device.lut * device.stream_share)
    return comfortable if used <= comfortable else int(device.lut * LUT_SHARE)
