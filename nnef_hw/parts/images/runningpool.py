"""Reductions of windows that do not overlap, as their pixels come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, SinglePortRam, Tiling, tile_memory
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.base.part import Pipe
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["AHEAD", "RunningMax", "RunningPool", "RunningSum"]

AHEAD = 2
"""Beats by which a result so far is read from block RAM before it is needed."""
SHARED_CYCLES = 3
"""Cycles per beat with a memory of one port: write, read, and the word that was read."""


@dataclass(frozen=True, kw_only=True)
class RunningPool(Pipe):
    """Keeps a result per channel of every window of a row.

    Its latency begins with a beat of a window's last pixel.

    Parameters
    ----------
    window
        Read by channel; its windows tile the image.
    bits, signed
        Format of the codes.
    ram
        The device's block RAM.
    single_port
        The single-port RAM that the results are in; None if they are in block RAM.

    Raises
    ------
    ValueError
        If the windows do not tile the image, or a result would be read before it is written.
    """

    latency = 1

    window: Window
    bits: int
    signed: bool
    ram: BlockRam
    single_port: SinglePortRam | None = None

    def __post_init__(self) -> None:
        if not self.window.tiles:
            raise ValueError("running pooling needs windows that tile their image, by channel")
        channels = self.window.channel_blocks
        if self.memory is not None and channels <= AHEAD and self.window.kernel[1] > 1:
            raise ValueError(
                f"running pooling of {channels} channels would read a result before it is written"
            )

    @property
    def result_bits(self) -> int:
        """Width of what is kept."""
        return self.bits

    @property
    def spacing(self) -> int:
        """Cycles per beat."""
        return SHARED_CYCLES if self.single_port else 1

    @property
    def slots(self) -> int:
        """Results that are kept: of a row of windows, or of one if they are a row high."""
        window = self.window
        return window.channel_blocks * (window.out_width if window.kernel[0] > 1 else 1)

    @property
    def memory(self) -> Tiling | None:
        """Block RAM of the results, unless they are in a single-port RAM or so few as registers."""
        if self.single_port or self.slots <= AHEAD + 1:
            return None
        return tile_memory(self.ram, self.slots, self.result_bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return () if self.memory is None else (self.memory,)

    @property
    def kept_bits(self) -> int:
        return self.slots * self.result_bits

    @property
    def spram(self) -> int:
        return int(self.single_port is not None)

    def _tiles(self, codes: IntArray) -> IntArray:
        """Return codes [beats, 1] as [frame, row, in a tile, column, in a tile, channel]."""
        window, (rows, columns) = self.window, self.window.kernel
        images = codes.reshape(-1, window.height, window.width, window.channel_blocks)
        kept = images[:, : window.out_height * rows, : window.out_width * columns]
        shape = -1, window.out_height, rows, window.out_width, columns, window.channel_blocks
        return np.asarray(kept.reshape(shape))

    @property
    def features(self) -> Mapping[str, float]:
        return {"code bits": self.result_bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return 2 * self.result_bits + 30

    def process(self, target: Stream, *origins: Stream) -> Process:
        """Beats of a window's last pixel bring its results."""
        [origin] = origins
        finals, spacing = _final_beats(self.window), self.spacing
        accepted = sent = -spacing
        while True:
            for final in finals:
                offered = yield origin
                accepted += spacing
                if accepted < offered:
                    accepted = offered
                if final:
                    accepted = max(accepted, sent)
                origin.accept(accepted)
                if final:
                    sent = yield target, accepted + self.latency


@dataclass(frozen=True, kw_only=True)
class RunningMax(RunningPool):
    """Maximum of the codes of a window."""

    component = "nnef_hw.rtl.images.runningpool:RunningMax"
    label = "maximum"
    costs = "running pool"

    def compute(self, codes: IntArray) -> IntArray:
        """Return the maxima [beats, 1] of the windows of codes [beats, 1]."""
        return np.asarray(self._tiles(codes).max(axis=(2, 4)).reshape(-1, 1))


@dataclass(frozen=True, kw_only=True)
class RunningSum(RunningPool):
    """Sum of the codes of a window.

    Parameters
    ----------
    acc_bits
        Width of a sum, signed.
    """

    component = "nnef_hw.rtl.images.runningpool:RunningSum"
    label = "sum"
    costs = "running pool"

    acc_bits: int

    @property
    def result_bits(self) -> int:
        return self.acc_bits

    def compute(self, codes: IntArray) -> IntArray:
        """Return the sums [beats, 1] of the windows of codes [beats, 1]."""
        return np.asarray(self._tiles(codes).sum(axis=(2, 4)).reshape(-1, 1))


def _final_beats(window: Window) -> list[bool]:
    """Tell for every beat of a frame whether it is one of a window's last pixel."""
    final = np.zeros((window.height, window.width), bool)
    rows, columns = window.kernel
    final[rows - 1 :: rows, columns - 1 :: columns] = True
    final[window.out_height * rows :] = False
    final[:, window.out_width * columns :] = False
    result: list[bool] = np.repeat(final.reshape(-1), window.channel_blocks).tolist()
    return result
