"""Functions of units: softmax and normalization."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.arithmetic.numerics import QType, signed_bits
from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineContext, EngineLayer, lowers
from nnef_hw.engine.layers.place import Place
from nnef_hw.engine.layers.unit import ALONE, UnitForm, UnitLayer
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.ir import layers
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.engine.units import Exponentiated, Normalized, StreamUnit, UnitTable
from nnef_hw.parts.functions.normalize import FAST_SPACINGS, SPACINGS
from nnef_hw.parts.functions.pipelined_softmax import PipelinedSoftmax
from nnef_hw.parts.functions.shared_normalize import SharedNormalize
from nnef_hw.parts.functions.softmax import DividingSoftmax, Softmax, SoftmaxPart
from nnef_hw.parts.functions.tflite_softmax import TfliteSoftmax

__all__ = ["ExponentialLayer", "NormalizeLayer", "SoftmaxLayer", "TfliteSoftmaxLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExponentialLayer(UnitLayer):
    """Softmax over the channels of a pixel.

    Parameters
    ----------
    exponentials
        Its table.
    place
        The last channel that is not hidden, if that depends on an input.
    """

    label = "softmax"

    exponentials: tuple[int, ...]
    place: Place | None = None

    @abstractmethod
    def part(self, peers: Sequence[Self], ram: BlockRam, form: UnitForm) -> SoftmaxPart: ...

    def unit(
        self, peers: Sequence[Self], ram: BlockRam, form: UnitForm, *, is_written: bool
    ) -> StreamUnit:
        found = super().unit(peers, ram, form, is_written=is_written)
        part = self.part(peers, ram, form)
        chosen = (("table_number", "unit_table"),) if part.tables > 1 else ()
        return replace(
            found, part=replace(part, is_written=is_written), ports=chosen,
            hides=any(x.place is not None for x in peers),
        )  # fmt: skip

    def contents(self, peers: Sequence[Self]) -> AttributeMap:
        return {"table": self._entries(peers)}

    def _entries(self, peers: Sequence[Self]) -> list[int]:
        """Return the entries of all tables, each with as many as there are codes."""
        depth = 1 << self.widest(peers)
        return [entry for table in _tables(peers) for entry in (*table, *[0] * depth)[:depth]]

    def table_beats(self, peers: Sequence[Self], unit: StreamUnit) -> Sequence[int]:
        part = unit.part
        assert isinstance(part, SoftmaxPart), part
        entries = [*self._entries(peers), *[0] * part.table_memory.depth]
        return [
            entry >> place & (1 << BEAT_BITS) - 1
            for entry in entries[: part.table_memory.depth]
            for place in range(0, part.exponential_bits, BEAT_BITS)
        ]

    def own_records(self, peers: Sequence[Self], unit: StreamUnit) -> Sequence[Record]:
        hides = () if self.place is None else (self.place.record(hides=1),)
        part = unit.part
        assert isinstance(part, SoftmaxPart), part
        if part.tables == 1:
            return hides
        return (UnitTable(unit_table=_tables(peers).index(self.exponentials)), *hides)


def _tables(peers: Sequence[ExponentialLayer]) -> list[tuple[int, ...]]:
    """Return the different tables."""
    return list(dict.fromkeys(layer.exponentials for layer in peers))


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxLayer(ExponentialLayer):
    """Softmax that divides exponentials by their sum.

    Parameters
    ----------
    places
        Bits of a probability below 1.
    is_masked
        Whether the lowest code is hidden.
    """

    places: int
    is_masked: bool

    @property
    def kind(self) -> Hashable:
        return type(self), self.behind.bits

    def part(self, peers: Sequence[Self], ram: BlockRam, form: UnitForm) -> DividingSoftmax:
        places = [x.places for x in peers]
        fields: Fields = {
            "channels": max(x.source.channels for x in peers), "bits": self.widest(peers),
            "signed": False, "ram": ram, "tables": len(_tables(peers)), "is_shared": True,
            "out_bits": self.behind.bits, "places": max(places),
            "fewer_places": max(places) - min(places),
        }  # fmt: skip
        quotient = max(places) + 1
        if form.lanes == 1 and form.pace >= quotient:
            return Softmax(**fields)
        return PipelinedSoftmax(stages=-(-quotient // form.pace), lanes=form.lanes, **fields)

    def takes_words(self, shape: Shape, ram: BlockRam) -> bool:
        return True

    def unit(
        self, peers: Sequence[Self], ram: BlockRam, form: UnitForm, *, is_written: bool
    ) -> StreamUnit:
        found = super().unit(peers, ram, form, is_written=is_written)
        ports = {"last_channel": "last_channel", "masks": "masks"}
        ports |= {"fewer": "fewer"} if self.part(peers, ram, form).fewer_places else {}
        return replace(found, ports=(*found.ports, *ports.items()))

    def passed(self, part: Part) -> Part:
        assert isinstance(part, DividingSoftmax), part
        return replace(part, channels=self.source.channels)

    def own_records(self, peers: Sequence[Self], unit: StreamUnit) -> Sequence[Record]:
        part = unit.part
        assert isinstance(part, DividingSoftmax), part
        own = Exponentiated(
            last_channel=self.source.channels - 1, masks=int(self.is_masked),
            fewer=part.places - self.places,
        )  # fmt: skip
        return (own, *super().own_records(peers, unit))

    def missing(self, unit: StreamUnit) -> Iterator[str]:
        part = unit.part
        assert isinstance(part, DividingSoftmax), part
        yield from self.part([self], part.ram, ALONE).missing(part)


@dataclass(frozen=True, eq=False, kw_only=True)
class TfliteSoftmaxLayer(ExponentialLayer):
    """Softmax as TensorFlow Lite computes it."""

    @property
    def kind(self) -> Hashable:
        return type(self), self.source.channels, self.before.bits, self.before.signed

    def part(self, peers: Sequence[Self], ram: BlockRam, form: UnitForm) -> TfliteSoftmax:
        return TfliteSoftmax(
            channels=self.source.channels, bits=self.before.bits, signed=self.before.signed,
            ram=ram, tables=len(_tables(peers)),
        )  # fmt: skip

    def unit(
        self, peers: Sequence[Self], ram: BlockRam, form: UnitForm, *, is_written: bool
    ) -> StreamUnit:
        found = super().unit(peers, ram, form, is_written=is_written)
        source = self.before.bits, self.before.signed
        return replace(found, source=source, target=(self.behind.bits, self.behind.signed))


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalizeLayer(UnitLayer):
    """Layer or RMS normalization over the channels of a pixel.

    Parameters
    ----------
    requant, mult, offset
        Its integers.
    """

    label = "normalize"

    requant: NormalizeRequant
    mult: NDArray[np.int64]
    offset: NDArray[np.int64]

    @property
    def kind(self) -> Hashable:
        return type(self), self.source.channels, self.requant.centered

    @cached_property
    def _own(self) -> NormalizeRequant:
        """Integers of the layer, for codes as the engine has them."""
        requant, lowest = self.requant, self.behind.lo
        return replace(
            requant, zero_point=requant.zero_point - lowest, lo=requant.lo - lowest,
            hi=requant.hi - lowest,
        )  # fmt: skip

    def part(self, peers: Sequence[Self], ram: BlockRam, form: UnitForm) -> SharedNormalize:
        requants = [x.requant for x in peers]
        fractions, shifts = ([getattr(x, name) for x in requants] for name in ("fraction", "shift"))
        offsets = [
            SharedNormalize.whole_offset(x._own, int(end))
            for x in peers for end in (x.offset.min(), x.offset.max())
        ]  # fmt: skip
        spacing = next(x for x in reversed(SPACINGS) if x <= form.pace)
        return SharedNormalize(
            channels=self.source.channels, bits=self.widest(peers), signed=False,
            out_bits=CODE_BITS, out_signed=False, centered=self.requant.centered,
            epsilon_bits=max(x.epsilon.bit_length() for x in requants), fraction=max(fractions),
            offset_bits=signed_bits(min(offsets), max(offsets)),
            spacing=spacing, digits=2 if spacing in FAST_SPACINGS else 1, ram=ram,
            finer_steps=max(fractions) - min(fractions), least_shift=min(shifts),
            farther_steps=max(shifts) - min(shifts), lanes=form.lanes,
        )  # fmt: skip

    def takes_words(self, shape: Shape, ram: BlockRam) -> bool:
        """Whether pixels are whole words, and constants are copied until a pixel needs them."""
        channels, lanes = self.source.channels, shape.lanes
        if channels % lanes:
            return False
        part = self.part([self], ram, UnitForm(lanes=lanes))
        return channels // shape.results <= part.beats + part.root_cycles

    def unit(
        self, peers: Sequence[Self], ram: BlockRam, form: UnitForm, *, is_written: bool
    ) -> StreamUnit:
        found = super().unit(peers, ram, form, is_written=is_written)
        part = self.part(peers, ram, form)
        part = part.roomy if is_written else part
        ports = {name: name for name in ("epsilon", "finer", "farther", "lowest", "below")}
        ports |= {} if part.centered else {"zero_point": "zero_code"}
        return replace(
            found, part=part, ports=tuple(ports.items()), constant_bits=part.constant_bits
        )

    def own_records(self, peers: Sequence[Self], unit: StreamUnit) -> Sequence[Record]:
        part, requant = unit.part, self._own
        assert isinstance(part, SharedNormalize), part
        zero_code = 0 if part.centered else self.before.zero_point - self.before.lo
        return (
            Normalized(
                epsilon=requant.epsilon, finer=part.fraction - requant.fraction,
                farther=requant.shift - part.least_shift, zero_code=zero_code,
                lowest=requant.lo, below=QType(part.out_bits, False, 1.0).hi - requant.hi,
            ),
        )  # fmt: skip

    def missing(self, unit: StreamUnit) -> Iterator[str]:
        part = unit.part
        assert isinstance(part, SharedNormalize), part
        yield from self.part([self], part.ram, UnitForm(part.spacing)).missing(part)

    @property
    def has_constants(self) -> bool:
        return True

    def constants(self, unit: StreamUnit) -> Sequence[int]:
        part = unit.part
        assert isinstance(part, SharedNormalize), part
        return part.constants(self._own, self.mult.tolist(), self.offset.tolist())


@lowers("softmax")
def _lower_softmax(context: EngineContext[layers.Softmax]) -> EngineLayer:
    layer = context.layer
    common = {**UnitLayer.of_unit(context), "exponentials": tuple(layer.table.tolist())}
    if layer.is_tflite:
        return TfliteSoftmaxLayer(**common)
    return SoftmaxLayer(**common, places=layer.places, is_masked=layer.is_masked)


@lowers("normalize")
def _lower_normalize(context: EngineContext[layers.Normalization]) -> EngineLayer:
    layer = context.layer
    return NormalizeLayer(
        **UnitLayer.of_unit(context), requant=layer.requant, mult=layer.mult, offset=layer.offset
    )
