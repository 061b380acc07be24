"""Cameras with a parallel port: their registers and timing are data."""

from nnef_hw.boards.interfaces.cameras.camera import Camera, Mode
from nnef_hw.boards.interfaces.cameras.hm01b0 import HM01B0
from nnef_hw.boards.interfaces.cameras.ov2640 import OV2640
from nnef_hw.boards.interfaces.cameras.ov7670 import OV7670

__all__ = ["CAMERAS", "Camera", "Mode"]

CAMERAS: tuple[Camera, ...] = (HM01B0, OV7670, OV2640)
"""Every camera whose registers are known."""
