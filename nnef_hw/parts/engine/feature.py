"""A feature of a shared engine answers for its fields, cycles, memories, resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import ClassVar, Protocol, Self

from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.base.untyped import Content, Hardware
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.program import Layout

__all__ = ["EngineSizes", "Feature", "in_fields", "trained"]


class EngineSizes(Protocol):
    """Numbers of an engine that its features ask for."""

    @property
    def ram(self) -> BlockRam:
        """The device's block RAM."""

    @property
    def short_ram(self) -> BlockRam:
        """The block RAM, and LUT RAM for memories of few words."""

    @property
    def layout(self) -> Layout:
        """Where the fields of instructions are."""

    @property
    def rows(self) -> int:
        """Rows of the array."""

    @property
    def lanes(self) -> int:
        """Codes of a word."""

    @property
    def word_bits(self) -> int:
        """Bits of a word of codes."""

    @property
    def results(self) -> int:
        """Results that leave per cycle."""

    @property
    def acc_bits(self) -> int:
        """Width of sums."""

    @property
    def weight_bits(self) -> int:
        """Bits of a word of weights."""

    @property
    def constant_bits(self) -> int:
        """Bits of a bias, its factor and its shift."""

    @property
    def write_bits(self) -> int:
        """Width of the address of a word that is written."""

    @property
    def is_written(self) -> bool:
        """Whether memories of the program and of tables are written."""

    @property
    def is_direct(self) -> bool:
        """Whether no register stands between memories and multipliers."""

    @property
    def requantizer_delay(self) -> int:
        """Cycles from a sum to its code."""

    @property
    def code_cycles(self) -> int:
        """Cycles from the address of a word of codes to the word."""

    @property
    def product_cycles(self) -> int:
        """Registers behind the multipliers besides their own."""

    def delay_memory(self, cycles: int) -> Tiling:
        """Return a memory in which addresses to write wait for so many cycles."""


def trained(name: str, *, most: str = "") -> Hardware:
    """Return an attribute of a feature that follows from the weights.

    Parameters
    ----------
    name
        What a plan calls it.
    most
        Words for it, if the engine of a bitstream may have more of it than other weights need.
    """
    return field(metadata={"kept": name, "most": most})


def in_fields() -> Hardware:
    """Return an attribute of a feature that tells widths of fields, which are compared."""
    return field(metadata={"in_fields": True})


@dataclass(frozen=True, kw_only=True)
class Feature:
    """Something that an engine has: a component, or what some engines have besides.

    Attributes
    ----------
    label
        What a user may call it.
    component
        ``module:class`` of its hardware, if that is a component.
    says
        What its instructions say, at most.
    levels
        Loops that an instruction has for it.
    implied
        Records of which no instruction needs any value, since the engine knows it.
    """

    label: ClassVar[str]
    component: ClassVar[str] = ""
    says: ClassVar[tuple[type[Record], ...]] = ()
    levels: ClassVar[int] = 0
    implied: ClassVar[tuple[type[Record], ...]] = ()

    def build(self, engine: EngineSizes, **contents: Content) -> Hardware:
        """Return the feature's component, with its contents (amaranth is imported here)."""
        module, name = self.component_of(engine).split(":")
        return getattr(import_module(module), name)(engine, **contents)

    def component_of(self, engine: EngineSizes) -> str:
        """Return which component that is, in an engine."""
        del engine
        return self.component

    @property
    def records(self) -> Sequence[type[Record]]:
        """Records of the feature in instructions."""
        return self.says

    def widths(self, engine: EngineSizes) -> Mapping[str, int]:
        """Return the widths of fields that only it knows."""
        del engine
        return {}

    def fine(self, lanes: int) -> Mapping[str, tuple[str, int]]:
        """Return the quantities that some instructions count in parts of a word.

        Of each the name of its lowest bits, and how many these are.
        """
        del lanes
        return {}

    def counts_finely(self, records: Sequence[Record]) -> bool:
        """Whether an instruction that says this counts so; others count words."""
        del records
        return False

    def retired(
        self, records: Sequence[Record], retired: Sequence[tuple[int, int]]
    ) -> Sequence[tuple[int, int]]:
        """Return the words of weights in memory that are read for the last time.

        Parameters
        ----------
        records
            What the instruction says.
        retired
            How many of the layer's words are, in a cycle each from one on.
        """
        del records
        return retired

    def delay(self, engine: EngineSizes, *, adds: bool) -> int:
        """Return the cycles for which a code stays in it, behind the requantizer.

        Parameters
        ----------
        adds
            Whether another tensor is added to it.
        """
        del engine, adds
        return 0

    def is_behind(self, engine: EngineSizes) -> bool:
        """Whether late fields of the feature are still needed behind the requantizer."""
        del engine
        return False

    @property
    def parts(self) -> Sequence[Part]:
        """Parts of the streaming architecture in it, which know themselves what they take."""
        return ()

    def memories(self, engine: EngineSizes) -> Sequence[Tiling]:
        """Return the feature's memories in block RAM."""
        del engine
        return ()

    def luts(self, engine: EngineSizes, device: Device) -> float:
        """Return the LUT4s that it takes."""
        del engine, device
        return 0.0

    def flip_flops(self, engine: EngineSizes) -> float:
        """Return the flip-flops that it takes."""
        del engine
        return 0.0

    def differences(self, built: Feature) -> Iterator[str]:
        """Yield the values that other weights want and a bitstream's feature does not have."""
        for own in fields(self):
            wanted, there = getattr(self, own.name), getattr(built, own.name)
            if most := own.metadata.get("most"):
                if wanted > there:
                    yield f"it takes {most.format(wanted)}, there is one of {there}"
            elif not own.metadata and wanted != there:
                yield f"its {own.name} is {wanted}, there {there}"

    def kept_values(self) -> Fields:
        """Return the values that follow from the weights, by the names in a plan."""
        return {name: getattr(self, own) for name, own in self.kept_names().items()}

    def with_kept(self, kept: AttributeMap) -> Self:
        """Return the feature with values that follow from other weights, by the names in a plan."""
        return replace(self, **{own: kept[name] for name, own in self.kept_names().items()})

    @classmethod
    def kept_names(cls) -> Mapping[str, str]:
        """Return the attributes that follow from the weights, by their names in a plan."""
        return {x.metadata["kept"]: x.name for x in fields(cls) if "kept" in x.metadata}
