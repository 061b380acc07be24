"""The systolic array, with the memories of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnef_hw.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.devices import Device
from nnef_hw.parts.part import Pipe, counter_bits, rom_luts
from nnef_hw.parts.timing import Process, Stream

__all__ = ["SystolicArray", "product_luts", "tree_bits"]

SHORT_SHARE = 0.36
"""LUTs of a multiplier with at most two weights, as a share of any other's."""


def tree_bits(count: int, width: int) -> int:
    """Register bits of an adder tree of ``count`` products of ``width`` bits."""
    bits = 0
    while count > 1:
        count, width = -(-count // 2), width + 1
        bits += count * width
    return bits


def product_luts(multipliers: int, x_bits: int, w_bits: int, *, words: int, style: str) -> float:
    """Multipliers in logic, as a number of 8x8 ones; few weights each are half constants."""
    products = multipliers * x_bits * w_bits / 64
    return products * SHORT_SHARE if words <= 2 and style == "logic" else products


@dataclass(frozen=True, kw_only=True)
class SystolicArray(Pipe):
    """Rows of multiply-accumulate units; its items are passes over a window, and then sums.

    Parameters
    ----------
    channels, words
        Output channels; window words of a pass (T of the design).
    rows, lanes, group_rows
        Output channels at once, products of each per word, rows that share a weight memory.
    kept_passes, x_bits, x_signed, w_bits, acc_bits, in_dsp, ram, weight_style, weight_delay
        As of the component.
    """

    component = "nnef_hw.rtl.array:SystolicArray"
    label = "array"
    costs = "array"

    channels: int
    words: int
    rows: int
    lanes: int
    group_rows: int
    kept_passes: int
    x_bits: int
    x_signed: bool
    w_bits: int
    acc_bits: int
    in_dsp: bool
    ram: BlockRam
    weight_style: str
    weight_delay: int

    @property
    def multipliers(self) -> int:
        return self.rows * self.lanes

    @property
    def passes(self) -> int:
        """Passes over a window."""
        return -(-self.channels // self.rows)

    @property
    def latency(self) -> int:
        """Cycles from the accepted last word of a pass to its first sum."""
        return 7 + self.weight_delay + (self.lanes - 1).bit_length()

    def pass_cycles(self, interval: int) -> int:
        """Cycles of all passes over a window, if a sum is taken every ``interval`` cycles.

        A pass waits for the results of those before.
        """
        full, rest = divmod(self.channels, self.rows)
        cycles = full * max(self.words, self._result_cycles(self.rows, interval))
        return cycles + (max(self.words, self._result_cycles(rest, interval)) if rest else 0)

    def _result_cycles(self, count: int, interval: int) -> int:
        """Least cycles per pass of ``count`` results."""
        spacing = max(interval, 1)
        stay = self.latency + 1 + (count - 1) * spacing
        return max(count * spacing, -(-stay // self.kept_passes))

    @property
    def group_sizes(self) -> list[int]:
        """Rows of every group that shares a weight memory."""
        starts = range(0, self.rows, self.group_rows)
        return [min(self.group_rows, self.rows - first) for first in starts]

    @property
    def _depth(self) -> int:
        return self.passes * self.words

    @property
    def _widths(self) -> list[int]:
        """Widths of the weight memories."""
        return [rows * self.lanes * self.w_bits for rows in self.group_sizes]

    @property
    def memories(self) -> tuple[Tiling, ...]:
        if self.weight_style != "block":
            return ()
        return tuple(tile_memory(self.ram, self._depth, width) for width in self._widths)

    def dsp(self, device: Device) -> int:
        if not self.in_dsp:
            return 0
        return sum(-(-rows * self.lanes // device.products_per_dsp) for rows in self.group_sizes)

    @property
    def features(self) -> Mapping[str, float]:
        address, groups = counter_bits(self._depth), len(self.group_sizes)
        table = 0.0
        if self.weight_style == "logic":
            table = sum(self._widths) * rom_luts(self._depth)
        products = 0.0
        if not self.in_dsp:
            products = product_luts(
                self.multipliers, self.x_bits, self.w_bits, words=self._depth,
                style=self.weight_style,
            )  # fmt: skip
        return {
            "sum bits": self.rows * self.acc_bits,
            "kept bits": self.rows * self.acc_bits * (self.kept_passes - 1),
            "tree bits": self.rows * tree_bits(self.lanes, self.x_bits + self.w_bits),
            "hop bits": self.x_bits * self.lanes * (groups + 1)
            + address * (groups - 1)
            + 5 * groups,
            "address bits": address,
            "memory rows": sum(memory.width * (memory.rows - 1) for memory in self.memories),
            "table": table,
            "products": products,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        groups, word = len(self.group_sizes), self.x_bits * self.lanes
        tree = tree_bits(self.lanes, self.x_bits + self.w_bits)
        ff = self.rows * (self.acc_bits * (1 + self.kept_passes) + tree)
        ff += word * (groups + 1) + (counter_bits(self._depth) + 5) * groups
        ff += self.weight_delay * (self.multipliers * self.w_bits + word * groups)
        if not self.in_dsp:
            ff += self.multipliers * 2 * (self.x_bits + self.w_bits)
        return ff + 25 + 5 * (self.lanes - 1).bit_length()

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        results = [
            min(self.rows, self.channels - first) for first in range(0, self.channels, self.rows)
        ]
        emptied = [-1] * self.kept_passes
        latency = self.latency
        while True:
            for count in results:
                offered = yield origin
                accepted = max(offered, emptied[0] + 1)
                origin.accept(accepted)
                taken = max(accepted + latency, emptied[-1] + 1) - 1
                for _ in range(count):
                    taken = yield target, taken + 1
                emptied = [*emptied[1:], taken]

    def build(self, **contents: Any) -> Any:
        """Return the component; its contents are ``weights`` [channels, words, lanes]."""
        assert contents["weights"].shape == (self.channels, self.words, self.lanes)
        return self.component_class()(
            rows=self.rows, group_rows=self.group_rows,
            kept_passes=self.kept_passes, x_bits=self.x_bits, x_signed=self.x_signed,
            w_bits=self.w_bits, acc_bits=self.acc_bits, in_dsp=self.in_dsp, ram=self.ram,
            weight_style=self.weight_style, weight_delay=self.weight_delay, **contents,
        )  # fmt: skip
