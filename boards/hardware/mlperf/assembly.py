"""The instructions of the calculator, and programs of them on numbers of several bytes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum, IntFlag

__all__ = ["Assembly", "Carry", "Compute", "Event", "Jump", "Source"]


class Compute(IntEnum):
    """Operation on the accumulator and a byte."""

    LOAD = 0
    ADD = 1
    SUBTRACT = 2
    KEEP = 3


class Source(IntEnum):
    """Memory that a byte comes from, and goes to."""

    SCRATCH = 0
    REAL = 1
    TABLE = 2
    BYTE = 3


class Carry(IntEnum):
    """The carry that goes into a sum."""

    KEPT = 0
    CLEAR = 2
    SET = 3


class Jump(IntEnum):
    """Condition of a jump."""

    ALWAYS = 0
    CARRY = 1
    NO_CARRY = 2
    LAST = 3


class Event(IntFlag):
    """Event that a word tells of for one cycle, by its bit."""

    END = 1
    DONE = 2
    NEXT = 4
    PUSH = 8
    BEYOND = 16


class Assembly:
    """A program that is being written: words, places that have names, and the bytes it works on.

    Numbers are lists of addresses, lowest byte first.

    Attributes
    ----------
    words : list of tuple
        Kind of a word and its fields.
    scratch : list of int
        Bytes of the calculator's memory at first.
    longest : int
        Words that a routine takes at most.
    """

    def __init__(self) -> None:
        self.words: list[tuple[type[IntEnum], tuple[int | str, ...]]] = []
        self.places: dict[str, int] = {}
        self.scratch: list[int] = []
        self.longest = 0
        self._constants: dict[int, int] = {}
        self._turns, self._taken = 1, 0
        self._turn = self.variable(1)[0]

    @property
    def address_bits(self) -> int:
        """Width of an address of the program."""
        return (len(self.words) - 1).bit_length()

    @property
    def scratch_bits(self) -> int:
        """Width of an address of the scratch memory."""
        return max(1, (len(self.scratch) - 1).bit_length())

    @property
    def width(self) -> int:
        """Bits of a word."""
        return 1 + max(7 + self.scratch_bits, 1 + 2 + self.address_bits, 1 + len(Event))

    def encoded(self) -> list[int]:
        """Return the words as numbers.

        The lowest bit tells a computation (0) from the rest, whose next bit tells a jump (1) from
        an event.
        """
        found = []
        for kind, fields in self.words:
            if kind is Compute:
                operation, writes, carry, source, address = map(int, fields)
                value = operation | writes << 2 | carry << 3 | source << 5 | address << 7
                found.append(value << 1)
            elif kind is Jump:
                condition, place = fields
                found.append(3 | int(condition) << 2 | self.places[str(place)] << 4)
            else:
                found.append(1 | int(fields[0]) << 2)
        return found

    # words

    def _add_word(self, kind: type, *fields: int | str) -> None:
        self.words.append((kind, fields))
        self._taken += self._turns

    def place(self, name: str) -> str:
        """Give the next word a name, and return it."""
        if name in self.places:
            raise ValueError(f"the program has two places {name!r}")
        self.places[name] = len(self.words)
        return name

    def jump(self, name: str, condition: Jump = Jump.ALWAYS) -> None:
        """Go to a place, if a condition holds."""
        self._add_word(Jump, condition, name)

    def event(self, event: Event) -> None:
        """Tell the outside something for one cycle."""
        self._add_word(Event, event)

    def end(self) -> None:
        """End a routine, and count the words that it took."""
        self.event(Event.END)
        self.longest = max(self.longest, self._taken)
        self._taken = 0

    def compute(
        self, operation: Compute, address: int, source: Source = Source.SCRATCH,
        carry: Carry = Carry.KEPT, *, writes: bool = False,
    ) -> None:
        """Work on the accumulator and a byte; ``writes`` stores the result where the byte was."""
        self._add_word(Compute, operation, writes, carry, source, address)

    def load(self, address: int, source: Source = Source.SCRATCH) -> None:
        """Load a byte into the accumulator."""
        self.compute(Compute.LOAD, address, source)

    def store(self, address: int, source: Source = Source.SCRATCH) -> None:
        """Store the accumulator."""
        self.compute(Compute.KEEP, address, source, writes=True)

    def add(self, address: int, carry: Carry = Carry.KEPT, *, writes: bool = False) -> None:
        """Add a byte to the accumulator, and store the sum there if ``writes``."""
        self.compute(Compute.ADD, address, carry=carry, writes=writes)

    # bytes of the memory

    def variable(self, count: int) -> list[int]:
        """Return the addresses of bytes that are 0 at first."""
        self.scratch += [0] * count
        return list(range(len(self.scratch) - count, len(self.scratch)))

    def number(self, value: int, count: int) -> list[int]:
        """Return the places of a constant's bytes; equal bytes stand there once."""
        found = []
        for byte in (value & (1 << 8 * count) - 1).to_bytes(count, "little"):
            if byte not in self._constants:
                [self._constants[byte]] = self.variable(1)
                self.scratch[self._constants[byte]] = byte
            found.append(self._constants[byte])
        return found

    # numbers of several bytes

    def copy(self, origin: Sequence[int], target: Sequence[int]) -> None:
        """Copy bytes."""
        for a, b in zip(origin, target, strict=True):
            self.load(a)
            self.store(b)

    def clear(self, target: Sequence[int]) -> None:
        """Store zeros."""
        self.load(*self.number(0, 1))
        for place in target:
            self.store(place)

    def add_to(self, target: Sequence[int], other: Sequence[int]) -> None:
        """Add a number, or the complement of one; the carry is that of the highest byte."""
        for n, (a, b) in enumerate(zip(target, other, strict=True)):
            self.load(b)
            self.add(a, Carry.KEPT if n else Carry.CLEAR, writes=True)

    def double(self, target: Sequence[int], carry: Carry = Carry.CLEAR) -> None:
        """Double a number; the carry goes in at the bottom, and comes out at the top."""
        for n, place in enumerate(target):
            self.load(place)
            self.add(place, Carry.KEPT if n else carry, writes=True)

    def negate(self, target: Sequence[int]) -> None:
        """Replace a number by its complement of two."""
        for n, place in enumerate(target):
            self.load(*self.number(0, 1))
            self.compute(Compute.SUBTRACT, place, carry=Carry.KEPT if n else Carry.SET,
                          writes=True)

    def keep_carry(self, place: int) -> None:
        """Store the carry as a byte, and clear it."""
        [zero] = self.number(0, 1)
        self.load(zero)
        self.add(zero)
        self.store(place)

    def ask(self, place: int) -> None:
        """Set the carry if a byte is not 0."""
        self.load(place)
        self.add(*self.number(-1, 1), Carry.CLEAR)

    @contextmanager
    def loop(self, name: str, turns: int) -> Iterator[None]:
        """Repeat words so many times."""
        self.copy(self.number(turns - 1, 1), [self._turn])
        self._turns *= turns
        self.place(name)
        yield
        self.load(*self.number(-1, 1))
        self.add(self._turn, Carry.CLEAR, writes=True)
        self.jump(name, Jump.CARRY)
        self._turns //= turns

    @contextmanager
    def at_most(self, turns: int) -> Iterator[None]:
        """Count words that are repeated at most so many times."""
        self._turns *= turns
        yield
        self._turns //= turns
