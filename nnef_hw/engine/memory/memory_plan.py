"""Places of tensors in the memory of codes: each from the instruction that makes it to its last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Stay", "allocate", "allocate_banks", "allocate_closely", "are_apart"]

_ORDERS = 24
"""Orders in which places are tried; a vision transformer's best one was the fifth."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A tensor in memory.

    Parameters
    ----------
    tensor
        Its name.
    words
        Its size.
    first, last
        Instructions that make it, and that read it last.
    replaces
        Tensor that is read word by word as this one is written, just before: it may have the same
        place.
    """

    tensor: str
    words: int
    first: int
    last: int
    replaces: str | None = None


def allocate(
    stays: Sequence[Stay], *, before: Collection[str] = ()
) -> tuple[Mapping[str, int], int]:
    """Give every tensor the lowest place that is free as long as it stays, largest tensors first.

    Parameters
    ----------
    before
        Names of tensors that come before all others.

    Returns
    -------
    First words by name, and words in all.
    """
    order = sorted(stays, key=lambda x: (x.tensor not in before, -x.words, x.first))
    return _with_end(_placed(order))


def allocate_closely(stays: Sequence[Stay]) -> tuple[Mapping[str, int], int]:
    """Do the same in several orders, each with the tensor first that was the last one in memory.

    Returns
    -------
    First words by name, and words in all, of the order that takes fewest.
    """
    order = sorted(stays, key=lambda x: (-x.words, x.first))
    found: list[tuple[Mapping[str, int], int]] = []
    for _ in range(_ORDERS):
        placed = _placed(order)
        found.append(_with_end(placed))
        topmost, _ = max(placed, key=lambda x: x[0].words + x[1])
        order = [topmost, *(x for x in order if x is not topmost)]
    return min(found, key=lambda x: x[1])


def _with_end(placed: Sequence[tuple[Stay, int]]) -> tuple[Mapping[str, int], int]:
    places = {stay.tensor: begin for stay, begin in placed}
    return places, max(begin + stay.words for stay, begin in placed)


def _placed(order: Iterable[Stay]) -> list[tuple[Stay, int]]:
    """Return tensors in that order, each with the lowest place that those before leave it."""
    placed: list[tuple[Stay, int]] = []
    for stay in order:
        others = [(it, begin) for it, begin in placed if _meet(stay, it)]
        candidates = {0, *(begin + it.words for it, begin in others)}
        candidates |= {begin for it, begin in others if _share(stay, it)}
        begin = min(
            place
            for place in candidates
            if all(
                place >= other + it.words
                or place + stay.words <= other
                or (place == other and _share(stay, it))
                for it, other in others
            )
        )
        placed.append((stay, begin))
    return placed


def allocate_banks(
    stays: Sequence[Stay], apart: Sequence[tuple[str, str]], words: int
) -> Mapping[str, int] | None:
    """Give every tensor a place in one of two banks, of which one is read and the other written.

    Parameters
    ----------
    apart
        Pairs of tensors that must not be in one bank. A tensor and what it replaces are in one if
        that can be, the largest such tensors first.
    words
        Words of a bank; the second one begins there.

    Returns
    -------
    First words by name; None if there is no way, or not enough room.
    """
    bound = _Bound([stay.tensor for stay in stays])
    if not all(bound.bind(one, other, 1) for one, other in apart):
        return None
    for stay in sorted(stays, key=lambda stay: -stay.words):
        if stay.replaces is not None:
            bound.bind(stay.replaces, stay.tensor, 0)
    banks = {tensor: bank for tensor, (_, bank) in bound.found.items()}
    places: dict[str, int] = {}
    for bank in (0, 1):
        inside = [stay for stay in stays if banks[stay.tensor] == bank]
        found, used = allocate(inside) if inside else ({}, 0)
        if used > words:
            return None
        places |= {tensor: place + bank * words for tensor, place in found.items()}
    return places


def are_apart(apart: Sequence[tuple[str, str]]) -> bool:
    """Whether two banks are enough to keep the tensors of every pair apart."""
    bound = _Bound(name for pair in apart for name in pair)
    return all(bound.bind(one, other, 1) for one, other in apart)


class _Bound:
    """Banks of tensors, as far as they follow from each other.

    Attributes
    ----------
    found
        The bank of every tensor, from that of the one that stands for all it is bound to.
    """

    def __init__(self, tensors: Iterable[str]) -> None:
        self.found = {name: (name, 0) for name in tensors}

    def bind(self, one: str, other: str, differs: int) -> bool:
        """Bind two tensors' banks; tell whether they are as they should."""
        (head, bank), (tail, flip) = self.found[one], self.found[other]
        if head == tail:
            return bank ^ flip == differs
        for tensor, (stands, own) in self.found.items():
            if stands == tail:
                self.found[tensor] = head, own ^ bank ^ flip ^ differs
        return True


def _meet(one: Stay, other: Stay) -> bool:
    """Whether both are in memory at a time."""
    return one.first <= other.last and other.first <= one.last


def _share(one: Stay, other: Stay) -> bool:
    """Whether one may take the other's place word by word."""
    early, late = sorted((one, other), key=lambda stay: stay.first)
    return late.replaces == early.tensor and early.last == late.first and early.words == late.words
