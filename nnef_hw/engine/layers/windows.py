"""Layers that read windows of an image."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from nnef_hw.engine.layers.formats import Places, Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.nest import Nest, Pass
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.engine.program import PASS_LEVEL

__all__ = ["WindowLayer"]


@dataclass(frozen=True, kw_only=True)
class WindowLayer(EngineLayer):
    """A layer with a window over its operand; what is here goes channel block by channel block.

    Every pass reads the window of one pixel and one block of channels, tap after tap, and gives the
    codes of that block: of the array it is the first row that works.

    Parameters
    ----------
    window
        The window; its channel blocks are not looked at.
    """

    window: Window

    @property
    def kernel(self) -> tuple[int, int]:
        return self.window.kernel

    @property
    @abstractmethod
    def is_uniform(self) -> bool:
        """Whether all channels have the same bias and factor."""

    @property
    @abstractmethod
    def weight_strides(self) -> tuple[int, int, int]:
        """Words of weights from a tap to the next, from a row of taps, from a block of channels."""

    def nest(self, shape: Shape, places: Places) -> Nest:
        blocks, target_blocks = self.source.blocks(shape.lanes), self.target.blocks(shape.lanes)
        rows, columns = self.window.kernel
        down, across = self.window.stride
        row_step, column_step = self.window.dilation
        line = self.source.width * blocks
        top, left = self.window.padding[0][0], self.window.padding[1][0]
        tap_step, row_of_taps, block_step = self.weight_strides
        return Nest(
            counts=(columns, rows, 1, blocks, self.target.width, self.target.height),
            strides={
                "read": (column_step * blocks, row_step * line, 0, 1, across * blocks, down * line),
                "y": (0, row_step, 0, 0, 0, down),
                "x": (column_step, 0, 0, 0, across, 0),
                "weight": (tap_step, row_of_taps, 0, block_step, 0, 0),
                "constant": (0, 0, 0, 0 if self.is_uniform else shape.lanes, 0, 0),
                "write": (0, 0, 0, 1, target_blocks, self.target.width * target_blocks),
            },
            starts={
                "read": places.read - top * line - left * blocks, "y": -top, "x": -left,
                "weight": places.weight, "constant": places.constant, "write": places.write,
            },
        )  # fmt: skip

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        step = Pass(self.window.taps, shape.lanes)
        return [step], self.target.words(shape.lanes)

    def part_level(self, shape: Shape) -> int:
        del shape
        return PASS_LEVEL
