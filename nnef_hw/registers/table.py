"""A table of registers: fields of words, and the ways in which software uses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

__all__ = [
    "ACCESSES", "CONSTANT", "EVENT", "POP", "PULSE", "PUSH", "READ", "WORD_BITS", "WORD_BYTES",
    "WRITE", "Access", "Field", "Register", "RegisterMap",
]  # fmt: skip

WORD_BITS = 32
WORD_BYTES = WORD_BITS // 8


@dataclass(frozen=True, slots=True)
class Access:
    """A way in which software uses a field.

    Parameters
    ----------
    title
        Short name for tables.
    meaning
        What reading and writing do.
    svd
        Elements of CMSIS-SVD by name.
    rdl
        Properties of SystemRDL.
    """

    title: str
    meaning: str
    svd: tuple[tuple[str, str], ...]
    rdl: tuple[str, ...]


CONSTANT = Access(
    "constant", "fixed when the hardware is built", (("access", "read-only"),),
    ("sw = r;", "hw = na;"),
)  # fmt: skip
READ = Access(
    "read", "what the hardware says now", (("access", "read-only"),), ("sw = r;", "hw = w;")
)
WRITE = Access(
    "read, write", "kept until it is written again", (("access", "read-write"),),
    ("sw = rw;", "hw = r;"),
)  # fmt: skip
PULSE = Access(
    "write 1", "a one does it once; reads as 0",
    (("access", "write-only"), ("modifiedWriteValues", "oneToSet")),
    ("sw = w;", "hw = r;", "singlepulse;"),
)  # fmt: skip
EVENT = Access(
    "write 1 to clear", "set by the hardware, cleared by writing a one",
    (("access", "read-write"), ("modifiedWriteValues", "oneToClear")),
    ("sw = rw;", "hw = w;", "woclr;"),
)  # fmt: skip
PUSH = Access(
    "write", "each write, of a whole word, is one more; an error of the bus if there is no room",
    (("access", "write-only"),), ("sw = w;", "hw = r;", "swmod;"),
)  # fmt: skip
POP = Access(
    "read, taken", "each read takes one; an error of the bus if there is none",
    (("access", "read-only"), ("readAction", "modify")), ("sw = r;", "hw = w;", "swacc;"),
)  # fmt: skip
ACCESSES = (CONSTANT, READ, WRITE, PULSE, EVENT, PUSH, POP)


@dataclass(frozen=True, slots=True)
class Field:
    """Bits of a register with a meaning of their own.

    Parameters
    ----------
    name
        Lower case, an identifier.
    access
        What software may do with it.
    description
        A sentence.
    lowest, bits
        Where it lies in the word.
    init
        Its value after a reset.
    """

    name: str
    access: Access
    description: str
    lowest: int = 0
    bits: int = 1
    init: int = 0

    @property
    def mask(self) -> int:
        """Bits of the word that are the field's."""
        return ((1 << self.bits) - 1) << self.lowest

    @property
    def highest(self) -> int:
        """Highest bit of the field in the word."""
        return self.lowest + self.bits - 1


@dataclass(frozen=True, slots=True)
class Register:
    """A word of the map.

    Parameters
    ----------
    name
        Lower case, an identifier.
    description
        A sentence.
    fields
        From the lowest one up; one that is called like the register has no name of its own.
    """

    name: str
    description: str
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        for lower, upper in pairwise(self.fields):
            if upper.lowest <= lower.highest:
                raise ValueError(f"fields {lower.name} and {upper.name} of {self.name} overlap")
        if not self.fields or self.fields[-1].highest >= WORD_BITS:
            raise ValueError(f"fields of {self.name} must be within {WORD_BITS} bits")
        for field in self.fields:
            if field.init >> field.bits:
                raise ValueError(f"{field.init} does not fit {field.name} of {self.name}")
            if field.access in {PUSH, POP} and field.bits != WORD_BITS:
                raise ValueError(f"{field.name} of {self.name} must be a whole word")

    @property
    def init(self) -> int:
        """Value of the word after a reset."""
        return sum(field.init << field.lowest for field in self.fields)

    def label(self, field: Field) -> str:
        """Name of a field in the whole map."""
        return self.name if field.name == self.name else f"{self.name}_{field.name}"


@dataclass(frozen=True, slots=True)
class RegisterMap:
    """Registers of a peripheral, a word each, from address 0 up.

    Parameters
    ----------
    name
        Name of the peripheral, an identifier.
    title
        What it is, for people.
    registers
        In the order of their addresses.
    """

    name: str
    title: str
    registers: tuple[Register, ...]

    def __post_init__(self) -> None:
        names = [register.label(field) for register, field in self.fields()]
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"registers of {self.name} must have names of their own")

    def fields(self) -> Iterator[tuple[Register, Field]]:
        """Yield every field with its register."""
        for register in self.registers:
            for field in register.fields:
                yield register, field

    def addressed(self) -> Iterator[tuple[int, Register]]:
        """Yield every register with its address in bytes."""
        for number, register in enumerate(self.registers):
            yield number * WORD_BYTES, register

    @property
    def address_bits(self) -> int:
        """Bits of a byte address: at least those of two words."""
        return max(1, (len(self.registers) - 1).bit_length()) + (WORD_BYTES - 1).bit_length()
