"""Integer biases count steps of a layer's sums."""

import dataclasses
import re

import numpy as np
import pytest

from nnef_hw.errors import ErrorGroup, UnsupportedError
from nnef_hw.frontend.nnef.archive.integer_bias import scale_integer_biases
from nnef_hw.ir import Quantization
from nnef_hw.reference.real.quantize import encode
from nnef_hw.testing import GraphBuilder

COUNTS = np.array([70000, -3, 1])


def quantization(scale):
    args = {"zero_point": 0, "bits": 8, "signed": True, "symmetric": False}
    return Quantization("zero_point_linear_quantize", {**args, "scale": scale})


def layers(shape, scale, *, without=()):
    """Build two linear layers with integer biases; tensors in ``without`` have no scale."""
    builder = GraphBuilder()
    builder.input("x", (1, 3))
    source = "x"
    for index in "12":
        builder.constant(f"w{index}", np.eye(3))
        builder.constant(f"b{index}", COUNTS.reshape(shape))
        source = builder.op("linear", source, f"w{index}", f"b{index}", name=f"y{index}")
    graph = builder.build()
    scales = {"x": 0.5, "y1": 0.25, "w1": scale, "w2": 0.125}
    tensors = {
        name: dataclasses.replace(
            tensor,
            quant=quantization(scales[name]) if name in scales and name not in without else None,
            dtype="integer" if name in {"b1", "b2"} else "scalar",
        )
        for name, tensor in graph.tensors.items()
    }
    return graph.replaced(tensors=tensors)


@pytest.mark.parametrize("shape", [(3,), (1, 3)], ids=str)
@pytest.mark.parametrize("scale", [0.3, np.array([0.3, 0.1, 0.7]), np.array([[0.3], [0.1], [0.7]])])
def test_biases_have_the_scale_of_the_sums(shape, scale):
    graph = scale_integer_biases(layers(shape, scale))
    first, second = graph.tensor("b1"), graph.tensor("b2")

    assert (first.dtype, first.shape) == ("scalar", shape)
    np.testing.assert_allclose(first.data.reshape(-1), COUNTS * 0.5 * np.ravel(scale))
    np.testing.assert_allclose(second.data.reshape(-1), COUNTS * 0.25 * 0.125)
    for tensor in (first, second):
        np.testing.assert_array_equal(encode(tensor.data, tensor.quant).reshape(-1), COUNTS)


def test_biases_without_a_scale_are_refused():
    with pytest.raises(UnsupportedError, match=re.escape("linear 'y2': the bias 'b2' holds integ")):
        scale_integer_biases(layers((3,), 0.3, without={"y1"}))
    with pytest.raises(ErrorGroup) as info:
        scale_integer_biases(layers((3,), 0.3, without={"w1", "w2"}))
    assert len(info.value.errors) == 2
