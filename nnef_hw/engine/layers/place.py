"""Places of a table or a cache, of which an integer of an input chooses one."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.parts.engine.border import Choosing

__all__ = ["Place", "are_addressed"]


@dataclass(frozen=True, slots=True)
class Place:
    """An integer of an input that chooses one of some places.

    Parameters
    ----------
    port
        Number of the input.
    count
        Places; an integer beyond the last one is taken for that.
    """

    port: int
    count: int

    def record(self, words: int = 1, **effects: int) -> Choosing:
        """Return the record of an instruction, of places that are so many words apart."""
        assert are_addressed(words), f"{words} words from a place to the next one"
        shift = words.bit_length() - 1
        rest = words - (1 << shift)
        return Choosing(
            place=self.port, last_place=self.count - 1, place_shift=shift,
            place_rest=rest.bit_length(), **effects,
        )  # fmt: skip


def are_addressed(words: int) -> bool:
    """Whether places may be so many words apart: a power of two, or a sum of two of them."""
    return 1 <= words.bit_count() <= 2
