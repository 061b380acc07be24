"""``build --link``: what a link has to know of the network behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.boards import Board
from nnef_hw.boards.hardware.memories import SpiFlash
from nnef_hw.boards.interfaces import Border, HostLink
from nnef_hw.errors import TargetError
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents

__all__ = ["bind_link", "with_link"]


def bind_link(link: HostLink, graph: Graph, plan: AcceleratorPlan) -> HostLink:
    """Return the link of a fixed network with a plan.

    Raises
    ------
    TargetError
        If the link can do nothing with the network.
    """
    if graph.is_sequential and link.has_host and not link.runs_sequences:
        raise TargetError(
            f"the {link.title} gives inputs one by one, and the network keeps states between them",
            remedy="use --link uart",
        )
    return link.bound(
        _borders(graph, graph.inputs, plan.inputs), _borders(graph, graph.outputs, plan.outputs)
    )


def with_link(target: Board, graph: Graph, link: HostLink) -> Board:
    """Return a board with less room: what a link takes more for a network than for any.

    A link without packets of ours cannot fill a memory, so that only flash is left.
    """
    if not link.has_packets:
        flash = tuple(memory for memory in target.memories if isinstance(memory, SpiFlash))
        target = replace(target, memories=flash)
    inputs, outputs = (
        sum(math.prod(sample_extents(graph.tensor(name).shape)) for name in names)
        for names in (graph.inputs, graph.outputs)
    )
    ram = target.device.ram
    more = link.room(inputs, outputs)
    return replace(
        target,
        link_lut=target.link_lut + more.lut,
        link_bram=target.link_bram + sum(tile_memory(ram, *size).count for size in more.memories),
    )


def _borders(graph: Graph, names: Sequence[str], ports: Sequence[Port]) -> dict[str, Border]:
    """Return inputs or outputs by name, with their formats and the images of their streams."""
    found = {}
    for name, port in zip(names, ports, strict=True):
        qtype = graph.tensor(name).qtype
        assert qtype is not None, name
        if isinstance(qtype.scale, tuple):
            raise TargetError(
                f"the link mlperf gives {name!r} one scale, and it has {len(qtype.scale)}",
                remedy="use --link uart",
            )
        found[name] = Border(
            name, qtype, port.image, tuple(sample_extents(graph.tensor(name).shape))
        )
    return found
