"""Programs of a small sequencer for signals: its instructions, loops, and the gaps they need.

An instruction reads a number and a factor, adds their product to a sum, and writes bits of that
sum. The next one begins a cycle later whatever it reads, so that a program has to leave gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "ADDRESS_BITS", "FIELDS", "GIVE_DELAY", "WORD_BITS", "WRITE_DELAY", "Base", "Factor",
    "Instruction", "Kind", "Load", "Op", "Place", "Program",
    "Register", "Slice", "encoded",
]  # fmt: skip

ADDRESS_BITS = 11
"""Bits of an address of numbers or of factors."""
WRITE_DELAY = 4
"""Instructions from one that writes a number to the first that reads it."""
GIVE_DELAY = 3
"""Instructions from one that changes the sum to the first that gives it."""


class Kind(IntEnum):
    """Kinds of instructions: products and sums, registers and jumps, and what waits for others."""

    SUM, STEP, TAKE, GIVE = range(4)


class Register(IntEnum):
    """Registers that are added to addresses.

    ``REVERSED`` is ``K`` with pairs of its bits in the opposite order, ``J2`` and ``J3`` are twice
    and three times ``J``, ``COUNT`` the number of shifts.
    """

    NONE, M, K, C, J, L, REVERSED, COUNT, J2, J3 = range(10)


class Factor(IntEnum):
    """Factors of a number: a word, a number read before, or a power of 2."""

    WORD, KEPT, POWER = range(3)


class Op(IntEnum):
    """Operations on the sum: a number is added, it is doubled or halved, a root is taken.

    ``NORMALIZE`` doubles a sum of less than 32 bits and counts that, ``SHIFT`` halves it as often
    as was counted, ``HALVE`` in any case; ``LIMIT`` makes 0 of a negative one.
    """

    HOLD, ADD, NORMALIZE, SHIFT, HALVE, ROOT, LIMIT = range(7)


class Base(IntEnum):
    """Numbers that a product may be added to."""

    SELF, ZERO, HALF, UP, SIZES, COUNT, ROOT = range(7)


class Load(IntEnum):
    """Registers that an instruction may set beside the sum."""

    NONE, KEPT, M, J, L, COUNT, SIZES, SEGMENT = range(8)


class Slice(IntEnum):
    """Lowest bit of the 16 of the sum that are written: 0, 15, 16, or 31."""

    LOW, HALF, HIGH, TOP = range(4)

    @property
    def bit(self) -> int:
        """The lowest bit."""
        return (0, 15, 16, 31)[self]


class Place(NamedTuple):
    """An address: a constant, and a register that is added."""

    at: int
    by: Register = Register.NONE

    def moved(self, register: Register, step: int) -> Place:
        """Return the same place for a register that is ``step`` greater."""
        times = {Register.J2: 2, Register.J3: 3}.get(self.by, 1)
        used = Register.J if times > 1 else self.by
        if used != register:
            return self
        return Place((self.at - times * step) % (1 << ADDRESS_BITS), self.by)


NOWHERE = Place(0)
_LOADED = {Load.M: Register.M, Load.J: Register.J, Load.L: Register.L}
_SEGMENT_DELAY, _WORD_DELAY, _POWER_DELAY, _COUNT_DELAY = 3, 2, 2, 3


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    kind
        Kind.
    read, word, target
        Where the number and the factor are, and where bits of the sum go. A STEP adds ``read.at``
        to a register, or begins with 0, and jumps to ``target.at`` if the result is not
        ``word.at``.
    register, begins, jumps
        The register of a STEP, whether it is set anew, and whether it may jump.
    factor, op, base, load
        What is done.
    signed, signed_factor
        Whether the number is in two's complement; whether a factor's highest bit is its sign.
    minus
        Whether the product is subtracted.
    writes, bits
        Whether bits of the sum are written, and which.
    """

    kind: Kind = Kind.SUM
    read: Place = NOWHERE
    word: Place = NOWHERE
    target: Place = NOWHERE
    register: Register = Register.NONE
    begins: bool = False
    jumps: bool = False
    factor: Factor = Factor.WORD
    op: Op = Op.HOLD
    base: Base = Base.SELF
    load: Load = Load.NONE
    signed: bool = True
    signed_factor: bool = False
    minus: bool = False
    writes: bool = False
    bits: Slice = Slice.LOW

    @property
    def counts(self) -> bool:
        """Whether the instruction may change the number of shifts."""
        return self.load == Load.COUNT or self.op in (Op.NORMALIZE, Op.SHIFT)

    @property
    def registers(self) -> set[Register]:
        """Registers that its addresses use."""
        found = {self.read.by, self.word.by, self.target.by, self.register}
        alias = {Register.J2: Register.J, Register.J3: Register.J, Register.REVERSED: Register.K}
        return {alias.get(each, each) for each in found}

    def gap_behind(self, other: Instruction) -> int:
        """Return the least number of cycles from another instruction to this one."""
        gap = 1
        if other.writes and self.kind == Kind.SUM and other.target == self.read:
            gap = WRITE_DELAY
        if self.kind == Kind.GIVE and other.op != Op.HOLD:
            gap = GIVE_DELAY
        if self.kind == Kind.TAKE and other.writes:
            gap = WRITE_DELAY
        loaded = _LOADED.get(other.load)
        if loaded in self.registers:
            gap = max(gap, _WORD_DELAY)
        if other.load == Load.SEGMENT and Register.J in self.registers:
            gap = max(gap, _SEGMENT_DELAY)
        if other.counts and Register.COUNT in self.registers:
            gap = max(gap, _COUNT_DELAY)
        if other.counts and self.factor == Factor.POWER:
            gap = max(gap, _POWER_DELAY)
        return gap

    def moved(self, register: Register, step: int) -> Instruction | None:
        """Return the instruction that does the same behind a register's step, if there is one."""
        if self.kind != Kind.SUM or (
            register == Register.K and Register.REVERSED in (self.read.by, self.word.by)
        ):
            return None
        read, word, target = (
            place.moved(register, step) for place in (self.read, self.word, self.target)
        )
        return replace(self, read=read, word=word, target=target)


