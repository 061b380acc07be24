"""Functions of two streams of one image, or of one and a constant."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import AddRequant, QType, Requant, signed_bits
from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.arithmetic.tables import lowest_code
from nnef_hw.arithmetic.tflite.division import TfliteQuotient
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant, TfliteRequant
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.parts import Part
from nnef_hw.parts.functions.eltwise import EltwiseExtremum, EltwiseProduct, EltwiseSum
from nnef_hw.parts.functions.quotient import Quotient
from nnef_hw.parts.functions.tablesum import TableSum
from nnef_hw.parts.streams.constant import Constant
from nnef_hw.parts.streams.lanes import side_by_side
from nnef_hw.parts.streams.stream import Skid
from nnef_hw.streaming.layers.layer import (
    AnyContext,
    Contents,
    Folding,
    PixelLayer,
    StreamContext,
    lowers,
)
from nnef_hw.streaming.layers.requantize import (
    RequantizerFolding,
    digit_choices,
    interval_of,
    make_requantizer,
    requant_contents,
)
from nnef_hw.streaming.layers.table import TableLayer

__all__ = ["ExtremumLayer", "ProductLayer", "QuotientLayer", "SumLayer", "TableSumLayer"]

QUOTIENT_DIGITS = (1, 2, 4)
"""Bits per cycle of a quotient's multiplier, slowest first."""

F = TypeVar("F", bound=Folding)

