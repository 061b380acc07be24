"""Where tensors are in the memory of codes: each from the instruction that makes it to its last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Stay", "allocate", "allocate_banks"]


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


def allocate(stays: Sequence[Stay]) -> tuple[Mapping[str, int], int]:
    """Give every tensor the lowest place that is free as long as it stays, largest tensors first.

    Returns
    -------
    First words by name, and words in all.
    """
    placed: list[tuple[Stay, int]] = []
    for stay in sorted(stays, key=lambda stay: (-stay.words, stay.first)):
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
    places = {stay.tensor: begin for stay, begin in placed}
    return places, max(begin + stay.words for stay, begin in placed)


def allocate_banks(
    stays: Sequence[Stay], apart: Sequence[tuple[str, str]], words: int
) -> Mapping[str, int] | None:
    """Give every tensor a place in one of two banks, of which one is read and the other written.

    Parameters
    ----------
    apart
        Pairs of tensors that must not be in one bank; a tensor and what it replaces are in one.
    words
        Words of a bank; the second one begins there.

    Returns
    -------
    First words by name; None if there is no way, or not enough room.
    """
    banks: dict[str, int] = {}
    neighbours: dict[str, list[tuple[str, int]]] = {stay.tensor: [] for stay in stays}
    together = [(stay.tensor, stay.replaces) for stay in stays if stay.replaces is not None]
    for pairs, differs in ((apart, 1), (together, 0)):
        for one, other in pairs:
            neighbours[one].append((other, differs))
            neighbours[other].append((one, differs))
    for stay in stays:
        waiting = [] if stay.tensor in banks else [stay.tensor]
        banks.setdefault(stay.tensor, 0)
        while waiting:
            tensor = waiting.pop()
            for other, differs in neighbours[tensor]:
                bank = banks[tensor] ^ differs
                if other not in banks:
                    waiting.append(other)
                if banks.setdefault(other, bank) != bank:
                    return None
    places: dict[str, int] = {}
    for bank in (0, 1):
        inside = [stay for stay in stays if banks[stay.tensor] == bank]
        found, used = allocate(inside) if inside else ({}, 0)
        if used > words:
            return None
        places |= {tensor: place + bank * words for tensor, place in found.items()}
    return places


def _meet(one: Stay, other: Stay) -> bool:
    """Whether both are in memory at a time."""
    return one.first <= other.last and other.first <= one.last


def _share(one: Stay, other: Stay) -> bool:
    """Whether one may take the other's place word by word."""
    early, late = sorted((one, other), key=lambda stay: stay.first)
    return late.replaces == early.tensor and early.last == late.first and early.words == late.words
