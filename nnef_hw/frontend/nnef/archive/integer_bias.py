"""Biases of plain integers, as quantized models of tract have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nnef_hw.errors import NnefHwError, UnsupportedError, raise_all
from nnef_hw.ir import Graph, Node, Quantization, Tensor

__all__ = ["scale_integer_biases"]

_LAYERS = {"conv", "deconv", "linear"}
_BIAS_BITS = 32


def scale_integer_biases(graph: Graph) -> Graph:
    """Give biases that are integers their real values.

    They count steps of the layer's sums: the scale of its input times that of its filter.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If the input or filter of a layer has no scale: one error for each layer.
    """
    errors: list[NnefHwError] = []
    tensors = dict(graph.tensors)
    for node in graph.nodes:
        if node.op in _LAYERS and tensors[node.inputs[2]].dtype == "integer":
            try:
                bias = _scaled(node, tensors)
            except UnsupportedError as error:
                errors.append(error)
            else:
                tensors[bias.name] = bias
    raise_all(errors)
    return graph.replaced(tensors=tensors)


def _scaled(node: Node, tensors: Mapping[str, Tensor]) -> Tensor:
    source, kernel, bias = (tensors[name] for name in node.inputs)
    steps = [_step(source.quant), _step(kernel.quant)]
    if bias.data is None or any(step is None for step in steps):
        raise UnsupportedError(
            f"{node.op} {node.name!r}: the bias {bias.name!r} holds integers, but its input or its "
            "filter has no scale in graph.quant",
            remedy="quantize both by zero_point_linear_quantize, or store the bias as scalars",
            location=node.location,
        )
    scale = np.multiply(*steps).reshape(-1)
    scale = scale if len(bias.shape) == 1 or scale.size == 1 else scale.reshape(1, -1)
    args = {
        "zero_point": 0,
        "scale": float(scale[0]) if scale.size == 1 else scale,
        "bits": _BIAS_BITS,
        "signed": True,
        "symmetric": False,
    }
    quant = Quantization("zero_point_linear_quantize", args)
    return replace(bias, dtype="scalar", data=bias.data * args["scale"], quant=quant)


def _step(quant: Quantization | None) -> Any:
    """Return the scale of a tensor, None if it has none."""
    scale = None if quant is None else quant.args.get("scale")
    return None if scale is None else np.asarray(scale, np.float64)
