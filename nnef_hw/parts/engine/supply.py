"""Where the program, constants and weights of a shared engine are: in memories, or in a stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.program import BEAT_BITS, Layout, beats_of
from nnef_hw.parts.engine.sequencer import OperandPlaces

__all__ = ["Held", "PacketSizes", "Ring", "Supply", "Written"]

_RING_ROWS = 256
_GAPLESS_LUTS = -170.0
"""Of memories without gaps: steps of few bits, and a memory of weights and matrices in one.

Measured: names_gpt's engines on an UP5K take 177 and 245 logic cells less than are counted besides.
"""
_FEED_LUTS = 300
"""Of what puts a program that comes as a stream into its memories."""
_WRITING_LUTS = 120
"""Of what puts a program that a system writes into its memories."""


@dataclass(frozen=True, kw_only=True)
class PacketSizes(Record):
    """Sizes of the packets that come with an instruction, and are freed when the packets end."""

    weights: int = fact("words of weights that it takes")
    constants: int = fact("groups of biases and factors that it takes")


@dataclass(frozen=True, kw_only=True)
class Supply(Feature):
    """Memories of the program, of constants and of weights.

    Parameters
    ----------
    frame_weights
        Words of weights of a frame.
    constants
        Depth of the memory of constants.
    instructions
        Length of the program.
    tail_beats
        Beats of the tables of what stands behind the engine, which come with those of functions if
        they are written.

    Attributes
    ----------
    is_written
        Whether the memories are written, and those of tables.
    """

    is_written: ClassVar[bool]

    frame_weights: int
    constants: int
    instructions: int
    tail_beats: int = 0

    @property
    def is_shared(self) -> bool:
        """Whether matrices of codes are in the memory of weights, which is theirs then."""
        return False

    @property
    @abstractmethod
    def follows_last(self) -> int:
        """Slot of the instruction that follows the one in the last slot."""

    @property
    @abstractmethod
    def weights(self) -> int:
        """Depth of the memory of weights."""

    def unit_bits(self, ram: BlockRam) -> int:
        """Return the bits of which a row of the program is made: what is left of them is free."""
        return 1

    def stride(self, layout: Layout) -> int:
        """Return the rows from an instruction to the next one."""
        return layout.stride

    @abstractmethod
    def slots(self, stride: int) -> int:
        """Return the instructions that the memory of the program holds, of so many rows each."""

    @abstractmethod
    def tiled(self, ram: BlockRam, depth: int, bits: int) -> tuple[Tiling, ...]:
        """Return a memory of any of these."""

    def weight_memories(self, engine: EngineSizes) -> tuple[Tiling, ...]:
        """Return the memory of weights, unless it is that of matrices."""
        if self.is_shared:
            return ()
        return self.tiled(engine.ram, self.weights, engine.weight_bits)

    def constant_memories(self, engine: EngineSizes) -> tuple[Tiling, ...]:
        """Return the memory of biases, factors, shifts, those of a cycle's results together."""
        return self.tiled(engine.ram, self.constants, engine.results * engine.constant_bits)

    def program_memories(self, engine: EngineSizes) -> tuple[Tiling, ...]:
        """Return the memory of the program."""
        stride = self.stride(engine.layout)
        return self.tiled(engine.ram, self.slots(stride) * stride, engine.layout.row_bits)

    def memories(self, engine: EngineSizes) -> Sequence[Tiling]:
        return (
            *self.weight_memories(engine), *self.constant_memories(engine),
            *self.program_memories(engine),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Whole(Supply):
    """Memories that hold all of it from the beginning.

    Parameters
    ----------
    first
        The first instruction of a frame: those before it run once.
    dense
        Whether the next instruction's rows are behind the last one of an instruction; or there is
        room for a power of two of them, so that addresses are not added.
    shared
        Whether matrices of codes are behind the weights.
    """

    first: int = 0
    dense: bool = False
    shared: bool = False

    @property
    def is_shared(self) -> bool:
        return self.shared

    def luts(self, engine: EngineSizes, device: Device) -> float:
        return _GAPLESS_LUTS if self.dense else 0.0

    @property
    def follows_last(self) -> int:
        return self.first

    @property
    def weights(self) -> int:
        return self.frame_weights

    def unit_bits(self, ram: BlockRam) -> int:
        return max(width for _, width in ram.shapes) if self.dense else 1

    def stride(self, layout: Layout) -> int:
        return layout.rows if self.dense else layout.stride

    def slots(self, stride: int) -> int:
        return self.instructions


@dataclass(frozen=True, kw_only=True)
class Held(Whole):
    """Memories that hold all of it for ever."""

    label = "memories of the program"
    is_written = False

    def tiled(self, ram: BlockRam, depth: int, bits: int) -> tuple[Tiling, ...]:
        return (tile_memory(ram, depth, bits),)


@dataclass(frozen=True, kw_only=True)
class Written(Whole):
    """Memories that hold all of it until a system writes another program."""

    label = "memories of the program that are written"
    component = "nnef_hw.rtl.engine.written:WrittenProgram"
    is_written = True

    def tiled(self, ram: BlockRam, depth: int, bits: int) -> tuple[Tiling, ...]:
        return _tiled_by_beats(ram, depth, bits)

    def luts(self, engine: EngineSizes, device: Device) -> float:
        return _WRITING_LUTS


@dataclass(frozen=True, kw_only=True)
class Ring(Supply):
    """Circular memories that a program passes which comes as a stream.

    Parameters
    ----------
    words
        Words of weights that have room in it, a power of two.
    """

    label = "a program that is a stream"
    component = "nnef_hw.rtl.engine.feed:EngineFeed"
    says = (PacketSizes,)
    implied = (OperandPlaces,)

    is_written = True

    words: int

    def __post_init__(self) -> None:
        if self.words < 1 or self.words & (self.words - 1):
            raise ValueError(f"Engine ring words must be a power of two, not {self.words}")

    def widths(self, engine: EngineSizes) -> Mapping[str, int]:
        return {"weights": self.words.bit_length(), "constants": self.constants.bit_length()}

    @property
    def follows_last(self) -> int:
        return 0

    @property
    def weights(self) -> int:
        return self.words

    def slots(self, stride: int) -> int:
        return max(2, _RING_ROWS // stride)

    def tiled(self, ram: BlockRam, depth: int, bits: int) -> tuple[Tiling, ...]:
        return _tiled_by_beats(ram, depth, bits)

    def luts(self, engine: EngineSizes, device: Device) -> float:
        return _FEED_LUTS


def _tiled_by_beats(ram: BlockRam, depth: int, bits: int) -> tuple[Tiling, ...]:
    """Return a memory for each beat, or two, of a word, where that takes fewer block RAMs."""
    beat = (tile_memory(ram, depth, BEAT_BITS),)
    pair = (tile_memory(ram, depth, 2 * BEAT_BITS),)
    pairs, rest = divmod(beats_of(bits), 2)
    ways = (beat * beats_of(bits), pair * pairs + beat * rest)
    return min(ways, key=lambda way: sum(tiling.count for tiling in way))
