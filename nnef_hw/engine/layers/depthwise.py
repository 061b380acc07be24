"""Layers with weights that compute channel by channel: depthwise convolutions, some averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray, accumulator_range
from nnef_hw.engine.layers.formats import Places, Shape
from nnef_hw.engine.layers.nest import Nest, Pass, grouped, issue_cycles
from nnef_hw.engine.layers.windows import WindowLayer
from nnef_hw.parts.engine.program import PASS_LEVEL

__all__ = ["DepthwiseLayer"]


class _Slide(NamedTuple):
    """A window that slides along one axis while its sums move from row to row.

    A long window takes several turns: each has every so manieth result, so that as few windows
    overlap as there are rows.

    Attributes
    ----------
    axis
        0 to slide down, 1 to slide to the right.
    rows
        Rows that are at work: windows that overlap.
    stride
        Pixels from one window of a turn to the next.
    words
        Words of a step: those between one such window and the next.
    turns
        How often the window slides along a line; more than once if there is only one.
    """

    axis: int
    rows: int
    stride: int
    words: int
    turns: int


@dataclass(frozen=True, eq=False, kw_only=True)
class DepthwiseLayer(WindowLayer):
    """A filter of its own for every channel.

    Where windows overlap along an axis, and their taps are neighbours, the image is read once for
    all of them: row r of the array works at the window that is r steps from its end, and with each
    step the sums move to the row before. Otherwise the first row works alone. Of signals, long
    windows slide several times.

    Parameters
    ----------
    filters
        Weights [channels, taps].
    biases
        One per channel, for codes as the engine has them.
    is_pool
        Whether the weights are no parameters of the model, and all the same.
    """

    label = "depthwise"

    filters: NDArray[np.int64]
    biases: IntArray
    is_pool: bool = False

    @property
    def slides(self) -> bool:
        """Whether windows of the layer may slide."""
        return True

    @property
    def is_uniform(self) -> bool:
        return self.is_pool and len(self.scale.mult) == 1

    @property
    def weight_strides(self) -> tuple[int, int, int]:
        columns = self.window.kernel[1]
        return (0, 0, 0) if self.is_pool else (1, columns, self.window.taps)

    @property
    def weight_bytes(self) -> int:
        return 0 if self.is_pool else int(self.filters.size)

    @property
    def macs(self) -> int:
        return 0 if self.is_pool else self.target.pixels * int(self.filters.size)

    @property
    def parameters(self) -> int:
        return 0 if self.is_pool else self.weight_bytes + len(self.biases)

    @property
    def largest_sum(self) -> tuple[int, int]:
        return accumulator_range(self.filters, self.biases, 0, self.pad_high)

    def _slides(self, shape: Shape) -> list[_Slide]:
        """List the ways to slide."""
        ways: list[_Slide] = []
        if not self.slides:
            return ways
        results = (self.target.height, self.target.width)
        for axis in (0, 1):
            size, count = self.window.kernel[axis], results[axis]
            if self.window.dilation[axis] != 1:
                continue
            # The turns have the loop of the lines.
            most = count if results[1 - axis] == 1 else 1
            for turns in range(1, most + 1):
                stride = turns * self.window.stride[axis]
                rows = -(-size // stride)
                if count % turns == 0 and 1 < rows <= min(shape.sliding, shape.rows):
                    words = stride * self.window.kernel[1 - axis]
                    ways.append(_Slide(axis, rows, stride, words, turns))
        return ways

    def _slide(self, shape: Shape) -> _Slide | None:
        """Return the fastest way, if one is faster than none."""

        def cycles(passes: list[Pass], repeats: int) -> int:
            return issue_cycles(grouped(passes, shape.results), repeats)

        def sliding(slide: _Slide) -> int:
            return cycles(*self._sliding_passes(slide, shape))

        best = min(self._slides(shape), key=sliding, default=None)
        plain = cycles(*super().passes(shape))
        return best if best is not None and sliding(best) < plain else None

    def sliding_rows(self, shape: Shape) -> int:
        slide = self._slide(shape)
        return 1 if slide is None else slide.rows

    def _sliding_passes(self, slide: _Slide, shape: Shape) -> tuple[list[Pass], int]:
        steps = (self.target.height, self.target.width)
        first = Pass(slide.rows * slide.words, shape.lanes)
        others = [Pass(slide.words, shape.lanes)] * (steps[slide.axis] // slide.turns - 1)
        repeats = slide.turns * steps[1 - slide.axis] * self.target.blocks(shape.lanes)
        return [first, *others], repeats

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        slide = self._slide(shape)
        return super().passes(shape) if slide is None else self._sliding_passes(slide, shape)

    def nest(self, shape: Shape, places: Places) -> Nest:
        plain = super().nest(shape, places)
        slide = self._slide(shape)
        if slide is None:
            return plain
        # Loops: taps across, pixels of a step, steps, channel blocks, lines or turns.
        along, across = slide.axis, 1 - slide.axis
        blocks = self.source.blocks(shape.lanes)
        target_blocks = self.target.blocks(shape.lanes)
        pixel = (self.source.width * blocks, blocks)
        result = (self.target.width * target_blocks, target_blocks)
        taps, stride = self.window.kernel[across], self.window.stride
        tap, turns = self.window.dilation[across], slide.turns
        results = (self.target.height, self.target.width)
        steps = results[along] // turns + slide.rows - 1
        # The last loop goes from line to line, or from turn to turn.
        last = along if turns > 1 else across
        place = {
            along: (0, 1, 0, slide.stride, 0, stride[along] if turns > 1 else 0),
            across: (tap, 0, 0, 0, 0, 0 if turns > 1 else stride[across]),
        }
        reads = (
            tap * pixel[across], pixel[along], 0, slide.stride * pixel[along], 1,
            stride[last] * pixel[last],
        )  # fmt: skip
        write = (0, 0, 0, turns * result[along], 1, result[last])
        # The sums of the first windows end with the step `rows - 1`.
        first = plain.starts["write"] - (slide.rows - 1) * turns * result[along]
        return Nest(
            counts=(
                taps, slide.stride, 1, steps, blocks, turns if turns > 1 else results[across],
            ),
            strides={
                "read": reads, "y": place[0], "x": place[1],
                "weight": (1, taps, 0, 0, 0 if self.is_pool else slide.words, 0),
                "constant": (0, 0, 0, 0, 0 if self.is_uniform else shape.lanes, 0),
                "write": write,
            },
            starts={**plain.starts, "write": first},
        )  # fmt: skip

    def part_level(self, shape: Shape) -> int:
        return PASS_LEVEL if self._slide(shape) is None else PASS_LEVEL + 1

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        blocks, lanes = self.source.blocks(shape.lanes), shape.lanes
        channels, taps = self.filters.shape
        whole = np.zeros((blocks * lanes, taps), np.int64)
        whole[:channels] = self.filters
        slide = self._slide(shape)
        if self.is_pool:
            blocks = 1
            whole = np.broadcast_to(self.filters[0], (lanes, taps))
        if self.is_pool and slide is None:
            words = np.zeros((1, shape.rows, lanes), np.int64)
            words[0, 0] = self.filters[0, 0]
            return words
        if slide is None:
            words = np.zeros((blocks, taps, shape.rows, lanes), np.int64)
            words[:, :, 0] = whole.reshape(blocks, lanes, taps).transpose(0, 2, 1)
            return words.reshape(-1, shape.rows, lanes)
        along, stride = slide.axis, slide.stride
        size = self.window.kernel[along]
        taps_across = self.window.kernel[1 - along]
        planes = whole.reshape(blocks, lanes, *self.window.kernel)
        if along:
            planes = planes.transpose(0, 1, 3, 2)
        words = np.zeros((blocks, stride, taps_across, shape.rows, lanes), np.int64)
        for row in range(slide.rows):
            for phase in range(stride):
                place = (slide.rows - 1 - row) * stride + phase
                if place < size:
                    words[:, phase, :, row] = planes[:, :, place].transpose(0, 2, 1)
        return words.reshape(-1, shape.rows, lanes)

    def bias(self, shape: Shape) -> IntArray:
        if self.is_uniform:
            return np.full(shape.lanes, self.biases[0], np.int64)
        bias = np.zeros(self.source.blocks(shape.lanes) * shape.lanes, np.int64)
        bias[: len(self.biases)] = self.biases
        return bias
