"""A graph as plain JSON values: the base of ``fixed.json`` and of the graph's hash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.audio.log_mel import LogMelRequant
from nnef_hw.arithmetic.features import FeatureScales
from nnef_hw.arithmetic.integer_functions import IntegerNormalizeRequant
from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.arithmetic.numerics import AddRequant, QType, Requant
from nnef_hw.arithmetic.records import AttributeValue, Fields, JsonObject
from nnef_hw.arithmetic.tflite.division import TfliteQuotient
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant, TfliteAverage, TfliteRequant
from nnef_hw.errors import Location
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.ir import Graph, Node, Quantization, Stage, State, Tensor

__all__ = ["decode_graph", "encode_graph"]

TensorData = Callable[[Tensor, Array], object]
AttrData = Callable[[Node, str, Array], object]

_NUMBERS: Fields = {
    "add_requant": AddRequant,
    "integer_normalize_requant": IntegerNormalizeRequant,
    "log_mel_requant": LogMelRequant,
    "normalize_requant": NormalizeRequant,
    "qtype": QType,
    "requant": Requant,
    "tflite_add_requant": TfliteAddRequant,
    "tflite_average": TfliteAverage,
    "tflite_quotient": TfliteQuotient,
    "tflite_requant": TfliteRequant,
}
"""Values of :mod:`nnef_hw.arithmetic.numerics` in attributes; all have to_json and from_json."""


def encode_graph(
    graph: Graph, tensor_data: TensorData, attr_data: AttrData, *, locations: bool
) -> Fields:
    """Return JSON values that hold the whole graph.

    Parameters
    ----------
    tensor_data, attr_data
        Store an array and return the JSON value that refers to it.
    locations
        Keep the source locations, with the file's name only.
    """
    return _Encoder(tensor_data, attr_data, locations=locations).graph(graph)


class _Encoder:
    def __init__(self, tensor_data: TensorData, attr_data: AttrData, *, locations: bool) -> None:
        self._tensor_data, self._attr_data, self._locations = tensor_data, attr_data, locations

    def graph(self, graph: Graph) -> dict[str, object]:
        value: dict[str, object] = {
            "name": graph.name,
            "stage": graph.stage.value,
            "inputs": list(graph.inputs),
            "outputs": list(graph.outputs),
            "tensors": [self._tensor(tensor) for tensor in graph.tensors.values()],
            "nodes": [self._node(node) for node in graph.nodes],
        }
        if graph.rounding is not None:
            value["rounding"] = graph.rounding
        if graph.rows:
            value["rows"] = {name: found.to_json() for name, found in graph.rows.items()}
        if graph.features:
            value["features"] = {name: found.to_json() for name, found in graph.features.items()}
        if graph.states:
            value["states"] = {
                name: {
                    "initial": self._tensor_data(graph.tensor(name), state.initial),
                    "result": state.result,
                    "label": state.label,
                    **({} if state.goes_on else {"steps": state.steps}),
                }
                for name, state in graph.states.items()
            }
        return value

    def _tensor(self, tensor: Tensor) -> dict[str, object]:
        value = {
            "name": tensor.name,
            "shape": list(tensor.shape),
            "dtype": tensor.dtype,
            "label": tensor.label,
            "qtype": tensor.qtype.to_json() if tensor.qtype else None,
            "data": None if tensor.data is None else self._tensor_data(tensor, tensor.data),
            **self._location(tensor.location),
        }
        if tensor.quant is not None:
            args = {key: _plain(arg) for key, arg in tensor.quant.args.items()}
            value["quant"] = {"op": tensor.quant.op, "args": args}
            if tensor.quant.ties_to_even:
                value["quant"]["ties_to_even"] = True
        return value

    def _node(self, node: Node) -> dict[str, object]:
        return {
            "op": node.op,
            "inputs": list(node.inputs),
            "outputs": list(node.outputs),
            "attrs": {key: self._value(node.attrs[key], node, key) for key in sorted(node.attrs)},
            **self._location(node.location),
        }

    def _location(self, location: Location | None) -> Fields:
        if location is None or not self._locations:
            return {}
        return {"location": list(astuple(location.in_file))}

    def _value(self, value: object, node: Node, key: str) -> object:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            return float(value) if np.isfinite(value) else {"float": str(float(value))}
        if isinstance(value, list):
            return [self._value(item, node, key) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self._value(item, node, key) for item in value]}
        for kind, cls in _NUMBERS.items():
            if isinstance(value, cls):
                return {kind: value.to_json()}
        if isinstance(value, np.ndarray):
            return {"array": self._attr_data(node, key, value)}
        if isinstance(value, Graph):
            return {"graph": self._body(value, node, key)}
        raise TypeError(f"{node.name}: attribute {key} of {type(value).__name__} cannot be saved")

    def _body(self, body: Graph, node: Node, key: str) -> dict[str, object]:
        """Return a graph that is an attribute; its constants are stored as attributes are."""

        def data(tensor: Tensor, array: Array) -> object:
            return self._attr_data(node, f"{key}.{tensor.name}", array)

        return _Encoder(data, self._attr_data, locations=self._locations).graph(body)


def _plain(value: object) -> object:
    """Return an argument of a quantization; an array as nested lists behind its dtype."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.name}
    return value.item() if isinstance(value, np.generic) else value


def decode_graph(value: JsonObject, array: Callable[[AttributeValue], Array]) -> Graph:
    """Inverse of :func:`encode_graph`; ``array`` follows what its callbacks returned.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the values were not made by :func:`encode_graph`.
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
            quant=_quantization(item.get("quant")),
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
        states={
            name: State(array(item["initial"]), item["result"], item["label"], item.get("steps", 1))
            for name, item in value.get("states", {}).items()
        },
        rounding=value.get("rounding"),
        rows={name: StreamRows.from_json(item) for name, item in value.get("rows", {}).items()},
        features={
            name: FeatureScales.from_json(item) for name, item in value.get("features", {}).items()
        },
    )


def _quantization(value: JsonObject | None) -> Quantization | None:
    if value is None:
        return None
    args = {
        key: np.array(arg["array"], arg["dtype"]) if isinstance(arg, dict) else arg
        for key, arg in value["args"].items()
    }
    return Quantization(value["op"], args, value.get("ties_to_even", False))


def _unlocation(item: Fields) -> Location | None:
    return Location(*item["location"]) if "location" in item else None


def _decode(value: object, array: Callable[[object], Array]) -> object:
    if isinstance(value, list):
        return [_decode(item, array) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(_decode(item, array) for item in content)
    if kind in _NUMBERS:
        return _NUMBERS[kind].from_json(content)
    if kind == "float":
        return float(content)
    if kind == "array":
        return array(content)
    if kind == "graph":
        return decode_graph(content, array)
    raise ValueError(f"unknown kind of value {kind!r}")
