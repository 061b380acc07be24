"""Attributes of canonical nodes, parsed and checked in one place for all who read them.

An operator has a class of them where several parts of the compiler read the same values. Passes,
which meet nodes in any form, read ``node.attrs``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

__all__ = ["Attributes", "Pair", "integer_pair", "padding_pairs"]

Pair = tuple[int, int]


class Attributes(ABC):
    """Attributes of a node of the canonical or the fixed stage: a frozen dataclass of them."""

    @classmethod
    @abstractmethod
    def parse(cls, attrs: Mapping[str, object]) -> Self:
        """Return the attributes of a node from their NNEF form.

        Raises
        ------
        AssertionError
            If a pass of ours left a form that the canonical stage does not have.
        """


def integer_pair(values: Sequence[int]) -> Pair:
    """Return an item for the rows and one for the columns."""
    assert len(values) == 2, f"{list(values)} are not a pair"
    rows, columns = values
    return int(rows), int(columns)


def padding_pairs(padding: Sequence[Sequence[int]]) -> tuple[Pair, Pair]:
    """Return the pixels before and after the rows, and before and after the columns."""
    assert len(padding) == 2, f"padding {list(padding)} is not one of rows and columns"
    rows, columns = map(integer_pair, padding)
    assert min(*rows, *columns) >= 0, f"padding {list(padding)} crops"
    return rows, columns
