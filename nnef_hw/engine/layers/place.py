"""Places of a table or a cache, of which an integer of an input chooses one."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.parts.engine.border import Choosing

__all__ = ["Place"]


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
        shift = (words - 1).bit_length()
        assert words == 1 << shift, f"{words} words from a place to the next one"
        return Choosing(place=self.port, last_place=self.count - 1, place_shift=shift, **effects)
