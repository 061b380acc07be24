"""Maxima and averages over windows, channel by channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import Requant, signed_bits
from nnef_hw.arithmetic.records import Fields
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir import layers
from nnef_hw.parts import Part
from nnef_hw.parts.images.pool import MaxPool, SumPool
from nnef_hw.parts.images.runningpool import RunningMax, RunningPool, RunningSum
from nnef_hw.parts.streams.lanes import side_by_side
from nnef_hw.parts.streams.stream import SumQueue
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.streaming.layers.layer import AnyLayer, Contents, StreamContext, WindowLayer, lowers
from nnef_hw.streaming.layers.requantize import (
    RequantizerFolding,
    digit_choices,
    interval_of,
    make_requantizer,
    requant_contents,
)
from nnef_hw.streaming.layers.windows import buffered_cycles, least_depth, useful_depths

__all__ = ["PoolFolding", "PoolLayer", "RunningPoolFolding", "RunningPoolLayer"]

RUNNING_CHANNELS = 3
"""Fewest beats of pixels that follow each other in a window of a running pool."""

F = TypeVar("F", bound=RequantizerFolding)


@dataclass(frozen=True, kw_only=True)
class PoolFolding(RequantizerFolding):
    """A reduction behind a line buffer of ``depth`` words."""

    depth: int


@dataclass(frozen=True, kw_only=True)
class RunningPoolFolding(RequantizerFolding):
    """A reduction of pixels as they come; its results may be in a RAM of a single port."""

    single_port: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pool(WindowLayer[F]):
    """Base of pools.

    ``positions`` [row, column] tells which mult of ``requant`` a result takes, if it has several.
    Without ``requant`` it is a maximum.
    """

    pad_code: int
    requant: Requant | TfliteRequant | None
    bias: int = 0
    acc_bits: int = 0
    positions: NDArray[np.int64] | None = None

    keeps_lanes = True

    @property
    def takes_lanes(self) -> bool:
        lanes, window = self.operand_lanes, self.window
        if lanes == 1 or lanes != self.result_lanes:
            return lanes == self.result_lanes
        return window.channel_blocks % lanes == 0 and not window.goes_on

    @property
    def _lane_window(self) -> Window:
        """The window that a lane sees: every so many-th channel."""
        channels = self.window.channel_blocks // self.operand_lanes
        return self.window.folded(channels, channels)

    def _behind(self, folding: RequantizerFolding, device: Device) -> tuple[Part, ...]:
        """Return the parts that sums pass."""
        assert self.requant is not None
        by_position = self.positions is not None
        requantizer = make_requantizer(
            self.requant, folding, channels=self.window.channel_blocks if by_position else 1,
            acc_bits=self.acc_bits, target=self.target, by_position=by_position,
            lanes=self.result_lanes,
        )  # fmt: skip
        sums = SumQueue(bits=self.result_lanes * self.acc_bits + 1)
        return (sums, requantizer) if device.long_wires else (requantizer,)

    def contents(self, folding: F) -> Contents:
        del folding
        if self.requant is None:
            return {}
        contents = dict(requant_contents(self.requant, [self.bias]))
        if self.positions is not None:
            contents["positions"] = self.positions.tolist()
        return {"requantize": contents}


@dataclass(frozen=True, eq=False, kw_only=True)
class PoolLayer(_Pool[PoolFolding]):
    """A pool of windows that a line buffer gives."""

    label = "pool"

    def kind(self, folding: PoolFolding) -> str:
        del folding
        return "avg_pool" if self.requant else "max_pool"

    def _buffer(self, folding: PoolFolding, device: Device) -> LineBuffer:
        return LineBuffer(
            window=self._lane_window, bits=self.source.bits, signed=self.source.signed,
            lanes=self.operand_lanes, pad_code=self.pad_code, depth=folding.depth, ram=device.ram,
            decides_early=device.long_wires,
        )  # fmt: skip

    def _reading(self, folding: PoolFolding) -> int:
        window = self._lane_window
        pass_cycles = max(window.pass_words, interval_of(self.requant, folding))
        return window.out_pixels * window.passes * pass_cycles

    def foldings(self, device: Device) -> Sequence[PoolFolding]:
        foldings: list[PoolFolding] = []
        for digits in digit_choices(self.requant, device):
            folding = PoolFolding(**digits, depth=least_depth(self.window))
            buffer = self._buffer(folding, device)
            depths = useful_depths(
                partial(_with_depth, buffer),
                buffer.window, self._reading(folding), buffer.window.channel_blocks,
            )  # fmt: skip
            foldings += [replace(folding, depth=depth) for depth in depths]
        return foldings

    def parts(self, folding: PoolFolding, device: Device) -> tuple[Part, ...]:
        buffer = self._buffer(folding, device)
        codes: Fields = {"bits": self.source.bits, "signed": self.source.signed}
        if self.requant is None:
            return (buffer, MaxPool(lanes=self.operand_lanes, **codes))
        pool = side_by_side(SumPool(acc_bits=self.acc_bits, **codes), self.operand_lanes)
        return (buffer, pool, *self._behind(folding, device))

    def cycles(self, folding: PoolFolding, device: Device) -> int:
        buffer = self._buffer(folding, device)
        channels = buffer.window.channel_blocks
        return buffered_cycles(buffer, self._reading(folding), channels)


@dataclass(frozen=True, eq=False, kw_only=True)
class RunningPoolLayer(_Pool[RunningPoolFolding]):
    """A pool of windows that do not overlap, as their pixels come."""

    label = "running_pool"

    def kind(self, folding: RunningPoolFolding) -> str:
        del folding
        return "running_sum" if self.requant else "running_max"

    def widened(
        self, operand_lanes: int, result_lanes: int, clock_mhz: float | None = None
    ) -> AnyLayer:
        """Return a pool behind a line buffer where a pixel has too few beats to run."""
        layer = super().widened(operand_lanes, result_lanes, clock_mhz)
        if _can_run(self.window, operand_lanes) or not layer.takes_lanes:
            return layer
        assert isinstance(layer, RunningPoolLayer)
        return PoolLayer(**{item.name: getattr(layer, item.name) for item in fields(layer)})

    def _pool(self, folding: RunningPoolFolding, device: Device) -> RunningPool:
        parameters: Fields = {
            "window": self._lane_window, "bits": self.source.bits, "signed": self.source.signed,
            "ram": device.ram,
            "single_port": device.single_port if folding.single_port else None,
        }  # fmt: skip
        if self.requant is None:
            return RunningMax(**parameters)
        return RunningSum(acc_bits=self.acc_bits, **parameters)

    def foldings(self, device: Device) -> Sequence[RunningPoolFolding]:
        plain = RunningPoolFolding(digit_bits=0, digit_stages=0, single_port=False)
        shares = [False]
        pool = self._pool(plain, device)
        if device.single_port and device.single_port.holds(pool.slots, pool.result_bits):
            shares.append(True)
        return [
            replace(plain, **digits, single_port=single_port)
            for digits, single_port in product(digit_choices(self.requant, device), shares)
        ]

    def parts(self, folding: RunningPoolFolding, device: Device) -> tuple[Part, ...]:
        pool = self._pool(folding, device)
        pools = side_by_side(pool, self.operand_lanes)
        return (pools, *(self._behind(folding, device) if self.requant else ()))

    def cycles(self, folding: RunningPoolFolding, device: Device) -> int:
        window, spacing = self._lane_window, self._pool(folding, device).spacing
        slower = max(0, interval_of(self.requant, folding) - spacing)
        return window.beats * spacing + slower * window.channel_blocks * window.out_pixels

    def pause(self, folding: RunningPoolFolding) -> int:
        """Cycles in which the results of a row of windows leave."""
        window = self._lane_window
        results = window.out_width * window.channel_blocks
        return results * max(0, interval_of(self.requant, folding) - 1)


def _can_run(window: Window, lanes: int) -> bool:
    """Whether a running pool takes beats of so many codes: its results so far are read ahead."""
    return window.channel_blocks // lanes >= RUNNING_CHANNELS or window.kernel[1] == 1


def _with_depth(buffer: LineBuffer, depth: int) -> LineBuffer:
    return replace(buffer, depth=depth)


def _lower_pool(context: StreamContext[layers.Pool], **fields: Any) -> PoolLayer | RunningPoolLayer:
    layer = context.layer
    window = context.window(layer.window)
    # Rows kept of frames before are of a code of their own where there is no other padding.
    pad_code = context.rows.code if context.rows else layer.pad_code
    kind = RunningPoolLayer if window.tiles and _can_run(window, 1) else PoolLayer
    return kind(**context.common, window=window, pad_code=pad_code, **fields)


@lowers("max_pool")
def _lower_maximum(context: StreamContext[layers.MaxPool]) -> PoolLayer | RunningPoolLayer:
    return _lower_pool(context, requant=None)


@lowers("avg_pool", "box")
def _lower_sum(context: StreamContext[layers.SumPool]) -> PoolLayer | RunningPoolLayer:
    layer, source, taps = context.layer, context.layer.source, context.layer.pool.taps
    lowest, highest, bias = source.lo * taps, source.hi * taps, -layer.zero * taps
    limits = (min(lowest, lowest + bias), max(highest, highest + bias))
    return _lower_pool(
        context, requant=layer.factors, bias=bias, acc_bits=signed_bits(*limits),
        positions=layer.positions if layer.leaves_padding_out else None,
    )  # fmt: skip
