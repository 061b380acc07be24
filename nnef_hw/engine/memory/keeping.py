"""Next values of states are computed in their places, or copied there at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nnef_hw.engine.layers.constant import CopyLayer, KeptState
from nnef_hw.engine.layers.layer import EngineLayer

__all__ = ["Keeping", "keep"]


@dataclass(frozen=True)
class Keeping:
    """Ways in which states get their next values.

    Parameters
    ----------
    in_place
        States by the names of next values that are computed in the places of these.
    copies
        What copies the others, behind all layers.
    """

    in_place: Mapping[str, str] = field(default_factory=dict)
    copies: tuple[CopyLayer, ...] = ()

    def held(self, tensor: str) -> str:
        """Return the name of the tensor that has a place of its own for one."""
        return self.in_place.get(tensor, tensor)


def keep(
    states: Sequence[KeptState],
    layers: Sequence[EngineLayer],
    is_possible: Callable[[Keeping], bool],
) -> Keeping:
    """Return how states get their next values: in place where that can be.

    Parameters
    ----------
    layers
        All layers of a frame.
    is_possible
        Whether the places of tensors allow for what has been found so far.
    """
    states = [state for state in states if state.result != state.name]
    found, copied = Keeping(), list[KeptState]()
    rows = {layer.tensor for layer in layers if layer.row is not None}
    for state in states:
        trial = replace(found, in_place={**found.in_place, state.result: state.name})
        is_free = state.result not in found.in_place and _may_write_over(state, states, layers)
        if is_free and (state.result in rows or is_possible(trial)):
            found = trial
        else:
            copied.append(state)
            found = replace(found, copies=(*found.copies, state.copy))
    assert rows <= found.in_place.keys(), "rows are written to places of states"
    return replace(found, copies=tuple(_in_order(copied)))


def _may_write_over(
    state: KeptState, states: Sequence[KeptState], layers: Sequence[EngineLayer]
) -> bool:
    """Whether a layer computes the next value, when nothing reads the state any more.

    What it adds to its codes it reads word by word, just before it writes.
    """
    own = next((n for n, layer in enumerate(layers) if layer.tensor == state.result), None)
    if own is None or any(other.result == state.name for other in states):
        return False
    reads = [n for n, layer in enumerate(layers) if state.name in layer.operands]
    last = max(reads, default=-1)
    return last < own or (last == own and state.name not in layers[own].read_tensors)


def _in_order(copied: Sequence[KeptState]) -> list[CopyLayer]:
    """Return copies of which none writes over what a later one reads.

    States that change places take a copy more, of the one that is written first.
    """
    left, found = list(copied), list[CopyLayer]()
    while left:
        free = (x for x in left if all(other.result != x.name for other in left if other is not x))
        state = next(free, None)
        if state is None:
            first, saved = left[0], f"{left[0].name}'"
            [reader] = [x for x in left if x.result == first.name]
            image = first.copy.target
            found.append(replace(reader.copy, tensor=saved, source=image, target=image))
            left[left.index(reader)] = reader.renamed({first.name: saved})
            continue
        left.remove(state)
        found.append(state.copy)
    return found
