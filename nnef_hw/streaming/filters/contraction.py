"""Products of two activations: arrays whose weights the second operand's stream writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from nnef_hw.arithmetic.numerics import QType, signed_bits
from nnef_hw.arithmetic.records import Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.contraction import Contraction
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir import layers
from nnef_hw.parts import Part
from nnef_hw.parts.arrays.array import DSP_BITS, SystolicArray
from nnef_hw.parts.arrays.contraction import ContractionArray
from nnef_hw.parts.arrays.weight_writer import RowWriter, WeightWriter, divides_places
from nnef_hw.parts.arrays.weights import WeightMemory
from nnef_hw.parts.streams.width import Pack
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.streaming.filters.arrays import ArrayFolding, SummingLayer
from nnef_hw.streaming.filters.systolic import MOST_GROUPED, array_sizes
from nnef_hw.streaming.layers.kept import depends_on
from nnef_hw.streaming.layers.layer import Contents, StreamContext, lowers
from nnef_hw.streaming.layers.requantize import digit_choices, requant_contents
from nnef_hw.streaming.layers.windows import buffered_cycles, least_depth, useful_depths

__all__ = ["ContractionFolding", "ContractionLayer"]

MOST_LUT_RAM_WORDS = 64
"""Deepest memory of matrices that is tried in LUT RAM."""


@dataclass(frozen=True, kw_only=True)
class ContractionFolding(ArrayFolding):
    """A systolic array behind a line buffer that repeats rows for every pass over columns.

    Parameters
    ----------
    rows, lanes, group_rows
        Columns at once; products of each per word; columns that share an address.
    depth
        Words of the line buffer.
    """

    sort = "contraction"

    rows: int
    lanes: int
    group_rows: int
    depth: int = 0

    @property
    def shape(self) -> dict[str, int]:
        return {"rows": self.rows, "lanes": self.lanes, "taps": 1, "lines": 0}

    @depends_on("lanes")
    def packing(self, layer: ContractionLayer, device: Device) -> tuple[Pack, ...]:
        """Return the parts that make beats of codes."""
        del device
        return layer.packing(layer.in_channels, self.lanes)

    @depends_on("rows", "lanes", "depth")
    def buffer(self, layer: ContractionLayer, device: Device) -> LineBuffer:
        """Return the line buffer."""
        passes = -(-layer.out_channels // self.rows)
        window = layer.window.folded(-(-layer.in_channels // self.lanes), passes)
        return LineBuffer(
            window=window, lanes=self.lanes, depth=self.depth, **layer.buffer_formats(device),
            decides_early=device.long_wires,
        )  # fmt: skip

    @depends_on("rows", "lanes", "group_rows", "kept_passes", "in_dsp", "weight_style")
    def array(self, layer: ContractionLayer, device: Device) -> ContractionArray:
        """Return the array with its memory of weights."""
        second = layer.second
        memory = layer.memory(
            self.rows, self.lanes, self.group_rows, device, style=self.weight_style
        )
        array = SystolicArray(
            channels=layer.out_channels, words=memory.words, rows=self.rows, lanes=self.lanes,
            group_rows=self.group_rows, kept_passes=self.kept_passes, x_bits=layer.x_bits,
            x_signed=layer.x_signed, w_bits=layer.w_bits, acc_bits=layer.acc_bits - layer.gain,
            in_dsp=self.in_dsp, weights=memory, weight_delay=device.weight_delay,
            out_lanes=layer.result_lanes,
        )  # fmt: skip
        codes: Fields = {
            "memory": memory, "in_bits": second.bits, "in_signed": second.signed,
            "zero_point": second.zero_point,
        }  # fmt: skip
        writer = (
            WeightWriter(**codes)
            if layer.place is None
            else RowWriter(**codes, place_bits=layer.place.bits)
        )
        return ContractionArray(
            array=array, writer=writer, in_bits=layer.source.bits, in_signed=layer.source.signed,
            zero_point=layer.source.zero_point, gain=layer.gain,
        )  # fmt: skip

    def parts(self, layer: ContractionLayer, device: Device) -> tuple[Part, ...]:
        """Return the parts of a layer."""
        buffer, array = self.buffer(layer, device), self.array(layer, device)
        before = *self.packing(layer, device), *self.in_front(buffer, device)
        return (*before, buffer, array, *self.behind(layer, device))

    def cycles(self, layer: ContractionLayer, device: Device) -> int:
        """Cycles per frame of a layer that nothing makes wait."""
        buffer, array = self.buffer(layer, device), self.array(layer, device).array
        reading = self.reading(layer, array, layer.product.rows, device)
        written = layer.product.sets * layer.written_codes
        waiting = buffered_cycles(buffer, reading, layer.in_channels, layer.operand_lanes)
        return max(waiting, written)


@dataclass(frozen=True, eq=False, kw_only=True)
class ContractionLayer(SummingLayer[ContractionFolding]):
    """A product of two activations.

    Parameters
    ----------
    product
        Sizes of the product, and the order of the second operand's stream.
    second
        Format of the second operand.
    gain, bias
        Sums are multiplied by ``2**gain``, and the bias is added, before they are requantized.
    place
        Format of the place of the row that the second operand brings, if the matrices are a cache.
    """

    label = "contraction"

    product: Contraction
    second: QType
    gain: int
    bias: int
    place: QType | None = None

    @property
    def out_channels(self) -> int:
        return self.product.columns

    @property
    def in_channels(self) -> int:
        """Elements of a row."""
        return self.product.inner

    @property
    def macs(self) -> int:
        return self.product.macs

    @property
    def x_signed(self) -> bool:
        """Whether a code of a row less its zero point may be negative."""
        return self.source.lo < self.source.zero_point

    @property
    def x_bits(self) -> int:
        """Width of such a difference."""
        lo, hi = self.source.lo - self.source.zero_point, self.source.hi - self.source.zero_point
        return signed_bits(lo, hi) - (not self.x_signed)

    @property
    def fits_dsp(self) -> bool:
        return max(self.x_bits, self.w_bits) <= DSP_BITS

    @property
    def kernel(self) -> None:
        return None  # rows times matrices slide over nothing

    def operand_format(self, operand: int) -> QType:
        if operand == 2:
            assert self.place is not None, self.name
            return self.place
        return self.second if operand else self.source

    @property
    def written_codes(self) -> int:
        """Codes of a set of matrices that a frame writes."""
        product = self.product
        return product.codes if self.place is None else product.codes // product.outer_rows

    def memory(
        self, rows: int, lanes: int, group_rows: int, device: Device, style: str = "block"
    ) -> WeightMemory:
        """Return the memory of the matrices for an array of this size."""
        return WeightMemory(
            ram=device.ram, product=self.product, rows=rows, group_rows=group_rows, lanes=lanes,
            bits=self.w_bits, style=style, halves=2 if self.place is None else 1,
        )  # fmt: skip

    def lanes_of(self, operand: int) -> int:
        return 1 if operand else self.operand_lanes

    @property
    def joined(self) -> tuple[str, ...]:
        return self.sources[:1]

    def most_queue(self, operand: int) -> int:
        # Rows wait until a set of matrices has come; the next set takes the place of one before.
        product = self.product
        if operand == 2:
            return 1
        codes = self.written_codes if operand else product.rows_of_set * product.inner
        return codes // self.lanes_of(operand)

    def joins(self, parts: Sequence[Part]) -> int:
        return next(n for n, part in enumerate(parts) if isinstance(part, ContractionArray))

    def foldings(self, device: Device) -> Sequence[ContractionFolding]:
        return [
            folding
            for rows, lanes in array_sizes(self, device, SystolicArray)
            if self._suits(rows, lanes, device)
            for folding in self._foldings(rows, lanes, device)
        ]

    def _suits(self, rows: int, lanes: int, device: Device) -> bool:
        """Whether rows of a cache may be written for an array of this size."""
        return self.place is None or bool(self._group_sizes(rows, lanes, device))

    def _foldings(self, rows: int, lanes: int, device: Device) -> Iterator[ContractionFolding]:
        """Vary requantizer, kind of multipliers, and line buffer of an array of a size."""
        window = self.window.folded(-(-self.in_channels // lanes), -(-self.out_channels // rows))
        size: Fields = {
            "rows": rows, "lanes": lanes, "depth": least_depth(window), "weight_style": "block",
            "group_rows": self._group_rows(rows, lanes, device),
        }  # fmt: skip
        kinds = [rows * lanes, 0] if self.fits_dsp else [0]
        fastest = None
        for digits, kept_passes in product(digit_choices(self.requant, device), (1, 2)):
            if fastest == window.passes * window.pass_words * window.out_pixels:
                break
            folding = ContractionFolding(**size, **digits, kept_passes=kept_passes, in_dsp=kinds[0])
            array = folding.array(self, device).array
            reading = folding.reading(self, array, self.product.rows, device)
            if fastest is not None and reading >= fastest:
                continue
            fastest = reading
            of_depth = partial(_of_depth, folding, self, device)
            depths = useful_depths(
                of_depth, folding.buffer(self, device).window, reading, self.in_channels,
                self.operand_lanes,
            )  # fmt: skip
            styles = self._styles(folding, device)
            for depth, in_dsp, style in product(depths, kinds, styles):
                yield replace(folding, depth=depth, in_dsp=in_dsp, weight_style=style)

    def _styles(self, folding: ContractionFolding, device: Device) -> tuple[str, ...]:
        """List where the matrices may be: in LUT RAM if they are few."""
        memory = folding.array(self, device).writer.memory
        is_short = device.family.has_lut_ram and memory.depth <= MOST_LUT_RAM_WORDS
        return ("block", "distributed") if is_short else ("block",)

    def _group_rows(self, rows: int, lanes: int, device: Device) -> int:
        """Rows that share an address: the fewest block RAMs, then the fewest groups."""
        sizes = self._group_sizes(rows, lanes, device)
        least = sizes[0]

        def cost(group_rows: int) -> tuple[int, int]:
            memory = self.memory(rows, lanes, group_rows, device)
            return sum(tiling.count for tiling in memory.memories(0, ())), -group_rows

        few = [n for n in sizes if n == least or n * lanes <= MOST_GROUPED]
        return min(few, key=cost)

    def _group_sizes(self, rows: int, lanes: int, device: Device) -> list[int]:
        """List how many rows may share an address."""
        sizes = range(min(2 * self.result_lanes, rows), rows + 1, self.result_lanes)
        return [
            n
            for n in sizes
            if self.place is None or divides_places(self.memory(rows, lanes, n, device))
        ]

    def parts(self, folding: ContractionFolding, device: Device) -> tuple[Part, ...]:
        return folding.parts(self, device)

    def cycles(self, folding: ContractionFolding, device: Device) -> int:
        return folding.cycles(self, device)

    def contents(self, folding: ContractionFolding) -> Contents:
        del folding
        bias = [self.bias] * self.out_channels
        return {"requantize": requant_contents(self.requant, bias, self.result_lanes)}


def _of_depth(
    folding: ContractionFolding, layer: ContractionLayer, device: Device, depth: int
) -> LineBuffer:
    """Return the line buffer of the folding with another depth."""
    return replace(folding, depth=depth).buffer(layer, device)


@lowers("contraction")
def _lower_contraction(context: StreamContext[layers.Contraction]) -> ContractionLayer:
    layer, cache = context.layer, context.cache
    return ContractionLayer(
        **context.common, place=cache.place_format if cache else None,
        product=layer.sizes, second=layer.second, window=Window(*layer.image),
        requant=layer.requant, w_bits=max(2, signed_bits(*layer.differences[1])),
        acc_bits=signed_bits(*layer.sums), gain=layer.gain, bias=layer.bias,
    )  # fmt: skip
