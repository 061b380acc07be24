"""The array of a shared engine: its multipliers, trees of adders and sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.hardware.devices import Device
from nnef_hw.parts.engine.feature import EngineSizes, Feature, trained
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["MultiplierArray", "Padding", "Results", "ArrayUse"]

_PRODUCT_FLIP_FLOPS = 39
"""Of a multiplier in logic: its operands, and the halves of its product."""


@dataclass(frozen=True, kw_only=True)
class ArrayUse(Record):
    """Use of the array by a layer."""

    silent: int = fact("steps of a sliding window without results", counted=True, constant=True)
    slides: int = fact("sums move from row to row", bits=1, constant=True)
    by_lane: int = fact("each lane has a sum", bits=1, late=True, constant=True)
    maximum: int = fact(
        "results are the greatest codes, not sums", bits=1, late=True, constant=True
    )
    height: int = fact("rows of the image; a pixel beyond is padding", counted=True, constant=True)
    width: int = fact("columns of the image", counted=True, constant=True)
    adds: int = fact("another tensor is added to results", bits=1, late=True)


@dataclass(frozen=True, kw_only=True)
class Results(Record):
    """Results of a pass: of those before the last one of a loop, and of that."""

    results: int = fact("results of a pass, in groups that leave together", constant=True)
    last_results: int = fact("those of the last pass of a pixel", constant=True)


@dataclass(frozen=True, kw_only=True)
class Padding(Record):
    """The code of the padding."""

    pad: int = fact("code of the padding", bits=CODE_BITS, constant=True, trained=True)


@dataclass(frozen=True, kw_only=True)
class MultiplierArray(Feature):
    """Multiplies ``lanes`` codes by weights of ``rows`` channels per cycle, and adds.

    Parameters
    ----------
    rows, lanes
        Output channels, and codes of a word: a power of two, of which the rows are a multiple.
    results
        Results that leave per cycle: a power of two, at most ``lanes``; what goes with them, as
        constants and the counts of a pass, is in groups of so many.
    slide_rows
        Rows between which sums may move, at most ``rows``; 1 if no layer needs it.
    fast
        Whether a multiplier makes two products of a row that never slides.
    in_dsp
        How many of the multipliers, from those of the first row on, are in DSP blocks.
    acc_bits
        Width of sums, signed.
    """

    label = "array"
    component = "nnef_hw.rtl.engine.array:EngineArray"
    says = (ArrayUse, Results, Padding)

    rows: int
    lanes: int
    results: int = 1
    slide_rows: int
    fast: bool = False
    in_dsp: int
    acc_bits: int = trained("acc_bits")

    def __post_init__(self) -> None:
        if self.lanes < 2 or self.lanes & (self.lanes - 1):
            raise ValueError(f"Engine lanes must be a power of two, at least 2, not {self.lanes}")
        if self.rows < 2 or self.rows % self.lanes:
            raise ValueError(f"Engine rows must be a multiple of the lanes, not {self.rows}")
        if self.results < 1 or self.results & (self.results - 1) or self.lanes % self.results:
            raise ValueError(
                f"Engine results must be a power of two, at most the lanes, not {self.results}"
            )
        if not 1 <= self.slide_rows <= self.rows:
            raise ValueError(f"Engine slide_rows must be in 1..{self.rows}, not {self.slide_rows}")

    def widths(self, engine: EngineSizes) -> Mapping[str, int]:
        groups = self.rows // self.results
        return dict.fromkeys(Results.facts(), groups.bit_length())

    @property
    def products(self) -> int:
        """Products per cycle, each with a weight."""
        return self.rows * self.lanes

    @property
    def plain_rows(self) -> int:
        """Rows with a multiplier for every product, which is also used alone; the first ones."""
        return self.slide_rows if self.fast else self.rows

    @property
    def runs(self) -> tuple[int, int, int]:
        """Multipliers of single products, of two products each, and of pairs of codes."""
        half = self.lanes // 2
        fast_rows = self.rows - self.plain_rows
        return self.plain_rows * self.lanes, fast_rows * half, half * self.fast

    @property
    def runs_in_dsp(self) -> tuple[int, int, int]:
        """Numbers of each kind of multiplier that are in DSP blocks."""
        plain, double, _ = self.runs
        in_dsp = self.in_dsp
        return (
            min(in_dsp, plain),
            min(max(0, in_dsp - plain), double),
            max(0, in_dsp - plain - double),
        )

    @property
    def multipliers(self) -> int:
        """Multipliers of the array."""
        return sum(self.runs)

    @property
    def in_logic(self) -> int:
        """Multipliers in LUTs."""
        return self.multipliers - self.in_dsp

    @property
    def word_bits(self) -> int:
        """Bits of a word of codes."""
        return self.lanes * CODE_BITS

    @property
    def tree_levels(self) -> int:
        """Adders in a row between the products of lanes and their sum."""
        return (self.lanes - 1).bit_length()

    @property
    def tree_stages(self) -> int:
        """Cycles that they take: two adders each."""
        return -(-self.tree_levels // 2)

    @property
    def tree_cycles(self) -> int:
        """Cycles from the products of lanes to their sum: sums of factors take one more."""
        return self.tree_stages + self.fast

    def dsp(self, device: Device) -> int:
        """Return the DSP blocks of the array."""
        plain, double, common = self.runs_in_dsp
        blocks = -(-(plain + common) // device.products_per_dsp(CODE_BITS))
        return blocks + (-(-double // device.sums_per_dsp) if double else 0)

    def luts(self, engine: EngineSizes, device: Device) -> float:
        luts = float(self.plain_rows * sum(_tree_levels(self.lanes)))
        if self.fast:
            luts += sum(self._fast_adders)
            if device.family.adds_in_dsp:
                luts -= self.runs_in_dsp[1] * (CODE_BITS + 1)
        luts += self.lanes * (2 * CODE_BITS + self.tree_levels) + 2.0 * self.rows * self.acc_bits
        luts += 2.0 * (self.slide_rows - 1) * self.lanes * self.acc_bits
        every = zip(self.runs, self.runs_in_dsp, strict=True)
        plain, double, common = (count - dsp for count, dsp in every)
        # Factors of two products are sums, of a bit more.
        share = device.family.product_share(CODE_BITS + 1, CODE_BITS + 1)
        return luts + (plain + share * double + common) * device.lut_multiplier

    @property
    def _fast_adders(self) -> tuple[int, int, int]:
        """Bits of adders of rows whose multipliers make two products.

        Of sums of codes and weights, of the trees, and of the sum of products of codes.
        """
        rows, half, factor = self.rows - self.plain_rows, self.lanes // 2, CODE_BITS + 1
        tree = sum(_tree_levels(half, 2 * factor)) + 2 * factor + self.tree_levels
        return rows * self.lanes * factor, rows * tree, sum(_tree_levels(half))

    def flip_flops(self, engine: EngineSizes) -> float:
        sums = (self.slide_rows * self.lanes + 2 * self.rows) * self.acc_bits
        # A register behind two adders in a row, and behind the last one.
        levels = _tree_levels(self.lanes)
        trees = self.plain_rows * sum(levels[1::2] + levels[len(levels) // 2 * 2 :])
        if self.fast:
            factors, adders, common = self._fast_adders
            # Half of a tree's adders are in its first level.
            trees += factors + adders // 2 + common // 2 + self.plain_rows * levels[-1]
        products = self.in_logic * _PRODUCT_FLIP_FLOPS
        plain, double, common = self.runs
        registers = 2 * (CODE_BITS * (plain + common + double) + double)
        products += engine.product_cycles * registers
        operands = 0 if engine.is_direct else self.products * CODE_BITS + self.word_bits
        return sums + trees + products + operands


def _tree_levels(lanes: int, bits: int = 2 * CODE_BITS) -> list[int]:
    """Return the bits of the adders of a tree of products of so many bits, by level."""
    levels = []
    while lanes > 1:
        lanes, bits = lanes // 2, bits + 1
        levels.append(lanes * bits)
    return levels
