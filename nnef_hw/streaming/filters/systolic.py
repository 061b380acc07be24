"""Convolutions on a systolic array: rows of output channels, lanes of input channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.records import Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts import Part, WindowPart
from nnef_hw.parts.arrays.array import SystolicArray
from nnef_hw.parts.arrays.fast_array import FastArray
from nnef_hw.parts.arrays.packed_array import PackedArray
from nnef_hw.parts.streams.width import Pack
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.parts.windows.parallel import ParallelLineBuffer
from nnef_hw.streaming.filters.arrays import (
    AnyFilter,
    ArrayFolding,
    multiplier_choices,
)
from nnef_hw.streaming.layers.kept import depends_on
from nnef_hw.streaming.layers.layer import Contents, size_steps
from nnef_hw.streaming.layers.requantize import digit_choices
from nnef_hw.streaming.layers.windows import buffered_cycles, least_depth, useful_depths

__all__ = ["MOST_GROUPED", "SystolicFolding", "array_sizes", "systolic_foldings", "window_weights"]

LEAST_UTILIZATION = 0.25
MOST_WASTED = 1.15
"""Multipliers of an array, for each one of the smallest array that is as fast."""
MOST_GROUPED = 16
"""Most products of a word for which rows share a weight memory."""
KINDS: dict[int, type[SystolicArray]] = {
    kind.products_per_multiplier: kind for kind in (SystolicArray, FastArray, PackedArray)
}
"""The arrays, by the products that one of their multipliers makes."""


class Sized(Protocol):
    """Measures of a useful array: channels, codes per beat, bits of weights."""

    @property
    def operand_lanes(self) -> int: ...

    @property
    def result_lanes(self) -> int: ...

    @property
    def out_channels(self) -> int: ...

    @property
    def in_channels(self) -> int: ...

    @property
    def w_bits(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class SystolicFolding(ArrayFolding):
    """A systolic array behind a line buffer.

    Parameters
    ----------
    rows, lanes, group_rows
        Output channels at once; products of each per word; rows that share a weight memory.
    parallel
        Whether a word is a whole window; the lanes then count its taps.
    depth
        Words of the line buffer; 0 if parallel, as it follows from the image.
    products_per_multiplier
        Products that a multiplier makes, which tells the kind of array.
    """

    sort = "conv"

    rows: int
    lanes: int
    group_rows: int
    parallel: bool = False
    depth: int = 0
    products_per_multiplier: int = 1

    @property
    def shape(self) -> dict[str, int]:
        return {"rows": self.rows, "lanes": self.lanes, "taps": 1, "lines": 0}

    @property
    def kind(self) -> type[SystolicArray]:
        """The kind of array."""
        return KINDS[self.products_per_multiplier]

    def window(self, layer: AnyFilter) -> Window:
        """Return the window as the array reads it."""
        blocks = 1 if self.parallel else -(-layer.in_channels // self.lanes)
        passes = -(-layer.out_channels // self.rows)
        return layer.window.folded(blocks, passes)

    @depends_on("lanes", "parallel")
    def packing(self, layer: AnyFilter, device: Device) -> tuple[Pack, ...]:
        """Return the parts that make beats of codes."""
        del device
        lanes = layer.in_channels if self.parallel else self.lanes
        return layer.packing(layer.in_channels, lanes)

    @depends_on("rows", "lanes", "parallel", "depth")
    def buffer(self, layer: AnyFilter, device: Device) -> WindowPart:
        """Return the line buffer."""
        window, formats = self.window(layer), layer.buffer_formats(device)
        if self.parallel:
            return ParallelLineBuffer(window=window, lanes=layer.in_channels, **formats)
        return LineBuffer(
            window=window, lanes=self.lanes, depth=self.depth, **formats,
            decides_early=device.long_wires,
        )  # fmt: skip

    @depends_on(
        "rows", "lanes", "parallel", "group_rows", "kept_passes", "in_dsp", "weight_style",
        "products_per_multiplier",
    )  # fmt: skip
    def array(self, layer: AnyFilter, device: Device) -> SystolicArray:
        """Return the array."""
        return self.kind(
            channels=layer.out_channels, rows=self.rows, lanes=self.lanes,
            words=1 if self.parallel else self.window(layer).pass_words,
            group_rows=self.group_rows, w_bits=_w_bits(layer, self.lanes, self.parallel),
            **layer.array_formats(self, device),
        )  # fmt: skip

    def parts(self, layer: AnyFilter, device: Device) -> tuple[Part, ...]:
        """Return the parts of a layer."""
        buffer, array = self.buffer(layer, device), self.array(layer, device)
        before = *self.packing(layer, device), *self.in_front(buffer, device)
        return (*before, buffer, array, *self.behind(layer, device))

    def cycles(self, layer: AnyFilter, device: Device) -> int:
        """Cycles per frame of a layer that nothing makes wait."""
        buffer, array = self.buffer(layer, device), self.array(layer, device)
        window = buffer.window
        reading = self.reading(layer, array, window.out_pixels, device)
        if isinstance(buffer, LineBuffer):
            return buffered_cycles(buffer, reading, layer.in_channels, layer.operand_lanes)
        # Words that complete no window pass in a cycle each.
        return max(reading + window.words - window.out_pixels, layer.beats)

    def contents(self, layer: AnyFilter) -> Contents:
        """Return the contents of the folding's parts."""
        return layer.array_contents(self.weights(layer), self.bias(layer))

    def weights(self, layer: AnyFilter) -> NDArray[np.int64]:
        """Return the weights as the array takes them."""
        return window_weights(layer, self.lanes, parallel=self.parallel)

    def bias(self, layer: AnyFilter) -> NDArray[np.int64]:
        """Return the numbers added to the array's sums."""
        source = layer.source
        return layer.bias - self.kind.offsets(
            self.weights(layer), x_bits=source.bits, x_signed=source.signed
        )


