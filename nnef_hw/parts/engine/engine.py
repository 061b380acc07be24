"""The shared engine: its components and features, added up.

docs/engine.md describes it. What depends on a network is chosen by :mod:`nnef_hw.engine`; the
components of ``rtl/`` read every number here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.engine.array import MultiplierArray
from nnef_hw.parts.engine.border import Loader, Sender
from nnef_hw.parts.engine.codes import Codes, Residents
from nnef_hw.parts.engine.feature import Feature
from nnef_hw.parts.engine.fields import Fact, Record
from nnef_hw.parts.engine.narrow import NARROW_BITS, ShortWeights
from nnef_hw.parts.engine.pipeline import EnginePipeline
from nnef_hw.parts.engine.program import BEAT_BITS, Layout, beats_of
from nnef_hw.parts.engine.requantizer import SecondRounding, SharedRequantizer
from nnef_hw.parts.engine.residual import TensorSums
from nnef_hw.parts.engine.sequencer import Sequencer
from nnef_hw.parts.engine.sizes import CODE_BITS, LEVELS
from nnef_hw.parts.engine.supply import Ring, Supply
from nnef_hw.parts.engine.tables import Tables
from nnef_hw.parts.engine.units import StreamUnits

__all__ = ["Engine"]

FeatureT = TypeVar("FeatureT", bound=Feature)

_FIXED_LUTS = 705
_COUNT_BITS = 9


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine: what every one has, and features.

    Parameters
    ----------
    sequencer, array, requantizer, codes, loader, sender
        Its components.
    features
        What it has besides, in the order of their fields; one of them is where its program is.
    ram
        The device's block RAM.
    short_words
        Words that memories have at most which are in LUT RAM instead; 0 if none are.
    fields
        Width of every field of a program's row.
    same_fields
        Fields of which all instructions that look at them have the same: width and contents.
    """

    sequencer: Sequencer
    array: MultiplierArray
    requantizer: SharedRequantizer
    codes: Codes
    features: tuple[Feature, ...]
    ram: BlockRam
    short_words: int = 0
    fields: Mapping[str, int] = field(default_factory=dict)
    same_fields: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    loader: Loader = field(default_factory=Loader)
    sender: Sender = field(default_factory=Sender)

    def __post_init__(self) -> None:
        is_slow = self.pipeline.slow_pace > 1
        if self.array.results > 1 and (self.codes.single_port is not None or is_slow):
            raise ValueError("Engine results leave one by one to single-port RAM, and bit by bit")
        sums = self.find(TensorSums)
        if self.requantizer.is_serial and sums and sums.cycles != self.requantizer.cycles:
            raise ValueError("Engine sums of two tensors take as many cycles as other results")
        if self.has(Residents) and (self.ring is None or self.codes.single_port is None):
            raise ValueError("Engine residents need a stream, and codes in single-port RAM")

    @cached_property
    def everything(self) -> tuple[Feature, ...]:
        """Components and features, in the order of their fields."""
        head = (self.sequencer, self.array, self.requantizer, self.codes, self.loader, self.sender)
        return (*head, *self.features)

    def find(self, kind: type[FeatureT]) -> FeatureT | None:
        """Return the feature of a kind, if it has one."""
        found = self._by_kind.get(kind)
        assert found is None or isinstance(found, kind)
        return found

    @cached_property
    def _by_kind(self) -> Mapping[type, Feature]:
        return {kind: feature for feature in self.features for kind in type(feature).__mro__}

    def has(self, kind: type[Feature]) -> bool:
        """Whether the engine has a feature."""
        return kind in self._by_kind

    @cached_property
    def supply(self) -> Supply:
        """Source of the program, constants and weights."""
        found = self.find(Supply)  # type: ignore[type-abstract]
        assert found is not None, "every engine has a program"
        return found

    @cached_property
    def ring(self) -> Ring | None:
        """Ring that the program passes, if the program comes as a stream."""
        return self.find(Ring)

    @cached_property
    def units(self) -> StreamUnits | None:
        """Units that tensors pass, if there are layers that send tensors through any part."""
        return self.find(StreamUnits)

    @cached_property
    def pipeline(self) -> EnginePipeline:
        """Cycles of the engine."""
        return EnginePipeline(
            engine=self, array=self.array, requantizer=self.requantizer, codes=self.codes,
            features=self.everything, is_spread=self.is_spread,
        )  # fmt: skip

    @cached_property
    def is_spread(self) -> bool:
        """Whether codes and weights are in many block RAMs, which are far apart.

        These have registers of their own, as those of constants and of the program. There is one
        in front of them, too, for addresses and for what is written, one behind the choice between
        those of codes, and one behind DSP blocks, which are as far from the adders; registers tell
        that loops are at their ends, from which addresses follow, and the borders that an
        instruction begins.
        """
        return self.ram.has_register and self.codes.single_port is None

    @property
    def rows(self) -> int:
        """Rows of the array."""
        return self.array.rows

    @property
    def lanes(self) -> int:
        """Codes of a word."""
        return self.array.lanes

    @property
    def word_bits(self) -> int:
        """Bits of a word of codes."""
        return self.array.word_bits

    @property
    def results(self) -> int:
        """Results that leave per cycle."""
        return self.array.results

    @property
    def acc_bits(self) -> int:
        """Width of sums."""
        return self.array.acc_bits

    @property
    def write_bits(self) -> int:
        """Width of the address of a word that is written."""
        return self.sequencer.places["write"]

    @property
    def is_written(self) -> bool:
        """Whether memories of the program and of tables are written."""
        return self.supply.is_written

    @property
    def requantizer_delay(self) -> int:
        """Cycles from a sum to its code."""
        return self.pipeline.requantizer_delay

    @property
    def code_cycles(self) -> int:
        """Cycles from the address of a word of codes to the word."""
        return self.pipeline.code_cycles

    @property
    def product_cycles(self) -> int:
        """Registers behind the multipliers besides their own."""
        return self.pipeline.product_cycles

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """Return the facts of the engine's instruction fields, besides those of loops."""
        records = (record for feature in self.everything for record in feature.records)
        return {name: known for record in records for name, known in record.facts().items()}

    def widths(self, counted: Mapping[str, int]) -> dict[str, int]:
        """Return the widths of all fields, of which some follow from what a program counts."""
        found, last = dict(self.sequencer.loop_widths), {}
        for feature in self.everything:
            known = feature.widths(self)
            for record in feature.records:
                for name, what in record.facts().items():
                    if what.counted:
                        last[name] = counted[name]
                    else:
                        found[name] = known[name] if what.bits is None else what.bits
        return found | last

    @cached_property
    def layout(self) -> Layout:
        """Where the fields of its instructions are."""
        return Layout(
            widths=self.fields, constants=self.same_fields, facts=self.facts,
            implied=[
                name for feature in self.everything for record in feature.implied
                for name in record.facts()
            ],
            levels=LEVELS + sum(feature.levels for feature in self.everything),
            read_stage=self.pipeline.read_stage, unit_bits=self.supply.unit_bits(self.ram),
        )  # fmt: skip

    @property
    def is_direct(self) -> bool:
        """Whether codes and weights go from the memories to the multipliers without a register.

        The DSP blocks of an UP5K, which alone has single-port RAM, have registers of their own.
        """
        array = self.array
        return self.codes.single_port is not None and array.in_dsp == array.multipliers

    @cached_property
    def fine(self) -> Mapping[str, tuple[str, int]]:
        """Quantities that some instructions count in parts of a word (:meth:`.Feature.fine`)."""
        found = (feature.fine(self.array.lanes) for feature in self.everything)
        return {name: low for own in found for name, low in own.items()}

    def fine_bits(self, quantity: str) -> int:
        """Return the lowest bits of a quantity that tell a part of a word."""
        return self.fine[quantity][1] if quantity in self.fine else 0

    def coarse(self, records: Sequence[Record]) -> Mapping[str, int]:
        """Return the bits by which quantities are less fine in an instruction that says this."""
        whole = (x for x in self.everything if not x.counts_finely(records))
        return {name: bits for x in whole for name, (_, bits) in x.fine(self.array.lanes).items()}

    def retired(
        self, records: Sequence[Record], retired: Sequence[tuple[int, int]]
    ) -> Sequence[tuple[int, int]]:
        """Return the words of weights that are read for the last time (:class:`.Feature`)."""
        for feature in self.features:
            retired = feature.retired(records, retired)
        return retired

    @property
    def weight_bits(self) -> int:
        """Bits of a word of weights."""
        return self.array.products * (NARROW_BITS if self.has(ShortWeights) else CODE_BITS)

    @cached_property
    def constant_bits(self) -> int:
        """Bits of a constant: bias, factor, shift; or what a unit takes of a channel."""
        rounding = self.find(SecondRounding)
        more = 0 if rounding is None else rounding.more_shift_bits
        own = self.array.acc_bits + self.requantizer.factor_bits + more
        return own if self.units is None else max(own, self.units.constant_bits)

    @cached_property
    def code_beats(self) -> int:
        """Beats of a word of the memory of codes."""
        return self.array.word_bits // BEAT_BITS

    def weight_beats(self, rows: int) -> int:
        """Return the beats of a word of weights of so many rows, of a program that is a stream."""
        return beats_of(rows * self.array.word_bits)

    @cached_property
    def constant_beats(self) -> int:
        """Beats of the constants of a cycle's results."""
        return beats_of(self.array.results * self.constant_bits)

    @property
    def count_bits(self) -> int:
        """Bits of the first beat of a packet that count constants.

        Above are the beats of a word of its weights, less one.
        """
        most = self.weight_beats(self.array.rows) - 1
        return min(_COUNT_BITS, BEAT_BITS - most.bit_length())

    @cached_property
    def slots(self) -> int:
        """Instructions that the memory of its program holds."""
        return self.supply.slots(self.stride)

    @property
    def stride(self) -> int:
        """Rows from an instruction of its program to the next one."""
        return self.supply.stride(self.layout)

    @cached_property
    def table_beats(self) -> int:
        """Beats of all tables that come with a program, if these are written."""
        tables, units = self.find(Tables), self.units
        if not self.is_written:
            return 0
        own = (0 if tables is None else tables.beats) + (0 if units is None else units.beats)
        return own + self.supply.tail_beats

    def delay_memory(self, cycles: int) -> Tiling:
        """Return a memory in which addresses to write wait for so many cycles."""
        return tile_memory(self.short_ram, 1 << cycles.bit_length(), self.write_bits)

    @cached_property
    def short_ram(self) -> BlockRam:
        """The block RAM, and LUT RAM for memories of few words."""
        return replace(self.ram, short_words=self.short_words)

    @cached_property
    def memories(self) -> tuple[Tiling, ...]:
        """All memories of block RAM."""
        return tuple(one for feature in self.everything for one in feature.memories(self))

    def resources(self, device: Device) -> Resources:
        """Estimate the resources of the engine; DSP blocks and memories are exact."""
        fields = 2 * sum(self.fields.values())
        luts = sum(feature.luts(self, device) for feature in self.everything)
        luts += device.family.lut_ram_luts(sum(memory.lut_cells for memory in self.memories))
        flip_flops = sum(feature.flip_flops(self) for feature in self.everything)
        own = Resources(
            lut=round(_FIXED_LUTS + luts + fields + 3.0 * self.array.word_bits),
            ff=round(flip_flops + 2 * self.write_bits + 3 + fields),
            dsp=self.array.dsp(device),
            bram=sum(memory.count for memory in self.memories),
            spram=self.codes.spram(self),
        )
        parts = (part.resources(device) for feature in self.everything for part in feature.parts)
        return Resources.total((own, *parts))

    def differences(self, built: Engine) -> Iterator[str]:
        """Yield the values that other weights want and the engine of a bitstream does not have."""
        own, there = (
            {type(feature): feature for feature in engine.everything} for engine in (self, built)
        )
        for kind, feature in own.items():
            if kind in there:
                yield from feature.differences(there[kind])
        for kind in [kind for kind in own if kind not in there]:
            yield f"it has {kind.label}, which the bitstream lacks"
        for kind in [kind for kind in there if kind not in own]:
            yield f"it lacks {kind.label}, which the bitstream has"

    @property
    def kept(self) -> Fields:
        """Values that follow from the weights of the engine, besides its fields."""
        pairs = (feature.kept_values() for feature in self.everything)
        return {name: value for found in pairs for name, value in found.items()}

    def with_kept(self, kept: AttributeMap) -> Engine:
        """Return the engine with values that follow from other weights."""
        return replace(
            self, array=self.array.with_kept(kept), requantizer=self.requantizer.with_kept(kept),
            features=tuple(feature.with_kept(kept) for feature in self.features),
        )  # fmt: skip
