"""``build --token-loop``: the board itself feeds a language model with the tokens it chooses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nnef_hw.architecture.architecture import Port
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards.interfaces import ChipLoop
from nnef_hw.flow.sinks import class_count
from nnef_hw.hardware.devices import Target
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.host.tokens import find_roles
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents
from nnef_hw.ir.input_readers import index_count

__all__ = ["bind_loop", "with_loop"]

_WEIGHTS = 256, 16
"""Words of the memory of weights, and their bits."""
_CODE_BITS = 8


@dataclass(frozen=True, slots=True)
class _Border:
    """A tensor at the border of a network."""

    name: str
    shape: tuple[int, ...]
    qtype: QType
    integers: int


def bind_loop(graph: Graph, ports: Sequence[Port]) -> ChipLoop:
    """Return the loop of a fixed network, whose outputs have these streams.

    Raises
    ------
    UsageError
        If the network is no step of a language model.
    TargetError
        If the hardware cannot choose by its scores.
    """
    inputs = [_border(graph, name, index_count(graph, name)) for name in graph.inputs]
    outputs = [_border(graph, name, class_count(graph, name) or 0) for name in graph.outputs]
    roles = find_roles(inputs, outputs)
    [port] = [p for name, p in zip(graph.outputs, ports, strict=True) if name == roles.scores]
    return ChipLoop.of(roles, port.image)


def with_loop(target: Target, graph: Graph) -> Target:
    """Return a target with less room: what the loop of a network takes of it."""
    scores = max(math.prod(sample_extents(graph.tensor(name).shape)) for name in graph.outputs)
    ram = target.device.ram
    blocks = sum(tile_memory(ram, *size).count for size in (_WEIGHTS, (scores, _CODE_BITS)))
    return replace(
        target, link_lut=target.link_lut + ChipLoop.lut, link_bram=target.link_bram + blocks
    )


def _border(graph: Graph, name: str, integers: int) -> _Border:
    tensor = graph.tensor(name)
    assert tensor.qtype is not None, name
    return _Border(name, sample_extents(tensor.shape), tensor.qtype, integers)