LOGIC_CODES = 128
"""Codes of a constant up to which LUTs hold them; more of them take block RAM."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EltwiseLayer(PixelLayer[F]):
    """A function of two operands, code by code.

    ``codes`` of the constant, one for all channels, one each or those of a whole frame, stand for
    the second operand.
    """

    second: QType
    codes: tuple[int, ...] = ()

    def least_queue(self, device: Device) -> int:
        # It takes an operand when the other one is there, too, and both may come from far away.
        return 2 if device.long_wires and not self.codes else 0

    def operand_format(self, operand: int) -> QType:
        return self.second if operand else self.source

    def constant(self, device: Device) -> Constant | None:
        if not self.codes:
            return None
        count = len(self._given) // self.operand_lanes
        return Constant(
            count=count, repeats=self.beats // count, bits=self.second.bits,
            signed=self.second.signed, lanes=self.operand_lanes, ram=device.ram,
            style="logic" if len(self.codes) <= LOGIC_CODES else "block",
        )  # fmt: skip

    @property
    def _given(self) -> tuple[int, ...]:
        """Codes of the constant, of whole beats: each lane gives the code of all channels."""
        return self.codes * self.operand_lanes if len(self.codes) == 1 else self.codes

    def contents(self, folding: F) -> Contents:
        own = self.operator_contents(folding)
        return {**own, "constant": {"codes": self._given}} if self.codes else own

    @abstractmethod
    def operator_contents(self, folding: F) -> Contents:
        """Return the contents of the operator and of the part behind."""

    @property
    def formats(self) -> AttributeMap:
        """Formats of both operands."""
        operands = (self.source, self.second)
        return {
            "in_bits": tuple(qtype.bits for qtype in operands),
            "in_signed": tuple(qtype.signed for qtype in operands),
        }

    @property
    def zero_points(self) -> tuple[int, int]:
        """Zero points of both operands."""
        return self.source.zero_point, self.second.zero_point


@dataclass(frozen=True, eq=False, kw_only=True)
class SumLayer(EltwiseLayer[Folding]):
    """A sum or difference; ``requant`` has mults in the order of the operands."""

    label = "sum"

    requant: AddRequant

    def foldings(self, device: Device) -> Sequence[Folding]:
        del device
        return [Folding()]

    def parts(self, folding: Folding, device: Device) -> tuple[Part, ...]:
        del folding
        target: Fields = {"out_bits": self.target.bits, "out_signed": self.target.signed}
        total = EltwiseSum(**self.formats, **target, lanes=self.operand_lanes)
        # Whoever reads sums may be far away, and from several of them.
        beat = Skid(bits=self.operand_lanes * self.target.bits + 1)
        return (total, beat) if device.long_wires else (total,)

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.beats

    def operator_contents(self, folding: Folding) -> Contents:
        del folding
        return {"sum": {"requant": self.requant, "in_zero_points": self.zero_points}}


@dataclass(frozen=True, eq=False, kw_only=True)
class ExtremumLayer(EltwiseLayer[Folding]):
    """The larger of two codes, or the smaller one."""

    label = "extremum"

    greatest: bool

    def foldings(self, device: Device) -> Sequence[Folding]:
        del device
        return [Folding()]

    def parts(self, folding: Folding, device: Device) -> tuple[Part, ...]:
        del folding, device
        codes: Fields = {"bits": self.source.bits, "signed": self.source.signed}
        return (EltwiseExtremum(greatest=self.greatest, lanes=self.operand_lanes, **codes),)

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.beats

    def operator_contents(self, folding: Folding) -> Contents:
        del folding
        return {}


@dataclass(frozen=True, eq=False, kw_only=True)
class RequantizedLayer(EltwiseLayer[RequantizerFolding]):
    """An operator of which every result is requantized."""

    requant: Requant | TfliteRequant
    acc_bits: int

    @abstractmethod
    def operator(self, device: Device) -> Part:
        """Return the part that takes the operands."""

    def foldings(self, device: Device) -> Sequence[RequantizerFolding]:
        return [RequantizerFolding(**digits) for digits in digit_choices(self.requant, device)]

    def parts(self, folding: RequantizerFolding, device: Device) -> tuple[Part, ...]:
        requantizer = make_requantizer(
            self.requant, folding, channels=1, acc_bits=self.acc_bits, target=self.target,
            lanes=self.result_lanes,
        )  # fmt: skip
        return (side_by_side(self.operator(device), self.operand_lanes), requantizer)

    def cycles(self, folding: RequantizerFolding, device: Device) -> int:
        del device
        return self.beats * interval_of(self.requant, folding)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProductLayer(RequantizedLayer):
    """A product."""

    label = "product"

    def operator(self, device: Device) -> Part:
        del device
        return EltwiseProduct(**self.formats)

    def operator_contents(self, folding: RequantizerFolding) -> Contents:
        del folding
        return {
            "product": {"in_zero_points": self.zero_points},
            "requantize": requant_contents(self.requant, [0]),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class TableSumLayer(RequantizedLayer):
    """A sum of what tables say of every code of both operands, lowest code first."""

    label = "table_sum"

    tables: tuple[NDArray[np.int64], ...]

    def operator(self, device: Device) -> Part:
        return TableSum(**self.formats, acc_bits=self.acc_bits, ram=device.ram)

    def operator_contents(self, folding: RequantizerFolding) -> Contents:
        del folding
        return {
            "table_sum": {"entries": [table.tolist() for table in self.tables]},
            "requantize": requant_contents(self.requant, [0]),
        }


@dataclass(frozen=True, kw_only=True)
class QuotientFolding(Folding):
    """Bits of a factor that are multiplied per cycle."""

    digit_bits: int


@dataclass(frozen=True, eq=False, kw_only=True)
class QuotientLayer(EltwiseLayer[QuotientFolding]):
    """A quotient; ``inverts`` if the first operand is the divisor."""

    label = "quotient"

    requant: TfliteQuotient
    inverts: bool

    def foldings(self, device: Device) -> Sequence[QuotientFolding]:
        del device
        return [QuotientFolding(digit_bits=bits) for bits in QUOTIENT_DIGITS]

    def parts(self, folding: QuotientFolding, device: Device) -> tuple[Part, ...]:
        return (side_by_side(self._part(folding, device), self.operand_lanes),)

    def _part(self, folding: QuotientFolding, device: Device) -> Quotient:
        return Quotient(
            **self.formats, out_bits=self.target.bits, out_signed=self.target.signed,
            digit_bits=folding.digit_bits, inverts=self.inverts, ram=device.ram,
        )  # fmt: skip

    def cycles(self, folding: QuotientFolding, device: Device) -> int:
        return self.beats * self._part(folding, device).interval

    def operator_contents(self, folding: QuotientFolding) -> Contents:
        del folding
        return {"quotient": {"requant": self.requant, "in_zero_points": self.zero_points}}


def _operands(context: AnyContext) -> tuple[bool, Fields]:
    """Return whether the operands change places, and fields; a constant comes second."""
    first, second = context.layer.operands
    swapped = first.data is not None
    if swapped:
        first, second = second, first
    codes: tuple[int, ...] = ()
    if second.data is not None:
        codes = _in_stream_order(second.data, context.extents["channels"])
    return swapped, {
        **context.names, **context.extents, "source": layers.format_of(first),
        "second": layers.format_of(second), "target": context.layer.target, "codes": codes,
    }  # fmt: skip


def _in_stream_order(constant: Array, channels: int) -> tuple[int, ...]:
    """Return the codes of a constant, one or [1, C, ...]: pixel by pixel, channels innermost."""
    columns = constant.reshape(channels if constant.size > 1 else 1, -1)
    return tuple(columns.T.reshape(-1).tolist())


@lowers("add", "sub")
def _lower_sum(context: StreamContext[layers.Sum]) -> SumLayer | TableSumLayer:
    swapped, fields = _operands(context)
    requant = context.layer.requant
    if not isinstance(requant, TfliteAddRequant):
        if swapped:
            requant = replace(requant, mult=requant.mult[::-1])
        return SumLayer(**fields, requant=requant)
    requant = requant.swapped if swapped else requant
    tables = tuple(
        requant.scale_operand(n, lowest_code(qtype) + np.arange(1 << qtype.bits) - qtype.zero_point)
        for n, qtype in enumerate((fields["source"], fields["second"]))
    )
    limits = sum(int(table.min()) for table in tables), sum(int(table.max()) for table in tables)
    return TableSumLayer(
        **fields, requant=requant.of_sum, acc_bits=signed_bits(*limits), tables=tables
    )


@lowers("mul")
def _lower_product(context: StreamContext[layers.Product]) -> ProductLayer:
    layer = context.layer
    return ProductLayer(
        **_operands(context)[1], requant=layer.requant, acc_bits=signed_bits(*layer.limits)
    )


@lowers("quotient")
def _lower_quotient(context: StreamContext[layers.Quotient]) -> QuotientLayer | TableLayer:
    swapped, fields = _operands(context)
    requant = context.layer.requant
    if len(fields["codes"]) != 1:
        return QuotientLayer(**fields, requant=requant, inverts=swapped)
    source, second = fields["source"], fields["second"]
    operands = [
        lowest_code(source) + np.arange(1 << source.bits) - source.zero_point,
        np.array(fields["codes"]) - second.zero_point,
    ]
    entries = requant.apply(*(reversed(operands) if swapped else operands))
    return TableLayer(
        **context.names,
        **context.extents,
        source=source,
        target=context.layer.target,
        entries=entries,
    )


@lowers("max", "min")
def _lower_extremum(context: StreamContext[layers.Extremum]) -> ExtremumLayer:
    return ExtremumLayer(**_operands(context)[1], greatest=context.layer.greatest)
