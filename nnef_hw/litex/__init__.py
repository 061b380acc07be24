"""The accelerator in LiteX: a build of plain IP as a module of a system on chip.

It needs LiteX, which this package does not bring.
"""

from nnef_hw.litex.accelerator import Accelerator

__all__ = ["Accelerator"]
