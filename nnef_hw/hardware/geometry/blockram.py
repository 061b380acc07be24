"""Memories built from a device's block RAM primitives, so that their count is exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

__all__ = [
    "LUT_RAM_BITS", "LUT_RAM_WORDS", "BlockRam", "SinglePortRam", "Tiling", "registered_bits",
    "tile_memory", "tile_parts",
]  # fmt: skip


LUT_RAM_WORDS, LUT_RAM_BITS = 16, 4
"""Shape of a cell of LUT RAM."""


@dataclass(frozen=True, slots=True)
class BlockRam:
    """A device's block RAM: its ``(depth, width)`` shapes, widest first.

    ``has_register`` tells if a register behind it is a part of it that synthesis uses,
    ``writes_bits`` if the widest shape can write any bits of a word and keep the others,
    ``reads_twice`` if constants in the widest shape are read at two addresses per cycle, of which
    each half of a word twice as wide has one. Memories of at most ``short_words`` words are in LUT
    RAM instead, which ``lut_cells`` of a :class:`Tiling` counts.
    """

    name: str
    shapes: tuple[tuple[int, int], ...]
    has_register: bool = False
    writes_bits: bool = False
    reads_twice: bool = False
    short_words: int = 0

    def deepest(self, width: int) -> int:
        """Return the words of the deepest shape that is at least so wide."""
        return max(depth for depth, bits in self.shapes if bits >= width)


@dataclass(frozen=True, slots=True)
class SinglePortRam:
    """A device's single-port RAM block: its primitive, words and bits of a word."""

    name: str
    depth: int
    width: int

    def holds(self, words: int, bits: int) -> bool:
        """Whether a block has room for so many words of so many bits."""
        return words <= self.depth and bits <= self.width


@dataclass(frozen=True, slots=True)
class Tiling:
    """A memory of ``depth`` words x ``width`` bits as a grid of primitives.

    Attributes
    ----------
    tile_depth, tile_width
        Shape of one primitive.
    rows, columns
        Primitives stacked in depth (behind a multiplexer) and side by side in width.
    reads
        Addresses of a primitive that a word is read from, each with an equal share of the width.
    in_luts
        Whether the primitive is a memory in LUT RAM, of any shape.
    """

    depth: int
    width: int
    tile_depth: int
    tile_width: int
    reads: int = 1
    in_luts: bool = False

    @property
    def rows(self) -> int:
        """Primitives in depth."""
        return -(-self.depth // self.tile_depth)

    @property
    def columns(self) -> int:
        """Primitives in width."""
        return -(-self.width // self.tile_width)

    @property
    def count(self) -> int:
        """Block RAMs in all."""
        return 0 if self.in_luts else self.rows * self.columns

    @property
    def lut_cells(self) -> int:
        """Cells of LUT RAM in all."""
        if not self.in_luts:
            return 0
        return -(-self.depth // LUT_RAM_WORDS) * -(-self.width // LUT_RAM_BITS)


@cache
def tile_memory(ram: BlockRam, depth: int, width: int, *, constant: bool = False) -> Tiling:
    """Choose the tiling with the fewest primitives, and of these the fewest multiplexer inputs.

    A ``constant`` memory is read at two addresses of a primitive where that takes fewer of them.
    """
    if depth <= ram.short_words and not constant:
        return Tiling(depth, width, depth, width, in_luts=True)
    tilings = [Tiling(depth, width, *shape) for shape in ram.shapes]
    if constant and ram.reads_twice:
        words, bits = ram.shapes[0]
        tilings.append(Tiling(depth, width, words // 2, 2 * bits, reads=2))
    return min(
        tilings, key=lambda tiling: (tiling.count, tiling.rows, tiling.reads, -tiling.tile_width)
    )


@cache
def tile_parts(ram: BlockRam, depth: int, width: int, part_bits: int) -> Tiling:
    """Choose the tiling with the fewest primitives that hold whole parts, each written alone.

    Wide shapes of every family have an enable for each byte, of 8 bits or 9.
    """
    shapes = [(words, bits // part_bits * part_bits) for words, bits in ram.shapes]
    tilings = [Tiling(depth, width, *shape) for shape in shapes if shape[1]]
    return min(tilings, key=lambda tiling: (tiling.count, tiling.rows, -tiling.tile_width))


def registered_bits(ram: BlockRam, memories: Iterable[Tiling]) -> int:
    """Return how many bits of a register behind memories are no flip-flops, but in block RAMs.

    They are where no multiplexer stands between.
    """
    return sum(memory.width for memory in memories if memory.rows == 1) * ram.has_register
