"""A state: what a step leaves for the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Pipe, counter_bits, rom_luts
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["State"]


@dataclass(frozen=True, kw_only=True)
class State(Pipe):
    """Gives ``count`` initial beats after reset, and from then on what comes.

    That of a loop gives them anew before every ``steps - 1`` frames that come. Its contents are the
    initial ``codes`` of a frame. The queue in front of it holds what a step leaves, as far as the
    layers around it do not.

    Parameters
    ----------
    count
        Beats of a frame.
    bits, signed, lanes
        Format of the beats.
    ram
        The device's block RAM; not used unless the initial codes are in it.
    style
        Where the initial codes are: ``"equal"`` if all are one code, ``"logic"`` for LUTs, or
        ``"block"``.
    steps
        Steps of its loop; 1 if it goes on for ever.
    """

    component = "nnef_hw.rtl.streams.state:State"
    label = "state"
    costs = "state"

    count: int
    bits: int
    signed: bool
    ram: BlockRam
    style: str = "equal"
    steps: int = 1
    lanes: int = 1

    @property
    def passed(self) -> int:
        """Beats that pass between initial ones."""
        return (self.steps - 1) * self.count

    @property
    def tiling(self) -> Tiling:
        """Shape of the memory of initial codes."""
        return tile_memory(self.ram, self.count, self.bits * self.lanes)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.tiling,) if self.style == "block" else ()

    def compute(self, passing: IntArray, *, codes: Sequence[int]) -> IntArray:
        """Return initial beats, and those [beats, lanes] that pass; in loops, before each and last.

        ``codes`` are the initial ones.
        """
        first = np.reshape(codes, (-1, self.lanes))
        if not self.passed:
            return np.concatenate([first, passing])
        frames = passing.reshape(-1, self.passed, self.lanes)
        loops = [codes for loop in frames for codes in (first, loop)]
        return np.concatenate([*loops, first])

    @property
    def features(self) -> Mapping[str, float]:
        in_logic = self.style == "logic"
        return {
            "counter bits": counter_bits(self.count) + counter_bits(self.passed),
            "code bits": self.bits * self.lanes,
            "table": self.bits * self.lanes * rom_luts(self.count) if in_logic else 0.0,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        counters = counter_bits(self.count) + counter_bits(self.passed)
        return counters + 3 + self.bits * self.lanes * (self.style == "logic")

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        time = 0
        while True:
            # The first initial code is fetched in a cycle of its own.
            time += 1
            for _ in range(self.count):
                time = 1 + (yield target, time)
            for _ in repeat(None, self.passed) if self.passed else repeat(None):
                offered = yield origin
                accepted = yield target, max(offered, time)
                origin.accept(accepted)
                time = accepted + 1
