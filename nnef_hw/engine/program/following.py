"""Which instructions need not wait for results of those before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.unit import UnitLayer
from nnef_hw.engine.memory.placement import Placement
from nnef_hw.engine.program.instruction import Instruction
from nnef_hw.parts.engine.array import Results
from nnef_hw.parts.engine.contraction import Contracting

__all__ = ["Part", "followers"]

MOST_RESULTS = 8
"""Most results of a pass that have left when the next instruction ends its first one.

An instruction is read in more cycles: it has a row for each of six loops, and others.
"""


class Part(NamedTuple):
    """An instruction of a program, and the layer of which it is a part; none if it is a transfer.

    ``goes_on`` tells whether it needs nothing of what the parts of its layer before it give.
    """

    instruction: Instruction
    layer: EngineLayer | None
    goes_on: bool


def followers(parts: Sequence[Part], placement: Placement, *, is_streamed: bool) -> Iterator[int]:
    """Yield the numbers of instructions that begin while results of the one before leave.

    Further parts of a layer do. So do layers that read nothing of what is on its way, if the
    fields that results on their way need are the same.
    """
    held = placement.keeping.held
    is_alone = placement.batch == 1 and placement.banks is None and not is_streamed
    on_their_way: set[str] = set()
    last: Part | None = None
    for number, part in enumerate(parts):
        reads = set() if part.layer is None else set(map(held, part.layer.operands))
        is_apart = is_alone and reads.isdisjoint(on_their_way)
        if part.goes_on:
            assert last is not None, "a first part goes on"
            late, before = _late(part.instruction), _late(last.instruction)
            assert late == before, f"{late} are needed by results of a part that has {before}"
        if part.goes_on or (is_apart and last is not None and _may_follow(last, part)):
            yield number
        else:
            on_their_way.clear()
        if part.layer is not None:
            on_their_way.add(held(part.layer.tensor))
        last = part


def _may_follow(last: Part, part: Part) -> bool:
    """Whether an instruction may begin while results of another layer's leave."""
    is_usual = all(
        x.layer is not None
        and not isinstance(x.layer, UnitLayer)
        and not x.instruction.adds
        and x.instruction.find(Contracting) is None
        for x in (last, part)
    )
    results = last.instruction.find(Results)
    leave = results is not None and results.last_results <= MOST_RESULTS
    return is_usual and leave and _late(last.instruction) == _late(part.instruction)


def _late(instruction: Instruction) -> Mapping[str, int]:
    """Return fields that results on their way still need; fields left out are 0."""
    return {
        name: value
        for record in instruction.records
        for name, value in record.values().items()
        if value and record.facts()[name].late
    }
