"""Reductions of windows that do not overlap, as their pixels come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.blockram import SPRAM_SHAPE, BlockRam, Tiling, tile_memory
from nnef_hw.devices import Device
from nnef_hw.parts.part import Pipe
from nnef_hw.parts.timing import Process, Stream
from nnef_hw.window import Window

__all__ = ["SHARED_CYCLES", "RunningMax", "RunningPool", "RunningSum", "running_slots"]

SHARED_CYCLES = 3
"""Cycles per beat with a memory of one port."""
MAX_REGISTERS = 3
"""Most results that are kept in registers."""


def running_slots(window: Window) -> int:
    """Results that are kept: of a row of windows, or of one if they are a row high."""
    return window.channel_blocks * (window.out_width if window.kernel[0] > 1 else 1)


@dataclass(frozen=True, kw_only=True)
class RunningPool(Pipe):
    """Keeps a result per channel of every window of a row.

    Parameters
    ----------
    window, bits, signed, ram
        As of the component.
    single_port
        Whether the results are in a single-port RAM, not in block RAM.
    """

    latency = 1

    window: Window
    bits: int
    signed: bool
    ram: BlockRam
    single_port: bool

    @property
    def result_bits(self) -> int:
        """Width of what is kept."""
        return self.bits

    @property
    def spacing(self) -> int:
        """Cycles per beat."""
        return SHARED_CYCLES if self.single_port else 1

    @property
    def fits_single_port(self) -> bool:
        """Whether a single-port RAM block holds the results."""
        depth, width = SPRAM_SHAPE
        return running_slots(self.window) <= depth and self.result_bits <= width

    @property
    def memories(self) -> tuple[Tiling, ...]:
        slots = running_slots(self.window)
        if self.single_port or slots <= MAX_REGISTERS:
            return ()
        return (tile_memory(self.ram, slots, self.result_bits),)

    @property
    def kept_bits(self) -> int:
        return running_slots(self.window) * self.result_bits

    @property
    def spram(self) -> int:
        return int(self.single_port)

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
        accepted = given = -spacing
        while True:
            for final in finals:
                accepted = max(accepted + spacing, (yield origin))
                if final:
                    accepted = max(accepted, given)
                origin.accept(accepted)
                if final:
                    given = yield target, accepted + self.latency


@dataclass(frozen=True, kw_only=True)
class RunningMax(RunningPool):
    """Maximum of the codes of a window."""

    component = "nnef_hw.rtl.runningpool:RunningMax"
    label = "maximum"
    costs = "running pool"


@dataclass(frozen=True, kw_only=True)
class RunningSum(RunningPool):
    """Sum of the codes of a window."""

    component = "nnef_hw.rtl.runningpool:RunningSum"
    label = "sum"
    costs = "running pool"

    acc_bits: int

    @property
    def result_bits(self) -> int:
        return self.acc_bits


def _final_beats(window: Window) -> list[bool]:
    """Tell for every beat of a frame whether it is one of a window's last pixel."""
    final = np.zeros((window.height, window.width), bool)
    rows, columns = window.kernel
    final[rows - 1 :: rows, columns - 1 :: columns] = True
    final[window.out_height * rows :] = False
    final[:, window.out_width * columns :] = False
    result: list[bool] = np.repeat(final.reshape(-1), window.channel_blocks).tolist()
    return result
