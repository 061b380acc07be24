"""Units of a shared engine: parts of the streaming architecture that a tensor's codes pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.functions.shared_normalize import SharedNormalize
from nnef_hw.parts.functions.softmax import SoftmaxPart

__all__ = ["Normalized", "StreamUnit", "StreamUnits", "UnitTable"]

_UNIT_LUTS = 20.0
"""Of what chooses a unit, per unit: bits of codes, and of handshakes."""
_CONSTANT_LUTS = 3.0
"""Per bit of the address of the constants that a unit takes."""


@dataclass(frozen=True, kw_only=True)
class UnitTable(Record):
    """Which function a unit computes."""

    unit_table: int = fact("which table of its unit a layer takes", counted=True, constant=True)


@dataclass(frozen=True, kw_only=True)
class Normalized(Record):
    """What one normalization does otherwise than another one."""

    epsilon: int = fact("what is added to a variance", counted=True, constant=True, trained=True)
    finer: int = fact(
        "bits by which the fraction of normalized numbers is shorter than the longest one",
        counted=True, constant=True, trained=True,
    )  # fmt: skip
    farther: int = fact(
        "bits by which the shift behind their scales exceeds the least one",
        counted=True, constant=True, trained=True,
    )  # fmt: skip
    zero_code: int = fact(
        "the code of 0.0 that is normalized, where no mean is taken", bits=CODE_BITS,
        constant=True, trained=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class StreamUnit:
    """A part that a tensor passes, code by code.

    Parameters
    ----------
    part
        The part.
    source, target
        Width and signedness of the codes that it takes, and of those that it gives.
    ports
        Fields of the instruction, by the names of the component's ports that they go to.
    constant_bits
        Width of the constants that it takes in turn from the memory of biases and factors; 0 if it
        takes none.
    """

    part: Part
    source: tuple[int, bool]
    target: tuple[int, bool]
    ports: tuple[tuple[str, str], ...] = ()
    constant_bits: int = 0

    @property
    def table_beats(self) -> int:
        """Beats of its tables, of a program that is a stream."""
        part = self.part
        if not isinstance(part, SoftmaxPart) or not part.is_written:
            return 0
        return -(-part.exponential_bits // BEAT_BITS) * part.table_memory.depth

    def differences(self, built: StreamUnit) -> Iterator[str]:
        """Yield what a bitstream's unit does not have that other weights want."""
        own, there = self.part, built.part
        if isinstance(own, SharedNormalize) and isinstance(there, SharedNormalize):
            yield from own.differences(there)
        elif self != built:
            yield f"its {own.label} has another size, format or number of tables"


@dataclass(frozen=True, kw_only=True)
class StreamUnits(Feature):
    """Functions of many codes: a tensor is sent through a part, and loaded from there.

    Parameters
    ----------
    units
        The parts, in the order of their numbers.
    """

    label = "units that tensors pass"
    says = (UnitTable, Normalized)

    units: tuple[StreamUnit, ...]

    @property
    def parts(self) -> Sequence[Part]:
        return [unit.part for unit in self.units]

    @property
    def records(self) -> Sequence[type[Record]]:
        fields = {field for unit in self.units for _, field in unit.ports}
        return [record for record in self.says if fields & record.facts().keys()]

    @property
    def constant_bits(self) -> int:
        """Width of the constants of a channel."""
        return max(unit.constant_bits for unit in self.units)

    @property
    def beats(self) -> int:
        """Beats of all tables of a program that is a stream."""
        return sum(unit.table_beats for unit in self.units)

    def luts(self, engine: EngineSizes, device: Device) -> float:
        taking = any(unit.constant_bits for unit in self.units)
        address = _CONSTANT_LUTS * engine.layout.widths.get("constant", 0) * taking
        return _UNIT_LUTS * len(self.units) + address

    def differences(self, built: Feature) -> Iterator[str]:
        assert isinstance(built, StreamUnits)
        if len(self.units) != len(built.units):
            yield f"it has {len(self.units)} {self.label}, there are {len(built.units)}"
            return
        for own, there in zip(self.units, built.units, strict=True):
            yield from own.differences(there)
