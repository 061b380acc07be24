"""Functions of units: softmax and normalization."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.engine.layers.constant import Place
from nnef_hw.engine.layers.layer import EngineContext, EngineLayer, lowers
from nnef_hw.engine.layers.unit import UnitLayer
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.ir import layers
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.engine.units import Normalized, StreamUnit, UnitTable
from nnef_hw.parts.functions.normalize import SPACINGS
from nnef_hw.parts.functions.pipelined_softmax import PipelinedSoftmax
from nnef_hw.parts.functions.shared_normalize import SharedNormalize
from nnef_hw.parts.functions.softmax import Softmax, SoftmaxPart
from nnef_hw.parts.functions.tflite_softmax import TfliteSoftmax

__all__ = ["NormalizeLayer", "SoftmaxLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxLayer(UnitLayer):
    """Softmax over the channels of a pixel.

    Parameters
    ----------
    exponentials
        Its table.
    places
        Bits of a probability below 1; None as TensorFlow Lite computes it.
    is_masked
        Whether the lowest code is hidden.
    place
        The last channel that is not hidden, if that depends on an input.
    """

    label = "softmax"

    exponentials: tuple[int, ...]
    places: int | None
    is_masked: bool
    place: Place | None = None

    @property
    def kind(self) -> Hashable:
        return super().kind, self.places, self.is_masked

    def part(self, peers: Sequence[Self], ram: BlockRam, pace: int) -> SoftmaxPart:
        fields: dict[str, Any] = {
            "channels": self.source.channels, "bits": self.before.bits,
            "signed": self.before.signed, "ram": ram, "tables": len(_tables(peers)),
        }  # fmt: skip
        if self.places is None:
            return TfliteSoftmax(**fields)
        fields |= {"out_bits": self.behind.bits, "places": self.places}
        quotient = self.places + 1
        if pace >= quotient:
            return Softmax(**fields)
        return PipelinedSoftmax(stages=-(-quotient // pace), **fields)

    def unit(
        self, peers: Sequence[Self], ram: BlockRam, pace: int, *, is_streamed: bool
    ) -> StreamUnit:
        found = super().unit(peers, ram, pace, is_streamed=is_streamed)
        part = self.part(peers, ram, pace)
        chosen = (("table_number", "unit_table"),) if part.tables > 1 else ()
        hides = any(x.place is not None for x in peers)
        return replace(
            found, part=replace(part, is_written=is_streamed), ports=chosen,
            hidden_behind=self.source.channels if hides else 0,
        )  # fmt: skip

    def contents(self, peers: Sequence[Self], *, is_streamed: bool) -> Mapping[str, Any]:
        masked = {"is_masked": True} if self.is_masked else {}
        if is_streamed:
            return masked
        return {**masked, "table": self._entries(peers)}

    def _entries(self, peers: Sequence[Self]) -> list[int]:
        """Return the entries of all tables, each with as many as there are codes."""
        depth = 1 << self.before.bits
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
        if not unit.ports:
            return hides
        return (UnitTable(unit_table=_tables(peers).index(self.exponentials)), *hides)


def _tables(peers: Sequence[SoftmaxLayer]) -> list[tuple[int, ...]]:
    """Return the different tables."""
    return list(dict.fromkeys(layer.exponentials for layer in peers))


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
        return super().kind, self.requant.centered, self.requant.lo, self.requant.hi

    def part(self, peers: Sequence[Self], ram: BlockRam, pace: int) -> SharedNormalize:
        requants = [x.requant for x in peers]
        fractions, shifts = ([getattr(x, name) for x in requants] for name in ("fraction", "shift"))
        offsets = [
            SharedNormalize.whole_offset(x.requant, int(end))
            for x in peers for end in (x.offset.min(), x.offset.max())
        ]  # fmt: skip
        return SharedNormalize(
            channels=self.source.channels, bits=self.before.bits, signed=self.before.signed,
            out_bits=self.behind.bits, out_signed=self.behind.signed,
            centered=self.requant.centered,
            epsilon_bits=max(x.epsilon.bit_length() for x in requants), fraction=max(fractions),
            offset_bits=signed_bits(min(offsets), max(offsets)),
            spacing=next(x for x in reversed(SPACINGS) if x <= pace), ram=ram,
            finer_steps=max(fractions) - min(fractions), least_shift=min(shifts),
            farther_steps=max(shifts) - min(shifts),
        )  # fmt: skip

    def unit(
        self, peers: Sequence[Self], ram: BlockRam, pace: int, *, is_streamed: bool
    ) -> StreamUnit:
        found = super().unit(peers, ram, pace, is_streamed=is_streamed)
        part = self.part(peers, ram, pace)
        part = part.roomy if is_streamed else part
        ports = {name: name for name in ("epsilon", "finer", "farther")}
        ports |= {} if part.centered else {"zero_point": "zero_code"}
        return replace(
            found, part=part, ports=tuple(ports.items()), constant_bits=part.constant_bits
        )

    def contents(self, peers: Sequence[Self], *, is_streamed: bool) -> Mapping[str, Any]:
        return {"lo": self.requant.lo, "hi": self.requant.hi}

    def own_records(self, peers: Sequence[Self], unit: StreamUnit) -> Sequence[Record]:
        part, requant = unit.part, self.requant
        assert isinstance(part, SharedNormalize), part
        zero_code = 0 if part.centered else self.before.zero_point & (1 << self.before.bits) - 1
        return (
            Normalized(
                epsilon=requant.epsilon, finer=part.fraction - requant.fraction,
                farther=requant.shift - part.least_shift, zero_code=zero_code,
            ),
        )  # fmt: skip

    def missing(self, unit: StreamUnit) -> Iterator[str]:
        part = unit.part
        assert isinstance(part, SharedNormalize), part
        yield from self.part([self], part.ram, part.spacing).missing(part)

    @property
    def has_constants(self) -> bool:
        return True

    def constants(self, unit: StreamUnit) -> Sequence[int]:
        part = unit.part
        assert isinstance(part, SharedNormalize), part
        return part.constants(self.requant, self.mult.tolist(), self.offset.tolist())


@lowers("softmax")
def _lower_softmax(context: EngineContext[layers.Softmax]) -> EngineLayer:
    layer = context.layer
    return SoftmaxLayer(
        **UnitLayer.of_unit(context), exponentials=tuple(layer.table.tolist()),
        places=None if layer.is_tflite else layer.places, is_masked=layer.is_masked,
    )  # fmt: skip


@lowers("normalize")
def _lower_normalize(context: EngineContext[layers.Normalization]) -> EngineLayer:
    layer = context.layer
    return NormalizeLayer(
        **UnitLayer.of_unit(context), requant=layer.requant, mult=layer.mult, offset=layer.offset
    )
