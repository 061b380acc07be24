"""Blocks of a plan -> components of ``rtl/``, connected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from amaranth import Module
from amaranth.lib import wiring

from nnef_hw.parts.stream import Skid
from nnef_hw.streaming import Block

__all__ = ["Connected", "build_parts", "connect_block"]


class Connected(NamedTuple):
    """A block's result, and what happens where it works in each cycle.

    ``busy``: it takes a word; ``waiting``: one is there and is not taken
    (:class:`~nnef_hw.streaming.activity.Activity`).
    """

    result: Any
    busy: Any
    waiting: Any


def build_parts(block: Block) -> list[Any]:
    """Return the components of a block, in stream order, filled with what its layer says."""
    contents = block.layer.contents(block.folding)
    components: list[Any] = []
    for n, part in enumerate(block.parts):
        filling = contents.get(part.label, {})
        if isinstance(part, Skid):
            # It takes what the part in front of it gives.
            filling = {"shape": block.parts[n - 1].result(components[-1]).payload.shape()}
        components.append(part.build(**filling))
    return components


def connect_block(
    m: Module,
    name: str,
    block: Block,
    operands: Sequence[Any],
    insert: Callable[[str, Any], None],
) -> Connected:
    """Connect a block's components, fed by the streams of its operands.

    ``insert`` adds a component to the module; their names begin with ``name``.
    """
    components = build_parts(block)
    streams = list(operands)
    for n, (part, component) in enumerate(zip(block.parts, components, strict=True)):
        insert(f"{name}_{part.label}", component)
        constant = block.layer.constant(block.device)
        if n == 0 and constant is not None:
            source = constant.build(**block.layer.contents(block.folding)[constant.label])
            insert(f"{name}_{constant.label}", source)
            streams.append(constant.result(source))
        for stream, operand in zip(streams, part.operands(component), strict=True):
            wiring.connect(m, stream, operand)
        streams = [part.result(component)]
    worker = block.parts[block.worker]
    arrived, taken = worker.arrivals(components[block.worker])
    return Connected(streams[0], arrived & taken, arrived & ~taken)