NOTHING = Instruction()


@dataclass
class Program:
    """Instructions in the making.

    Parameters
    ----------
    code
        The instructions so far.
    """

    code: list[Instruction] = field(default_factory=list)

    @property
    def here(self) -> int:
        """Address of the next instruction."""
        return len(self.code)

    def add(self, instruction: Instruction) -> None:
        """Append an instruction, behind as much of a gap as it needs."""
        near = range(1, WRITE_DELAY)
        while any(n <= self.here and instruction.gap_behind(self.code[-n]) > n for n in near):
            self.code.append(NOTHING)
        self.code.append(instruction)

    def wait(self, cycles: int) -> None:
        """Append instructions that do nothing."""
        self.code += cycles * [NOTHING]

    def set(self, register: Register, value: int) -> None:
        """Set a register."""
        self.add(Instruction(kind=Kind.STEP, register=register, begins=True, read=Place(value)))

    def step(self, register: Register, by: int) -> None:
        """Add to a register."""
        self.add(
            Instruction(kind=Kind.STEP, register=register, read=Place(by % (1 << ADDRESS_BITS)))
        )

    def jump(self, target: int) -> None:
        """Go on elsewhere."""
        self.add(
            Instruction(
                kind=Kind.STEP, register=Register.M, begins=True, jumps=True, word=Place(1),
                target=Place(target),
            )
        )  # fmt: skip
        self.code.append(NOTHING)

    @contextmanager
    def loop(self, register: Register, step: int, end: int) -> Iterator[None]:
        """Repeat what is added within, adding to a register, until it is ``end``.

        The instruction behind a jump is still done: that is the last one within, if it can be.
        """
        start = self.here
        yield
        jump = Instruction(
            kind=Kind.STEP, register=register, jumps=True, read=Place(step % (1 << ADDRESS_BITS)),
            word=Place(end), target=Place(start),
        )  # fmt: skip
        last = self.code[-1].moved(register, step)
        if last is None or (len(self.code) > 1 and self.code[-2].jumps):
            self.add(jump)
            self.code.append(NOTHING)
            return
        self.code.pop()
        self.add(jump)
        self.code.append(last)


FIELDS = (
    ("kind", 2), ("op", 3), ("base", 3), ("load", 3), ("factor", 2), ("bits", 2), ("signed", 1),
    ("signed_factor", 1), ("minus", 1), ("writes", 1),
    ("read_at", ADDRESS_BITS), ("read_by", 4), ("word_at", ADDRESS_BITS), ("word_by", 4),
    ("target_at", ADDRESS_BITS), ("target_by", 3),
)  # fmt: skip
"""Names and bits of the fields of an instruction in memory, the lowest one first.

In a STEP ``base`` is its register, ``signed`` says that it begins anew, ``signed_factor`` that it
may jump.
"""
WORD_BITS = sum(bits for _, bits in FIELDS)
"""Bits of an instruction."""


def encoded(instruction: Instruction) -> int:
    """Return an instruction as a word of its memory."""
    x = instruction
    values = {
        **{name: getattr(x, name) for name, _ in FIELDS if hasattr(x, name)},
        **{f"{name}_{part}": getattr(getattr(x, name), part)
           for name in ("read", "word", "target") for part in ("at", "by")},
    }  # fmt: skip
    if x.kind == Kind.STEP:
        values |= {"base": x.register, "signed": x.begins, "signed_factor": x.jumps}
    word = at = 0
    for name, bits in FIELDS:
        value = int(values[name])
        assert value < 1 << bits, f"{name} = {value}"
        word |= value << at
        at += bits
    return word
