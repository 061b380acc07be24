"""Operators that streaming has no hardware for, though the fixed model computes them."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.arithmetic.tables import TABLE_BITS
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant
from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.host.protocol import LINK_BITS
from nnef_hw.ir import (
    Graph,
    Node,
    StreamOrder,
    Tensor,
    Trait,
    image_shape,
)
from nnef_hw.ir.operators import CanonicalOperator, SliceAttributes
from nnef_hw.passes.checks.check_data_movement import check_data_movement
from nnef_hw.passes.rewriting.names import authors_name
from nnef_hw.streaming.layers.kept_caches import why_not_kept

__all__ = ["check_streamable"]


def check_streamable(graph: Graph) -> list[NnefHwError]:
    """List why a canonical or fixed graph cannot be streamed, one error per cause."""
    errors: list[NnefHwError] = []

    def refuse(reason: str, remedy: str, what: Node | Tensor | None = None) -> None:
        location = what.location if what else None
        errors.append(UnsupportedError(reason, remedy=remedy, location=location))

    order = graph.once(StreamOrder)
    taken = [state.result for state in graph.states.values()]
    for name in graph.inputs:
        stream = order.inputs[name].tensor
        if not graph.consumers(stream) and stream not in {*graph.outputs, *taken}:
            refuse(f"input {name!r} is never read", "remove it from the model")
    for name in graph.outputs:
        qtype = graph.tensor(name).qtype
        if qtype is not None and qtype.bits > LINK_BITS:
            node = graph.producer(order.origin(name)[0])
            before = authors_name(graph, node.inputs[0]) if node else name
            refuse(
                f"output {name!r} has codes of {qtype.bits} bits, but those that leave the "
                f"hardware have at most {LINK_BITS}",
                f"end the network before it (--outputs {before}), and let the host compute it",
                node,
            )
    begun = _begun(graph)
    for name in graph.outputs if graph.states else ():
        if name not in begun:
            refuse(
                f"output {name!r} depends on no input of its step, only on states: it would leave "
                "before the step begins",
                "let the host keep what the step before has given",
            )
    for name, state in graph.states.items():
        reordering = order.reordering(state.result)
        if state.result in graph.inputs and (reordering is None or not reordering.is_trivial):
            refuse(
                f"the variable {name!r} takes over the input {state.result!r}, which layers read "
                "in another order",
                "let it take over the result of an operator",
                graph.tensor(name),
            )
    for node in graph.nodes:
        computed = [name for name in node.inputs if graph.tensor(name).data is None]
        for name in (*computed, *node.outputs):
            if image_shape(graph.tensor(name).shape) is None and not node.has(Trait.MOVES):
                shape = list(graph.tensor(name).shape)
                refuse(
                    f"{node.op} {authors_name(graph, node.name)!r}: tensor "
                    f"{authors_name(graph, name)!r} of shape {shape} cannot be streamed",
                    "use shapes [1, C], [1, C, L] or [1, C, H, W]",
                    node,
                )
        why = why_not_kept(graph, node) if node.op == "write_row" else None
        if why is not None:
            refuse(
                f"{node.op} {authors_name(graph, node.name)!r}: {why}",
                "let the step write a row, and attention alone read the cache as rows of tokens",
                node,
            )
        for reason, remedy in _problems(graph, node):
            refuse(f"{node.op} {authors_name(graph, node.name)!r}: {reason}", remedy, node)
    errors += check_data_movement(graph)
    if not errors and not _has_layers(graph, order):
        refuse("the model has nothing to compute", "give it a layer")
    return errors


def _begun(graph: Graph) -> set[str]:
    """Return the tensors of which a part at least waits for an input of the step.

    A slice may leave out what was joined to a state.
    """
    begun = set(graph.inputs)
    for node in graph.nodes:
        read = node.inputs
        joined = graph.producer(node.inputs[0]) if node.op == "slice" else None
        if joined is not None and joined.op == "concat":
            part = node.attributes(SliceAttributes)
            if part.axis == joined.attrs["axis"]:
                read = tuple(_joined(graph, joined, part))
        if not begun.isdisjoint(read):
            begun.update(node.outputs)
    return begun


def _joined(graph: Graph, node: Node, part: SliceAttributes) -> Iterator[str]:
    """Yield the operands of a concat of which a slice takes something."""
    end = 0
    for name in node.inputs:
        begin, end = end, end + graph.tensor(name).shape[part.axis]
        if begin < part.end and end > part.begin:
            yield name


def _has_layers(graph: Graph, order: StreamOrder) -> bool:
    """Whether anything is left that the host does not do."""
    moves = (order.reordering(name) for name in order.moved)
    return any(not node.has(Trait.MOVES) for node in graph.nodes) or any(
        move is not None and not move.is_trivial for move in moves
    )


def _problems(graph: Graph, node: Node) -> Iterator[tuple[str, str]]:
    """Yield reasons and remedies."""
    attrs = node.attrs
    if isinstance(attrs.get("requant"), TfliteAddRequant):
        formats = [graph.tensor(name).qtype for name in node.inputs]
        bits = max(qtype.bits for qtype in formats if qtype is not None)
        if bits > TABLE_BITS:
            yield (
                f"operands of {bits} bits need tables of {1 << bits} entries",
                f"use activations of at most {TABLE_BITS} bits, or rounding = 'half_up'",
            )
    if any(map(any, attrs.get("padding", ()))):
        operator = node.operator
        if isinstance(operator, CanonicalOperator) and attrs["border"] not in operator.borders:
            names = " or ".join(map(repr, operator.borders))
            yield f"border {attrs['border']!r} is not streamed yet", f"use {names}"
    if node.has(Trait.ALONG_CHANNELS) and list(attrs["axes"]) != [1]:
        yield f"axes = {list(attrs['axes'])} are not streamed", "use axes = [1]"
    if node.op == "concat" and any(graph.tensor(name).data is not None for name in node.inputs):
        yield "a constant part is not streamed yet", "add it after the accelerator"
