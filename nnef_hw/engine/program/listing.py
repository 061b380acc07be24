"""The program of an engine, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.nest import Nest
from nnef_hw.engine.program.design import Design
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.engine.sequencer import ReadPlace, WritePlace

__all__ = ["list_program"]


def list_program(design: Design) -> Iterator[Fields]:
    """Yield a row per instruction: what it runs, its loops, its places in the memories.

    ``loops`` are the iterations, the innermost first, up to the end of a pass and behind it;
    ``read`` and ``write`` first words of codes; ``words``, ``weights``, ``constants`` how many it
    takes; ``beats`` the size of its packet where the program is a stream, and ``from`` where that
    comes: from the chip if it stays there.
    """
    lanes, sinks = design.shape.lanes, design.network.sinks
    placement, names = design.placement, design.program.names
    moved = [placement.loadings[step.n].words * step.frames for step in placement.steps.loads]
    moved += [sinks[step.n].image.words(lanes) * step.frames for step in placement.steps.sends]
    border, own = iter(moved), iter([run.layer for run in design.program.runs for _ in run.parts])
    for n, (instruction, name) in enumerate(zip(design.instructions, names, strict=True)):
        layer = next(own) if instruction.kind in {Kind.RUN, Kind.STREAM} else None
        nest = instruction.nest
        reads, writes = instruction.find(ReadPlace), instruction.find(WritePlace)
        row = {
            "step": n, "does": instruction.kind.name.lower(), "tensor": name,
            "operation": "" if layer is None else _operation(layer),
            "loops": "", "words": None, "read": None if reads is None else reads.read,
            "write": None if writes is None else writes.write, "weights": len(instruction.weights),
            "constants": len(instruction.constants) * design.shape.results,
            "beats": design.packets.packet_words(instruction) if design.ring_words else None,
            "from": _origin(design, n),
        }  # fmt: skip
        yield row | ({"words": next(border)} if layer is None else _loops(design, layer, nest))


def _origin(design: Design, n: int) -> str | None:
    """Say where the packet of an instruction comes from."""
    if n in design.resident:
        return "chip"
    kind = None if design.store is None else design.store.kind
    hosts = dict(design.staged)
    return f"{kind}, during {hosts[n]}" if n in hosts else kind


def _operation(layer: EngineLayer) -> str:
    """Say which operation a layer computes, and what becomes of its results."""
    kernel = "x".join(map(str, layer.kernel))
    text = f"{layer.label} {kernel}"
    if layer.residual is not None:
        text += f", + {layer.residual.tensor}"
    return f"{text}, table" if layer.table is not None else text


def _loops(design: Design, layer: EngineLayer, nest: Nest | None) -> Fields:
    assert nest is not None, "a layer has loops"
    # A first word may be in front of its tensor: padding.
    read, write = design.placement.places_read(layer, 0)[0], design.placement.places[layer.tensor]
    if nest.in_codes:
        read, write = nest.starts["read"] // design.shape.lanes, nest.starts["write"]
    inner, outer = (" ".join(map(str, part)) for part in (nest.counts[:3], nest.counts[3:]))
    return {"loops": f"{inner} | {outer}", "words": nest.words, "read": read, "write": write}
