"""A graph as plain JSON values: the base of ``fixed.json`` and of the graph's hash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import Location
from nnef_hw.ir import Graph, Node, Stage, Tensor
from nnef_hw.numerics import QType, Requant

__all__ = ["decode_graph", "encode_graph"]

Array = NDArray[Any]


def encode_graph(
    graph: Graph,
    tensor_data: Callable[[Tensor, Array], Any],
    attr_data: Callable[[Node, str, Array], Any],
    *,
    locations: bool,
) -> dict[str, Any]:
    """Return JSON values that hold the whole graph.

    Parameters
    ----------
    tensor_data, attr_data
        Put an array somewhere and return the JSON value that leads to it.
    locations
        Keep the source locations, with the file's name only.
    """
    return {
        "name": graph.name,
        "stage": graph.stage.value,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "tensors": [
            {
                "name": tensor.name,
                "shape": list(tensor.shape),
                "dtype": tensor.dtype,
                "label": tensor.label,
                "qtype": tensor.qtype.to_json() if tensor.qtype else None,
                "data": None if tensor.data is None else tensor_data(tensor, tensor.data),
                **_location(tensor.location, keep=locations),
            }
            for tensor in graph.tensors.values()
        ],
        "nodes": [
            {
                "op": node.op,
                "inputs": list(node.inputs),
                "outputs": list(node.outputs),
                "attrs": {
                    key: _encode(node.attrs[key], node, key, attr_data)
                    for key in sorted(node.attrs)
                },
                **_location(node.location, keep=locations),
            }
            for node in graph.nodes
        ],
    }


def decode_graph(value: dict[str, Any], array: Callable[[Any], Array]) -> Graph:
    """Inverse of :func:`encode_graph`; ``array`` follows what its callbacks returned.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the values do not come from there.
    """
    tensors = [
        Tensor(
            name=item["name"],
            shape=tuple(item["shape"]),
            dtype=item["dtype"],
            data=None if item["data"] is None else array(item["data"]),
            label=item["label"],
            qtype=None if item["qtype"] is None else QType.from_json(item["qtype"]),
            location=_unlocation(item),
        )
        for item in value["tensors"]
    ]
    nodes = tuple(
        Node(
            op=item["op"],
            inputs=tuple(item["inputs"]),
            outputs=tuple(item["outputs"]),
            attrs={key: _decode(attr, array) for key, attr in item["attrs"].items()},
            location=_unlocation(item),
        )
        for item in value["nodes"]
    )
    return Graph(
        name=value["name"],
        inputs=tuple(value["inputs"]),
        outputs=tuple(value["outputs"]),
        tensors={tensor.name: tensor for tensor in tensors},
        nodes=nodes,
        stage=Stage(value["stage"]),
    )


def _location(location: Location | None, *, keep: bool) -> dict[str, Any]:
    if location is None or not keep:
        return {}
    name = PurePath(location.file).name
    return {"location": [name, location.line, location.column, location.text]}


def _unlocation(item: dict[str, Any]) -> Location | None:
    return Location(*item["location"]) if "location" in item else None


def _encode(value: Any, node: Node, key: str, attr_data: Callable[[Node, str, Array], Any]) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, list):
        return [_encode(item, node, key, attr_data) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(item, node, key, attr_data) for item in value]}
    if isinstance(value, Requant):
        return {"requant": value.to_json()}
    if isinstance(value, QType):
        return {"qtype": value.to_json()}
    if isinstance(value, np.ndarray):
        return {"array": attr_data(node, key, value)}
    raise TypeError(f"{node.name}: attribute {key} of {type(value).__name__} cannot be saved")


def _decode(value: Any, array: Callable[[Any], Array]) -> Any:
    if isinstance(value, list):
        return [_decode(item, array) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(_decode(item, array) for item in content)
    if kind == "requant":
        return Requant.from_json(content)
    if kind == "qtype":
        return QType.from_json(content)
    if kind == "float":
        return float(content)
    if kind == "array":
        return array(content)
    raise ValueError(f"unknown kind of value {kind!r}")
