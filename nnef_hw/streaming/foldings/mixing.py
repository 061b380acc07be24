"""DSP blocks that a design leaves over take multipliers of layers that are in logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nnef_hw.streaming.filters.arrays import ArrayFolding, ArrayLayer
from nnef_hw.streaming.foldings.block import Block

__all__ = ["fill_dsp"]

MOST_PRODUCTS = 2
"""Most multipliers that a DSP block is."""


class _Offer(NamedTuple):
    """LUTs that a multiplier of a block in logic takes, and which block it is."""

    luts: float
    position: int


def fill_dsp(blocks: Sequence[Block], dsp: int) -> list[Block]:
    """Move multipliers from logic to DSP blocks as long as a design takes fewer LUTs.

    Those that take most LUTs are moved first. ``dsp`` are the blocks that the design may use.
    """
    filled = list(blocks)
    offers = [_Offer(_luts(block), n) for n, block in enumerate(blocks) if _is_movable(block)]
    for offer in sorted(offers, reverse=True):
        block = filled[offer.position]
        used = sum(other.resources.dsp for other in filled)
        free = min(MOST_PRODUCTS * (dsp - used), block.multipliers - block.in_dsp)
        for count in range(free, 0, -1):
            moved = block.with_folding(in_dsp=block.in_dsp + count)
            is_free = used - block.resources.dsp + moved.resources.dsp <= dsp
            if is_free and moved.resources.lut < filled[offer.position].resources.lut:
                filled[offer.position] = moved
    return filled


def _is_movable(block: Block) -> bool:
    """Whether some of its multipliers are in logic that DSP blocks could be in the place of."""
    return (
        isinstance(block.folding, ArrayFolding)
        and isinstance(block.layer, ArrayLayer)
        and block.layer.fits_dsp
        and block.in_dsp < block.multipliers
    )


def _luts(block: Block) -> float:
    """LUTs that a multiplier takes more than one in a DSP block."""
    whole = block.with_folding(in_dsp=block.multipliers)
    moved = block.multipliers - block.in_dsp
    return (block.resources.lut - whole.resources.lut) / moved
