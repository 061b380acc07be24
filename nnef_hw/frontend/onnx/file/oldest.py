"""Models of the opsets 1 to 5 as models of opset 6: the forms of few operators changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto

__all__ = ["OLDEST", "complete_attribute", "modernize"]

OLDEST = 6
"""The opset that older ones are turned into."""

_OBSOLETE = "consumed_inputs"
"""A hint about memory that operators of opset 1 may have."""


def complete_attribute(proto: AttributeProto) -> AttributeProto:
    """Return an attribute with its type: exporters before IR version 2 left it out."""
    if proto.type or proto.ref_attr_name:
        return proto
    kinds = proto.AttributeType
    lists = {"floats": kinds.FLOATS, "ints": kinds.INTS, "strings": kinds.STRINGS}
    numbers = {
        "f": kinds.FLOAT, "i": kinds.INT, "s": kinds.STRING, "t": kinds.TENSOR, "g": kinds.GRAPH,
    }  # fmt: skip
    found = [kind for name, kind in lists.items() if len(getattr(proto, name))]
    found += [kind for name, kind in numbers.items() if proto.HasField(name)]
    if len(found) == 1:
        proto.type = found[0]
    return proto


def modernize(graph: GraphProto) -> None:
    """Rewrite the nodes of a graph and its subgraphs from the opsets 1 to 5 to opset 6."""
    used = {name for node in graph.node for name in (*node.input, *node.output)}
    used.update(item.name for item in (*graph.input, *graph.initializer))
    for node in graph.node:
        if node.domain not in {"", "ai.onnx"}:
            continue
        for attribute in list(node.attribute):
            if attribute.name == _OBSOLETE:
                node.attribute.remove(attribute)
            elif complete_attribute(attribute).HasField("g"):
                modernize(attribute.g)
        rewrite = _REWRITES.get(node.op_type)
        if rewrite is not None:
            rewrite(graph, node, used)


def _taken(node: NodeProto, name: str) -> AttributeProto | None:
    """Remove an attribute from a node and return it."""
    for attribute in node.attribute:
        if attribute.name == name:
            node.attribute.remove(attribute)
            return attribute
    return None


def _reshape(graph: GraphProto, node: NodeProto, used: set[str]) -> None:
    """Since opset 5 the shape is an input."""
    if len(node.input) != 1 or (shape := _taken(node, "shape")) is None:
        return
    _add_input(graph, node, used, list(shape.ints))


def _add_input(graph: GraphProto, node: NodeProto, used: set[str], values: list[int]) -> None:
    name, count = f"{node.output[0] if node.output else 'node'}_shape", 2
    while name in used:
        name, count = f"{name}_{count}", count + 1
    used.add(name)
    tensor = graph.initializer.add(name=name, data_type=7, dims=[len(values)])
    tensor.int64_data.extend(values)
    node.input.append(name)


def _cast(graph: GraphProto, node: NodeProto, used: set[str]) -> None:
    """Replace the type of a cast by a number: before opset 6 it was a word."""
    from onnx import TensorProto

    del graph, used
    for attribute in node.attribute:
        if attribute.name == "to" and attribute.HasField("s"):
            word = attribute.s.decode(errors="replace").upper()
            if word in list(TensorProto.DataType.keys()):
                attribute.i = TensorProto.DataType.Value(word)
                attribute.type = attribute.AttributeType.INT
                attribute.ClearField("s")


def _concat(graph: GraphProto, node: NodeProto, used: set[str]) -> None:
    """Write the axis of a concatenation: before opset 4 it was 1 if left out."""
    del graph, used
    if not any(attribute.name == "axis" for attribute in node.attribute):
        node.attribute.add(name="axis", i=1, type=2)


def _pad(graph: GraphProto, node: NodeProto, used: set[str]) -> None:
    """Before opset 2 the attribute had another name."""
    del graph, used
    for attribute in node.attribute:
        if attribute.name == "paddings":
            attribute.name = "pads"


_REWRITES: dict[str, Callable[[Any, Any, set[str]], None]] = {
    "Cast": _cast, "Concat": _concat, "Pad": _pad, "Reshape": _reshape,
}  # fmt: skip
