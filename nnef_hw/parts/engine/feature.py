"""What a feature of a shared engine answers: its fields, cycles, memories, resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.parts.engine.fields import Record

if TYPE_CHECKING:
    from nnef_hw.parts.engine.array import MultiplierArray
    from nnef_hw.parts.engine.engine import Engine

__all__ = ["Feature", "in_fields", "trained"]


def trained(name: str, *, most: str = "") -> Any:
    """Return an attribute of a feature that follows from the weights.

    Parameters
    ----------
    name
        What a plan calls it.
    most
        Words for it, if the engine of a bitstream may have more of it than other weights need.
    """
    return field(metadata={"kept": name, "most": most})


def in_fields() -> Any:
    """Return an attribute of a feature that tells widths of fields, which are compared."""
    return field(metadata={"in_fields": True})


@dataclass(frozen=True, kw_only=True)
class Feature:
    """Something that an engine has: a component, or what some engines have besides.

    Attributes
    ----------
    label
        What a user may call it.
    says
        What its instructions say, at most.
    levels
        Loops that an instruction has for it.
    implied
        Fields of which no instruction needs any value, since the engine knows it.
    """

    label: ClassVar[str]
    says: ClassVar[tuple[type[Record], ...]] = ()
    levels: ClassVar[int] = 0
    implied: ClassVar[tuple[str, ...]] = ()

    @property
    def records(self) -> Sequence[type[Record]]:
        """What its instructions say."""
        return self.says

    def widths(self, engine: Engine) -> Mapping[str, int]:
        """Return the widths of fields that only it knows."""
        del engine
        return {}

    def fine(self, array: MultiplierArray) -> Mapping[str, tuple[str, int]]:
        """Return the quantities that some instructions count in parts of a word.

        Of each the name of its lowest bits, and how many these are.
        """
        del array
        return {}

    def counts_finely(self, values: Mapping[str, int]) -> bool:
        """Whether an instruction with these values counts so; others count words."""
        del values
        return False

    def retired(
        self, values: Mapping[str, int], retired: Sequence[tuple[int, int]]
    ) -> Sequence[tuple[int, int]]:
        """Return the words of weights in memory that are read for the last time.

        Parameters
        ----------
        values
            Those of the instruction.
        retired
            How many of the layer's words are, in a cycle each from one on.
        """
        del values
        return retired

    def delay(self, engine: Engine, *, adds: bool) -> int:
        """Return the cycles for which a code stays in it, behind the requantizer.

        Parameters
        ----------
        adds
            Whether another tensor is added to it.
        """
        del engine, adds
        return 0

    def is_behind(self, engine: Engine) -> bool:
        """Whether its late fields are still needed behind the requantizer."""
        del engine
        return False

    def memories(self, engine: Engine) -> Sequence[Tiling]:
        """Return its memories in block RAM."""
        del engine
        return ()

    def luts(self, engine: Engine, device: Device) -> float:
        """Return the LUT4s that it takes."""
        del engine, device
        return 0.0

    def flip_flops(self, engine: Engine) -> float:
        """Return the flip-flops that it takes."""
        del engine
        return 0.0

    def differences(self, built: Feature) -> Iterator[str]:
        """Yield what a bitstream's feature does not have that other weights want."""
        for own in fields(self):
            wanted, there = getattr(self, own.name), getattr(built, own.name)
            if most := own.metadata.get("most"):
                if wanted > there:
                    yield f"it takes {most.format(wanted)}, there is one of {there}"
            elif not own.metadata and wanted != there:
                yield f"its {own.name} is {wanted}, there {there}"

    def kept_values(self) -> dict[str, Any]:
        """Return what follows from the weights, by the names in a plan."""
        return {name: getattr(self, own) for name, own in self.kept_names().items()}

    @classmethod
    def kept_names(cls) -> Mapping[str, str]:
        """Return the attributes that follow from the weights, by their names in a plan."""
        return {x.metadata["kept"]: x.name for x in fields(cls) if "kept" in x.metadata}
