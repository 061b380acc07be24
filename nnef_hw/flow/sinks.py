"""``build --sink``: which outputs go where besides the host."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nnef_hw.architecture.architecture import Port
from nnef_hw.boards import Board
from nnef_hw.boards.hardware.pins import count_pins
from nnef_hw.boards.interfaces import ChosenSink, Result, SinkWish
from nnef_hw.errors import UsageError
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents
from nnef_hw.ir.operators import Trait

__all__ = ["bind_sinks", "class_count"]


def bind_sinks(
    wishes: Sequence[SinkWish], graph: Graph, board: Board, ports: Sequence[Port] = ()
) -> tuple[ChosenSink, ...]:
    """Return the sinks of a network on a board.

    Parameters
    ----------
    wishes
        What the user asks for.
    graph
        The network, in any stage.
    ports
        The streams of its outputs, in their order; none as long as there is no plan.

    Raises
    ------
    UsageError
        If an output does not exist, or is to be named and is not.
    TargetError
        If a sink can do nothing with its output, or the board has too few pins for it.
    """
    images = {
        name: port.image for name, port in zip(graph.outputs, ports, strict=bool(ports))
    }  # fmt: skip
    sinks: list[ChosenSink] = []
    for wish in wishes:
        result = _result(graph, _output(wish, graph), images)
        available = count_pins(board, wish.kind.board_pins)
        sinks.append(wish.kind.of(result, available, **dict(wish.options)))
    return tuple(sinks)


def _output(wish: SinkWish, graph: Graph) -> str:
    names = ", ".join(graph.outputs)
    if wish.output is None and len(graph.outputs) > 1:
        raise UsageError(
            f"the network has {len(graph.outputs)} outputs ({names}): which one is for the "
            f"{wish.title} is not clear",
            remedy=f"write --sink {graph.outputs[0]}={wish.kind.name}",
        )
    if wish.output is None:
        return graph.outputs[0]
    if wish.output not in graph.outputs:
        raise UsageError(
            f"the network has no output {wish.output!r} for the {wish.title}",
            remedy=f"its outputs are {names}",
        )
    name: str = wish.output
    return name


def _result(graph: Graph, name: str, images: dict[str, tuple[int, int, int]]) -> Result:
    """Return the facts about an output that a sink has to know."""
    shape = sample_extents(graph.tensor(name).shape)
    qtype = graph.tensor(name).qtype
    return Result(name, tuple(shape), class_count(graph, name), images.get(name), qtype)


def class_count(graph: Graph, name: str) -> int | None:
    """Return how many classes an output numbers; None if it is no number of a class."""
    if math.prod(sample_extents(graph.tensor(name).shape)) != 1:
        return None
    node = graph.producer(name)
    while node is not None and node.has(Trait.MOVES):
        node = graph.producer(node.inputs[0])
    if node is None or not node.has(Trait.INDEX):
        return None
    return math.prod(sample_extents(graph.tensor(node.inputs[0]).shape))
