"""Windows, filters and biases have one form."""

import numpy as np
from quantized_graphs import COARSE, SCALES, with_quants
from simplified import check

from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.reference.real.quantize import encode
from nnef_hw.testing import GraphBuilder


def test_bias_gets_one_shape(image, rng):
    for bias in (0.5, np.array([0.5]), rng.standard_normal(4), rng.standard_normal((1, 4))):
        builder = GraphBuilder()
        builder.input("x", (1, 3, 6, 6))
        builder.conv("x", rng.standard_normal((4, 3, 1, 1)), bias)
        graph = check(builder.build(), rng, ["conv"])
        assert graph.constant(graph.nodes[0].inputs[2]).shape == (1, 4)


def test_automatic_padding_and_depthwise_become_explicit(image, rng):
    image.op(
        "conv", "x", rng.standard_normal((3, 1, 3, 3)), 0.0, border="constant", padding=[],
        stride=[2, 2], dilation=[], groups=0,
    )  # fmt: skip
    attrs = check(image.build(), rng, ["conv"]).nodes[0].attrs
    assert attrs["padding"] == [(0, 1), (0, 1)]
    assert (attrs["groups"], attrs["dilation"]) == (3, [1, 1])


def test_dilation_and_groups_stay(image, rng):
    y = image.conv("x", rng.standard_normal((3, 1, 2, 2)), dilation=2, groups=0)
    graph = check(image.build(y), rng, ["conv"])
    assert graph.nodes[0].attrs["groups"] == 3
    assert list(graph.nodes[0].attrs["dilation"]) == [2, 2]


def test_rows_of_biases_keep_their_codes(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    builder.constant("b", np.array([3, -4, 5]) * SCALES)
    builder.conv("x", rng.normal(size=(3, 2, 1, 1)), "b", name="y")
    quant = Quantization(COARSE.op, {**COARSE.args, "scale": SCALES})
    graph = simplify(with_quants(builder.build(), b=quant))
    tensor = graph.tensor(graph.nodes[0].inputs[2])

    assert encode(tensor.data, tensor.quant).tolist() == [[3, -4, 5]]
