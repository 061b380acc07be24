"""The array that sums over taps, one channel at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnef_hw.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.devices import Device
from nnef_hw.parts.array import product_luts, tree_bits
from nnef_hw.parts.part import Pipe, counter_bits, rom_luts
from nnef_hw.parts.timing import Process, Stream

__all__ = ["DepthwiseArray"]

SHORT_TABLE = 16
"""Words of a constant table of which each bit is one LUT4."""


@dataclass(frozen=True, kw_only=True)
class DepthwiseArray(Pipe):
    """Lanes of multiply-accumulate units, each of a channel; items are passes, and then sums.

    Parameters
    ----------
    channels, positions
        Channels; products of each sum.
    lanes, taps
        Channels at once, and products of each per word.
    kept_passes, x_bits, x_signed, w_bits, acc_bits, in_dsp, ram, lut_ram, weight_style,
    weight_delay
        As of the component.
    """

    component = "nnef_hw.rtl.depthwise:DepthwiseArray"
    label = "array"
    costs = "tap array"

    channels: int
    positions: int
    lanes: int
    taps: int
    kept_passes: int
    x_bits: int
    x_signed: bool
    w_bits: int
    acc_bits: int
    in_dsp: bool
    ram: BlockRam
    lut_ram: bool
    weight_style: str
    weight_delay: int

    @property
    def multipliers(self) -> int:
        return self.lanes * self.taps

    @property
    def words(self) -> int:
        """Words of a pass."""
        return -(-self.positions // self.taps)

    @property
    def latency(self) -> int:
        """Cycles from the accepted last word of a pass to its first sum."""
        tree = (self.taps - 1).bit_length()
        return 4 + self.weight_delay + tree + (self.words > 1) + (self.kept_passes > 1)

    def pass_cycles(self, interval: int) -> int:
        """Cycles of all passes over a window, if a sum is taken every ``interval`` cycles.

        Enough passes are kept for that.
        """
        full, rest = divmod(self.channels, self.lanes)
        cycles = full * max(self.words, self.lanes * interval)
        return cycles + (max(self.words, rest * interval) if rest else 0)

    @property
    def depth(self) -> int:
        """Words of the weight memory."""
        return -(-self.channels // self.lanes) * self.words

    @property
    def _width(self) -> int:
        return self.multipliers * self.w_bits

    @property
    def _columns(self) -> int:
        """Different columns of the weight table; equal ones are merged."""
        if self.depth > SHORT_TABLE:
            return self._width
        return min(self._width, (1 << self.depth) - 2)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        if self.weight_style != "block":
            return ()
        return (tile_memory(self.ram, self.depth, self._width),)

    def dsp(self, device: Device) -> int:
        return -(-self.multipliers // device.products_per_dsp) if self.in_dsp else 0

    @property
    def features(self) -> Mapping[str, float]:
        in_logic = self.weight_style == "logic"
        products = 0.0
        if not self.in_dsp:
            products = product_luts(
                self.multipliers, self.x_bits, self.w_bits, words=self.depth,
                style=self.weight_style,
            )  # fmt: skip
        return {
            "columns": self._columns if in_logic else 0,
            "sum bits": self.lanes * self.acc_bits,
            "kept bits": self.lanes * self.acc_bits * (self.kept_passes - 1),
            "tree bits": self.lanes * tree_bits(self.taps, self.x_bits + self.w_bits),
            "hop bits": 2 * self.x_bits * self.multipliers + 5,
            "address bits": counter_bits(self.depth),
            "memory rows": sum(memory.width * (memory.rows - 1) for memory in self.memories),
            "table": self._width * rom_luts(self.depth) if in_logic else 0.0,
            "products": products,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        in_logic = self.weight_style == "logic"
        weights = self._columns if in_logic else self._width
        ff = self.multipliers * self.x_bits * (1 + self.weight_delay)
        ff += weights * (self.weight_delay + in_logic)
        sums = 1 + (self.words > 1)
        # More than two sets of sums are in LUT RAM, if there is any.
        if self.kept_passes == 2 or not self.lut_ram:
            sums += self.kept_passes - 1
        tree = tree_bits(self.taps, self.x_bits + self.w_bits)
        ff += self.lanes * (self.acc_bits * sums + tree)
        if not self.in_dsp:
            ff += self.multipliers * 5 * (self.x_bits + self.w_bits) // 2
        return ff + 35

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        starts = range(0, self.channels, self.lanes)
        results = [min(self.lanes, self.channels - first) for first in starts]
        emptied = deque([-1] * self.kept_passes, maxlen=self.kept_passes)
        latency = self.latency
        while True:
            for count in results:
                offered = yield origin
                accepted = max(offered, emptied[0] + 1)
                origin.accept(accepted)
                taken = max(accepted + latency - 1, emptied[-1])
                for _ in range(count):
                    taken = yield target, taken + 1
                emptied.append(taken)

    def build(self, **contents: Any) -> Any:
        """Return the component; its contents are ``weights`` [channels, positions]."""
        assert contents["weights"].shape == (self.channels, self.positions)
        return self.component_class()(
            lanes=self.lanes, taps=self.taps, kept_passes=self.kept_passes,
            x_bits=self.x_bits, x_signed=self.x_signed, w_bits=self.w_bits,
            acc_bits=self.acc_bits, in_dsp=self.in_dsp, ram=self.ram, lut_ram=self.lut_ram,
            weight_style=self.weight_style, weight_delay=self.weight_delay, **contents,
        )  # fmt: skip

    def result(self, component: Any) -> Any:
        return component.o0
