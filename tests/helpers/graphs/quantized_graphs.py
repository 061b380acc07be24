"""Graphs whose tensors are quantized."""

import dataclasses

import numpy as np

from nnef_hw.ir import Quantization
from nnef_hw.reference import run_float

ARGS = {"bits": 8, "signed": True, "symmetric": False}


COARSE = Quantization("zero_point_linear_quantize", {**ARGS, "zero_point": 0, "scale": 0.25})


FINE = Quantization("zero_point_linear_quantize", {**ARGS, "zero_point": 3, "scale": 0.01})


def with_quants(graph, **quants):
    tensors = {
        name: dataclasses.replace(tensor, quant=quants.get(name, tensor.quant))
        for name, tensor in graph.tensors.items()
    }
    return graph.replaced(tensors=tensors)


def ties_up(graph):
    """Return a graph whose halves take the upper code, as those of hardware and NNEF do."""
    tensors = {
        name: tensor
        if tensor.quant is None
        else dataclasses.replace(
            tensor, quant=dataclasses.replace(tensor.quant, ties_to_even=False)
        )
        for name, tensor in graph.tensors.items()
    }
    return graph.replaced(tensors=tensors)


def quants_of(graph):
    return {
        name: tensor.quant
        for name, tensor in graph.tensors.items()
        if tensor.quant is not None and tensor.data is None
    }


def assert_same_values(before, after, rng):
    x = {name: rng.normal(size=(20, *before.tensor(name).shape[1:])) for name in before.inputs}
    expected, found = run_float(before, x), run_float(after, x)
    for name in before.outputs:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


def quantize_node(builder, source, quant, name):
    """Add a quantization operator with constant arguments."""
    attrs = {key: quant.args[key] for key in ("bits", "signed", "symmetric")}
    tensors = [np.array(quant.args[key]) for key in ("zero_point", "scale")]
    return builder.op(quant.op, source, *tensors, name=name, **attrs)


SCALES = np.array([0.25, 0.5, 0.125])
