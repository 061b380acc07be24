"""Language models: the loop on the board (``--token-loop``), and the memory of ``--context``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nnef_hw.architecture.architecture import Port
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards.interfaces import ChipLoop
from nnef_hw.errors import TargetError
from nnef_hw.flow.sinks import class_count
from nnef_hw.frontend.named_states import FixedContext
from nnef_hw.hardware.devices import Device, Target
from nnef_hw.hardware.families import Family
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.host.tokens import Roles, find_roles
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents
from nnef_hw.ir.input_readers import index_count

__all__ = ["bind_loop", "check_context", "loop_luts", "roles_of", "with_loop"]

_WEIGHTS = 256, 16
"""Words of the memory of weights, and their bits."""
_CODE_BITS = 8
_TOKEN_BITS = 5
"""Bits of a token of the loops that families know."""


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
    roles = roles_of(graph)
    [port] = [p for name, p in zip(graph.outputs, ports, strict=True) if name == roles.scores]
    return ChipLoop.of(roles, port.image)


def roles_of(graph: Graph) -> Roles:
    """Return the purposes of the inputs and outputs of a fixed network.

    Raises
    ------
    UsageError
        If the network is no step of a language model.
    """
    inputs = [_border(graph, name, index_count(graph, name)) for name in graph.inputs]
    outputs = [_border(graph, name, class_count(graph, name) or 0) for name in graph.outputs]
    return find_roles(inputs, outputs)


def with_loop(target: Target, graph: Graph) -> Target:
    """Return a target with less room: what the loop of a network takes of it."""
    scores = max(math.prod(sample_extents(graph.tensor(name).shape)) for name in graph.outputs)
    ram = target.device.ram
    blocks = sum(tile_memory(ram, *size).count for size in (_WEIGHTS, (scores, _CODE_BITS)))
    lut = loop_luts(target.device.family, scores)
    return replace(target, link_lut=target.link_lut + lut, link_bram=target.link_bram + blocks)


def loop_luts(family: Family, tokens: int) -> int:
    """Return the LUTs that are set aside for the loop of a network of so many tokens."""
    usual, of_bit = family.loop_lut
    return usual + of_bit * max(0, (tokens - 1).bit_length() - _TOKEN_BITS)


def _border(graph: Graph, name: str, integers: int) -> _Border:
    tensor = graph.tensor(name)
    assert tensor.qtype is not None, name
    return _Border(name, sample_extents(tensor.shape), tensor.qtype, integers)


def check_context(graph: Graph, wish: FixedContext, target: Target) -> None:
    """Refuse caches that are longer than all memory of a device, at a byte for each code.

    Raises
    ------
    TargetError
        With the bytes, and the longest context that the memory would hold.
    """
    rows = [state.initial for state in graph.states.values() if state.initial.ndim == 2]
    row = sum(cache.shape[1] for cache in rows if len(cache) == wish.context)
    has = _bytes(target.device)
    if row * wish.context > has:
        raise TargetError(
            f"caches of {wish.context:,} places take {row * wish.context:,} bytes ({len(rows)} of "
            f"them, {row:,} bytes a place), and {target.device.name} has {has:,} bytes of memory "
            "on the chip",
            remedy=f"give --context {has // row} or less: the network needs some of it, too; or "
            "take a larger board",
        )


def _bytes(device: Device) -> int:
    """Return the bytes of all memory on a device."""
    single = device.single_port
    more = 0 if single is None else device.spram * single.depth * single.width // 8
    return device.ram_bytes + more
