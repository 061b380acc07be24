"""Units of a shared engine: parts of the streaming architecture that a tensor's codes pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.functions.shared_normalize import SharedNormalize
from nnef_hw.parts.functions.softmax import DividingSoftmax, SoftmaxPart

__all__ = ["Exponentiated", "Normalized", "StreamUnit", "StreamUnits", "UnitNumber", "UnitTable"]

_PASSAGE_LUTS = 200.0
"""Of what reads words for units, and writes them: places, in turn."""
_WAY_LUTS = 45.0
"""Of what makes codes of words, and words of codes."""
_WAY_FLIP_FLOPS = 40.0
_WAITING_LUTS = 1.0
"""Of each bit of a word that waits for a unit which takes whole words."""
_UNIT_LUTS = 14.0
"""Of what chooses a unit, per unit and way: bits of codes, and of handshakes."""


@dataclass(frozen=True, kw_only=True)
class UnitNumber(Record):
    """Which unit a tensor passes."""

    unit: int = fact("number of the unit that a tensor passes", counted=True)


@dataclass(frozen=True, kw_only=True)
class UnitTable(Record):
    """Which function a unit computes."""

    unit_table: int = fact("which table of its unit a layer takes", constant=True)


@dataclass(frozen=True, kw_only=True)
class Exponentiated(Record):
    """Numbers in which one softmax differs from another one."""

    last_channel: int = fact("channels of a softmax, less one", constant=True)
    masks: int = fact("a softmax hides the lowest code", bits=1, constant=True)
    fewer: int = fact(
        "by how many places its probabilities have fewer than the finest ones", constant=True,
        trained=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Normalized(Record):
    """Numbers in which one normalization differs from another one."""

    epsilon: int = fact("what is added to a variance", constant=True, trained=True)
    finer: int = fact(
        "bits by which the fraction of normalized numbers is shorter than the longest one",
        constant=True, trained=True,
    )  # fmt: skip
    farther: int = fact(
        "bits by which the shift behind their scales exceeds the least one",
        constant=True, trained=True,
    )  # fmt: skip
    zero_code: int = fact(
        "the code of 0.0 that is normalized, where no mean is taken", bits=CODE_BITS,
        constant=True, trained=True,
    )  # fmt: skip
    lowest: int = fact(
        "the lowest code that is normalized to", bits=CODE_BITS, constant=True, trained=True
    )
    below: int = fact(
        "by how much the highest one is below the highest code", bits=CODE_BITS,
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
    hides
        Whether some instructions hide the channels of a pixel that are behind a place.
    pixels
        Most pixels of a tensor that passes, of all frames of a batch.
    """

    part: Part
    source: tuple[int, bool]
    target: tuple[int, bool]
    ports: tuple[tuple[str, str], ...] = ()
    constant_bits: int = 0
    hides: bool = False
    pixels: int = 1

    @property
    def table_beats(self) -> int:
        """Beats of its tables, of a program that is a stream."""
        part = self.part
        if not isinstance(part, SoftmaxPart) or not part.is_written:
            return 0
        return -(-part.exponential_bits // BEAT_BITS) * part.table_memory.depth

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of its part that follow from the weights."""
        return {name: getattr(self.part, name) for name in self.part.trained_sizes}

    def with_sizes(self, sizes: Mapping[str, int]) -> StreamUnit:
        """Return the unit with such numbers of other weights."""
        part: Part = replace(self.part, **sizes)
        bits = part.constant_bits if isinstance(part, SharedNormalize) else 0
        return replace(self, part=part, constant_bits=bits)

    def differences(self, built: StreamUnit) -> Iterator[str]:
        """Yield the values that other weights want and a bitstream's unit does not have."""
        own, there = self.part, built.part
        if type(own) is not type(there) or self.with_sizes(built.sizes).part != there:
            yield f"its {own.label} unit has another size or format"
        elif isinstance(own, SoftmaxPart) and own.tables > built.sizes["tables"]:
            yield f"its softmaxes take {own.tables} tables, there are {built.sizes['tables']}"


@dataclass(frozen=True, kw_only=True)
class StreamUnits(Feature):
    """Functions of many codes: a tensor is sent through a part, and what comes back is written.

    Parameters
    ----------
    units
        The parts, in the order of their numbers.
    ways
        Pixels that pass at once, each its own copy of a part: a power of two. No tensor needs more
        copies of its part than it has pixels.
    lanes
        Codes of a beat of each part: 1, or all of a word.
    """

    label = "units that tensors pass"
    component = "nnef_hw.rtl.engine.units:EngineUnits"
    says = (UnitNumber, UnitTable, Exponentiated, Normalized)

    units: tuple[StreamUnit, ...]
    ways: int = 1
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.ways < 1 or self.ways & (self.ways - 1):
            raise ValueError(f"Engine ways must be a power of two, not {self.ways}")

    def kept_values(self) -> Fields:
        return {"units": [unit.sizes for unit in self.units]}

    def with_kept(self, kept: AttributeMap) -> Self:
        pairs = zip(self.units, kept["units"], strict=True)
        return replace(self, units=tuple(unit.with_sizes(sizes) for unit, sizes in pairs))

    @classmethod
    def kept_names(cls) -> Mapping[str, str]:
        return {"units": "units"}

    @property
    def parts(self) -> Sequence[Part]:
        return [unit.part for unit in self.units for _ in range(self.copies(unit))]

    def copies(self, unit: StreamUnit) -> int:
        """Return how many copies of a unit's part there are."""
        return min(self.ways, unit.pixels)

    @property
    def records(self) -> Sequence[type[Record]]:
        fields = {field for unit in self.units for _, field in unit.ports}
        fields |= UnitNumber.facts().keys() if len(self.units) > 1 else set()
        return [record for record in self.says if fields & record.facts().keys()]

    def widths(self, engine: EngineSizes) -> Mapping[str, int]:
        parts = [unit.part for unit in self.units]
        normalize = [part for part in parts if isinstance(part, SharedNormalize)]
        softmax = [part for part in parts if isinstance(part, SoftmaxPart)]
        dividing = [part for part in softmax if isinstance(part, DividingSoftmax)]
        greatest = {
            "unit_table": [part.tables - 1 for part in softmax],
            "last_channel": [part.channels - 1 for part in dividing],
            "fewer": [part.fewer_places for part in dividing],
            "epsilon": [(1 << part.epsilon_bits) - 1 for part in normalize],
            "finer": [part.finer_steps for part in normalize],
            "farther": [part.farther_steps for part in normalize],
        }
        return {
            name: max(1, *(x.bit_length() for x in own)) for name, own in greatest.items() if own
        }

    @property
    def constant_bits(self) -> int:
        """Width of the constants of a channel."""
        return max(unit.constant_bits for unit in self.units)

    @property
    def beats(self) -> int:
        """Beats of all tables of a program that is a stream."""
        return sum(unit.table_beats for unit in self.units)

    def waiting(self, word_cycles: int) -> int:
        """Return how many words of a way may be on their way to its part.

        Of parts that take a word per cycle as many as keep it busy: a word is there ``word_cycles``
        after its address, and taken in the next cycle at the earliest.
        """
        return 2 if self.lanes == 1 else word_cycles + 2

    def copies_constants(self, engine: EngineSizes, unit: StreamUnit) -> bool:
        """Whether each part has a copy of its constants: several do not read them in step.

        Nor does one that takes more of them at once than are a word.
        """
        is_alone = self.copies(unit) == 1 and self.lanes <= engine.results
        return unit.constant_bits > 0 and not is_alone

    def constant_banks(self, engine: EngineSizes) -> int:
        """Return how many words of constants a copy gives at once."""
        return max(1, self.lanes // engine.results)

    def constant_memory(self, engine: EngineSizes, unit: StreamUnit) -> Tiling:
        """Return a bank of a copy of the constants of a layer."""
        assert isinstance(unit.part, SharedNormalize), unit
        words = -(-unit.part.channels // engine.results)
        depth = max(2, -(-words // self.constant_banks(engine)))
        return tile_memory(engine.short_ram, depth, engine.results * unit.constant_bits)

    def memories(self, engine: EngineSizes) -> Sequence[Tiling]:
        return [
            self.constant_memory(engine, unit)
            for unit in self.units
            if self.copies_constants(engine, unit)
            for _ in range(self.copies(unit) * self.constant_banks(engine))
        ]

    def luts(self, engine: EngineSizes, device: Device) -> float:
        codes = _WAY_LUTS + engine.word_bits * (
            2.0 if self.lanes == 1 else _WAITING_LUTS * self.waiting(1)
        )
        # Of the constants of channels that are a word, those of a beat are chosen.
        others = max(0, engine.results - self.lanes) / 2
        chosen = sum(
            self.copies(unit) * (self.lanes * _UNIT_LUTS + unit.constant_bits * others)
            for unit in self.units
        )
        joined = engine.word_bits * (self.ways - 1) / 2
        return _PASSAGE_LUTS + self.ways * codes + chosen + joined

    def flip_flops(self, engine: EngineSizes) -> float:
        words = 3.0 if self.lanes == 1 else self.waiting(1) + 1.0
        return engine.word_bits + self.ways * (words * engine.word_bits + _WAY_FLIP_FLOPS)

    def differences(self, built: Feature) -> Iterator[str]:
        assert isinstance(built, StreamUnits)
        if len(self.units) != len(built.units):
            yield f"it has {len(self.units)} {self.label}, there are {len(built.units)}"
            return
        for own, there in zip(self.units, built.units, strict=True):
            yield from own.differences(there)