def window_weights(layer: AnyFilter, lanes: int, *, parallel: bool = False) -> NDArray[np.int64]:
    """Weights in window order, shape [out channels, words, lanes]; absent lanes are 0."""
    out_channels, taps, channels = layer.weights.shape
    if parallel:
        return layer.weights.reshape(out_channels, 1, taps * channels)
    blocks = -(-channels // lanes)
    padded = np.zeros((out_channels, taps, blocks * lanes), np.int64)
    padded[:, :, :channels] = layer.weights
    return padded.reshape(out_channels, taps * blocks, lanes)


def _w_bits(layer: AnyFilter, lanes: int, parallel: bool) -> int:
    """Width of stored weights; absent lanes have weights of 0, which a sign cannot say."""
    has_absent_lanes = not parallel and layer.in_channels % lanes > 0
    return max(layer.w_bits, 1 + has_absent_lanes)


def systolic_foldings(layer: AnyFilter, device: Device) -> list[SystolicFolding]:
    """List the arrays that could run a convolution or linear layer."""
    foldings: list[SystolicFolding] = []
    for kind in _kinds(layer, device):
        foldings += _parallel_foldings(layer, device, kind)
        for rows, lanes in array_sizes(layer, device, kind):
            passes = -(-layer.out_channels // rows)
            window = layer.window.folded(-(-layer.in_channels // lanes), passes)
            foldings += _arithmetic_foldings(
                layer, device, window, rows, lanes, kind, parallel=False
            )
    return foldings


def _kinds(layer: AnyFilter, device: Device) -> list[type[SystolicArray]]:
    """List the kinds of arrays that a layer could have on the device."""
    formats: Fields = {"x_bits": layer.source.bits, "w_bits": layer.w_bits}
    return [kind for kind in KINDS.values() if kind.suits(device, weights=layer.weights, **formats)]


def array_sizes(layer: Sized, device: Device, kind: type[SystolicArray]) -> list[tuple[int, int]]:
    """List (rows, lanes) of arrays, without those that waste multipliers.

    One does if another needs as few words per window with clearly fewer multipliers.
    """
    largest = device.products_of(layer.w_bits) + int(device.lut * 0.5) // device.lut_multiplier
    arrays = []
    for rows in size_steps(layer.out_channels, layer.result_lanes):
        for lanes in size_steps(layer.in_channels, layer.operand_lanes):
            multipliers = kind.multipliers_of(rows, lanes)
            if multipliers <= largest and kind.is_useful(device, rows, lanes):
                words = -(-layer.out_channels // rows) * -(-layer.in_channels // lanes)
                arrays.append((words, multipliers, rows, lanes))
    kept = []
    fewest = largest
    for _, multipliers, rows, lanes in sorted(arrays):
        fewest = min(fewest, multipliers)
        if multipliers <= fewest * MOST_WASTED:
            kept.append((rows, lanes))
    return kept


def _parallel_foldings(
    layer: AnyFilter, device: Device, kind: type[SystolicArray]
) -> Iterator[SystolicFolding]:
    """Fold a layer whose whole window is one word: few channels, many taps.

    Only where the results of a pass leave fast enough that the multipliers do not just wait.
    """
    plain = replace(layer.window, channel_blocks=1)
    lanes = plain.taps * layer.in_channels
    if plain.taps == 1 or plain.dilation != (1, 1) or plain.padded_width < 2:
        return
    if plain.starts_in_padding or plain.goes_on:
        return
    for rows in size_steps(layer.out_channels, layer.result_lanes):
        multipliers = kind.multipliers_of(rows, lanes)
        is_useful = kind.is_useful(device, rows, lanes)
        if multipliers <= device.products_of(layer.w_bits) and is_useful:
            window = plain.folded(1, -(-layer.out_channels // rows))
            for folding in _arithmetic_foldings(
                layer, device, window, rows, lanes, kind, parallel=True
            ):
                busy = layer.macs / (rows * lanes)
                if busy >= LEAST_UTILIZATION * folding.cycles(layer, device):
                    yield folding


def _arithmetic_foldings(
    layer: AnyFilter, device: Device, window: Window, rows: int, lanes: int,
    kind: type[SystolicArray], *, parallel: bool,
) -> Iterator[SystolicFolding]:  # fmt: skip
    """Vary the requantizer, the kind of multipliers and the weight memory of one array."""
    words = 1 if parallel else window.pass_words
    w_bits = _w_bits(layer, lanes, parallel)
    size: Fields = {
        "rows": rows, "lanes": lanes, "parallel": parallel,
        "products_per_multiplier": kind.products_per_multiplier,
        "depth": 0 if parallel else least_depth(window),
        "group_rows": _group_rows(
            rows, lanes * w_bits, lanes, window.passes * words, layer.result_lanes,
            kind.row_unit, device,
        ),
    }  # fmt: skip
    places = multiplier_choices(
        kind.dsp_choices(rows, lanes), layer.source.bits, w_bits, window.passes * words, device
    )  # fmt: skip
    fastest = None
    for digits, kept_passes in product(digit_choices(layer.requant, device), (1, 2)):
        if fastest == window.passes * words * window.out_pixels:
            # A word per cycle.
            break
        folding = SystolicFolding(**size, **digits, kept_passes=kept_passes, **places[0])
        array = folding.array(layer, device)
        reading = folding.reading(layer, array, window.out_pixels, device)
        if fastest is not None and reading >= fastest:
            continue
        fastest = reading
        buffer = folding.buffer(layer, device)
        depths = [folding.depth]
        if isinstance(buffer, LineBuffer):
            of_depth = partial(_of_depth, folding, layer, device)
            depths = list(useful_depths(
                of_depth, buffer.window, reading, layer.in_channels, layer.operand_lanes
            ))  # fmt: skip
        for place, depth in product(places, depths):
            choices = {**size, **digits, **place, "depth": depth}
            yield SystolicFolding(**choices, kept_passes=kept_passes)


def _of_depth(folding: SystolicFolding, layer: AnyFilter, device: Device, depth: int) -> LineBuffer:
    """Return the line buffer of the folding with another depth."""
    buffer = replace(folding, depth=depth).buffer(layer, device)
    assert isinstance(buffer, LineBuffer)
    return buffer


def _group_rows(
    rows: int, row_bits: int, lanes: int, depth: int, unit: int, shared: int, device: Device
) -> int:
    """Rows per weight memory: the fewest block RAMs, then the fewest memories of <= 16 products.

    They are a multiple of a unit, and more than one if there are: a row takes what that a unit
    behind it holds in the next cycle, and without a row of its own between, that is what another
    memory's rows take, and so on. They are a multiple of ``shared``, too, which share multipliers.
    """

    def cost(group_rows: int) -> tuple[int, int]:
        full, rest = divmod(rows, group_rows)
        count = full * tile_memory(device.ram, depth, group_rows * row_bits, constant=True).count
        if rest:
            count += tile_memory(device.ram, depth, rest * row_bits, constant=True).count
        return count, -group_rows

    least = min(2 * unit, rows)
    multiples = [n for n in range(least, rows + 1, unit) if n % shared == 0]
    candidates = [n for n in multiples if n == least or n * lanes <= MOST_GROUPED]
    return min(candidates, key=cost)
