"""A store keeps a program that comes as a stream: in a memory beside the FPGA."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.boards.board import Board, Memory, Sdram, SpiFlash
from nnef_hw.hardware.devices import Device, Target
from nnef_hw.hardware.memories import FLASH_CHIPS, SDRAM_CHIPS, FlashChip, FlashRead, SdramChip
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.readers.flash_reader import FlashReader
from nnef_hw.parts.readers.reader import Reader
from nnef_hw.parts.readers.row_reader import RowReader, Segment
from nnef_hw.parts.readers.sdram_reader import GRANULE, SdramReader
from nnef_hw.parts.readers.split_reader import SplitReader
from nnef_hw.parts.streams.fifo import FIFO_REGISTERS, BlockFifo

__all__ = ["FlashStore", "RowFinder", "SdramStore", "Store", "find_store", "stores"]


@dataclass(frozen=True, kw_only=True)
class RowFinder:
    """A memory any word of which may come next, so that integers choose which row of a table does.

    Parameters
    ----------
    chip, clock_mhz
        The memory, and its clock.
    """

    chip: SdramChip
    clock_mhz: float

    def reader(
        self,
        segments: Sequence[Segment],
        first: int,
        device: Device,
        place_bits: tuple[tuple[int, int], ...],
    ) -> RowReader:
        """Return the reader of segments, of which so many come only once.

        With the widths of the integers that choose rows, by input.
        """
        return RowReader(
            chip=self.chip, clock_mhz=self.clock_mhz, words=max(x.end for x in segments),
            ram=device.ram, segments=tuple(segments), first=first, place_bits=place_bits,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Store(ABC):
    """A memory of a board, and how it is read.

    Parameters
    ----------
    clock_mhz
        Clock of the memory while it is read: that of the engine.

    Attributes
    ----------
    kind
        What a user calls it.
    model
        Module and class of its model in simulation.
    repeats
        Its words come in every frame as in the one before.
    is_loaded
        The host fills it over the link, after each time the FPGA is configured.
    repeats_tables
        Tables come in every frame, where nothing else comes only once.
    """

    kind: ClassVar[str]
    model: ClassVar[str]
    repeats: ClassVar[bool]
    is_loaded: ClassVar[bool]
    repeats_tables: ClassVar[bool]

    clock_mhz: float

    @classmethod
    @abstractmethod
    def ways(cls, target: Target, clock_mhz: float) -> Iterator[Store]:
        """Yield the ways to read such a memory of a target; none if it has none."""

    @property
    @abstractmethod
    def base(self) -> int:
        """First byte of the image."""

    @property
    @abstractmethod
    def command(self) -> str:
        """Name of the read command, as a user may know it."""

    @abstractmethod
    def reader(self, words: int, device: Device, once: int = 0, queue_words: int = 0) -> Reader:
        """Return the reader of an image of so many words of 16 bits, on a device.

        The first ``once`` of them come only once. ``queue_words`` more may wait in block RAM, if
        that is not 0; only of flash.
        """

    @property
    def rows(self) -> RowFinder | None:
        """The finder of rows of tables that integers choose; None if the memory has none."""
        return None

    @abstractmethod
    def fits(self, words: int) -> bool:
        """Whether the memory has room for such an image."""

    @abstractmethod
    def padded(self, image: bytes) -> bytes:
        """Return an image with what has to be behind it."""

    @abstractmethod
    def to_json(self) -> JsonObject:
        """Return the store as JSON values, which :func:`find_store` takes."""

    @classmethod
    @abstractmethod
    def from_json(cls, value: JsonObject) -> Store:
        """Restore a store from a plan.

        Raises
        ------
        LookupError, TypeError, ValueError
            If it is none.
        """


def _memories(target: Target) -> tuple[Memory, ...]:
    return target.memories if isinstance(target, Board) else ()


@dataclass(frozen=True, kw_only=True)
class FlashStore(Store):
    """SPI flash, which has the image behind the bitstream.

    Parameters
    ----------
    chips, any_chip, lines
        What the board has (:class:`.SpiFlash`).
    address
        First byte of the image.
    read
        Command.
    """

    kind = SpiFlash.kind
    model = "nnef_hw.sim.memories:FlashModel"
    repeats = True
    is_loaded = False
    repeats_tables = False

    chips: tuple[FlashChip, ...]
    any_chip: bool
    lines: int
    address: int
    read: FlashRead

    @classmethod
    def ways(cls, target: Target, clock_mhz: float) -> Iterator[FlashStore]:
        """Yield the ways: at one edge of the clock, then at both."""
        for flash in _memories(target):
            if not isinstance(flash, SpiFlash):
                continue
            reads = [flash.best_read(clock_mhz, ddr=ddr) for ddr in (False, True)]
            for read in dict.fromkeys(reads):
                if read is not None:
                    yield cls(
                        chips=flash.chips, any_chip=flash.any_chip, lines=flash.lines,
                        address=flash.image_address, read=read, clock_mhz=clock_mhz,
                    )  # fmt: skip

    @property
    def base(self) -> int:
        return self.address

    @property
    def command(self) -> str:
        return self.read.name

    def reader(
        self, words: int, device: Device, once: int = 0, queue_words: int = 0
    ) -> FlashReader:
        queue = None
        if queue_words:
            depth = queue_words + FIFO_REGISTERS
            queue = BlockFifo(bits=BEAT_BITS, signed=False, frame=1, depth=depth, ram=device.ram)
        return FlashReader(
            chips=self.chips, any_chip=self.any_chip, read=self.read, clock_mhz=self.clock_mhz,
            base=self.address, words=words, once=once, queue=queue,
        )  # fmt: skip

    def fits(self, words: int) -> bool:
        """Whether the program is within the chip and 24 bits of address."""
        size = min(chip.megabits for chip in self.chips) << 17
        return self.address + 2 * words <= min(size, 1 << 24)

    def padded(self, image: bytes) -> bytes:
        return image

    def to_json(self) -> JsonObject:
        return {
            "kind": self.kind, "chips": [chip.name for chip in self.chips],
            "any_chip": self.any_chip, "lines": self.lines, "address": self.address,
            "read": self.read.name, "clock_mhz": self.clock_mhz,
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: JsonObject) -> FlashStore:
        known = {chip.name: chip for chip in FLASH_CHIPS}
        chips = tuple(known[name] for name in value["chips"])
        reads = {read.name: read for read in chips[0].reads}
        fields = {name: value[name] for name in ("any_chip", "lines", "address", "clock_mhz")}
        return cls(chips=chips, read=reads[value["read"]], **fields)


@dataclass(frozen=True, kw_only=True)
class SdramStore(Store):
    """SDRAM, which the host fills.

    Parameters
    ----------
    chip
        What the board has.
    """

    kind = Sdram.kind
    model = "nnef_hw.sim.memories:SdramModel"
    # Refreshes come at any time of a frame.
    repeats = False
    is_loaded = True
    repeats_tables = True

    chip: SdramChip

    @classmethod
    def ways(cls, target: Target, clock_mhz: float) -> Iterator[SdramStore]:
        """Yield the only way, if its words are beats or pairs of them, and it stands the clock."""
        for memory in _memories(target):
            if isinstance(memory, Sdram) and memory.width in {BEAT_BITS, 2 * BEAT_BITS}:
                store = cls(chip=memory.chip, clock_mhz=clock_mhz)
                if store.chip.stands(clock_mhz):
                    yield store

    @property
    def base(self) -> int:
        return 0

    @property
    def command(self) -> str:
        return f"CAS latency {self.chip.cas_latency(self.clock_mhz)}"

    @property
    def rows(self) -> RowFinder | None:
        is_found = self.chip.width == BEAT_BITS
        return RowFinder(chip=self.chip, clock_mhz=self.clock_mhz) if is_found else None

    def reader(
        self, words: int, device: Device, once: int = 0, queue_words: int = 0
    ) -> SdramReader | SplitReader:
        assert not queue_words
        reader = SdramReader if self.chip.width == BEAT_BITS else SplitReader
        return reader(
            chip=self.chip, clock_mhz=self.clock_mhz, words=words, ram=device.ram, once=once
        )

    def fits(self, words: int) -> bool:
        return words <= self.chip.words * (self.chip.width // BEAT_BITS)

    def padded(self, image: bytes) -> bytes:
        """Return an image with zeros up to the multiple of words that is written."""
        return image + bytes(-len(image) % (GRANULE * self.chip.width // 8))

    def to_json(self) -> JsonObject:
        return {"kind": self.kind, "chip": self.chip.name, "clock_mhz": self.clock_mhz}

    @classmethod
    def from_json(cls, value: JsonObject) -> SdramStore:
        known = {chip.name: chip for chip in SDRAM_CHIPS}
        return cls(chip=known[value["chip"]], clock_mhz=value["clock_mhz"])


_STORES: tuple[type[Store], ...] = (FlashStore, SdramStore)


def stores(target: Target, clock_mhz: float) -> Iterator[Store]:
    """Yield the ways to read the memories of a target."""
    for store in _STORES:
        yield from store.ways(target, clock_mhz)


def find_store(value: JsonObject) -> Store:
    """Return the memory of a plan.

    Raises
    ------
    LookupError, TypeError, ValueError
        If it is none.
    """
    return {store.kind: store for store in _STORES}[value["kind"]].from_json(value)
