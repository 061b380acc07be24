"""FPGA families: a class and an object of each, with everything that is known of it."""

from nnef_hw.hardware.families.amd7 import AMD7
from nnef_hw.hardware.families.arora import ARORA
from nnef_hw.hardware.families.ecp5 import ECP5
from nnef_hw.hardware.families.family import Family, Pin
from nnef_hw.hardware.families.gowin import GOWIN
from nnef_hw.hardware.families.ice40 import ICE40

__all__ = [
    "AMD7",
    "ARORA",
    "ECP5",
    "FAMILIES",
    "GOWIN",
    "ICE40",
    "Family",
    "Pin",
]

FAMILIES: tuple[Family, ...] = (ICE40, ECP5, GOWIN, ARORA, AMD7)
