"""Fields of an instruction, which features of an engine own: typed records of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from nnef_hw.parts.base.untyped import Hardware

__all__ = ["Fact", "Record", "fact"]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A field of an instruction.

    Parameters
    ----------
    summary
        What it says.
    bits
        Its width, if that is always the same; otherwise its owner knows it.
    counted
        Whether it is as wide as the greatest value of a program needs.
    late
        Whether results on their way still need it when the next instruction is read.
    first
        Whether it tells if the instruction waits for results on their way: it is read first.
    signed
        Whether it may be negative.
    wraps
        Whether it counts modulo a memory.
    constant
        Whether all instructions that look at it often have the same: a constant of the hardware.
    trained
        Whether other weights change it, unless it is 0: that of a ReLU's results stays so.
    """

    summary: str
    bits: int | None = None
    counted: bool = False
    late: bool = False
    first: bool = False
    signed: bool = False
    wraps: bool = False
    constant: bool = False
    trained: bool = False


def fact(summary: str, **options: Hardware) -> Hardware:
    """Return the default of a field of a :class:`Record`, which is 0 (:class:`Fact`)."""
    return field(default=0, metadata={"fact": Fact(summary=summary, **options)})


@dataclass(frozen=True, kw_only=True)
class Record:
    """Fields of an instruction that belong together, with their values."""

    @classmethod
    def facts(cls) -> Mapping[str, Fact]:
        """Return the facts of the record's fields, by name."""
        return {own.name: own.metadata["fact"] for own in fields(cls)}

    def values(self) -> Mapping[str, int]:
        """Return the values by name."""
        return {name: int(value) for name, value in vars(self).items()}
