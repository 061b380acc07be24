"""What depends on constants alone is computed at once; codes stay."""

import numpy as np
import pytest
from quantized_graphs import COARSE, SCALES, with_quants
from simplified import check

from nnef_hw.ir import Quantization
from nnef_hw.passes.structure.fold_constants import FoldConstants
from nnef_hw.reference.real.quantize import encode
from nnef_hw.testing import GraphBuilder


def test_constants_fold(image, rng):
    b = image.op("unsqueeze", rng.standard_normal(4), axes=[0], shape=(1, 4))
    w = image.op("mul", rng.standard_normal((4, 3, 1, 1)), 2.0)
    image.op(
        "conv", "x", w, b, border="constant", padding=[(0, 0)] * 2, stride=[1, 1],
        dilation=[1, 1], groups=1,
    )  # fmt: skip
    check(image.build(), rng, ["conv"])


@pytest.mark.parametrize(
    ("op", "attrs", "shape"),
    [
        ("unsqueeze", {"axes": [0]}, (1, 3, 4)),
        ("transpose", {"axes": [1, 0]}, (4, 3)),
        ("reshape", {}, (3, 2, 2)),
        ("copy", {}, (3, 4)),
    ],
)
def test_rearranged_constants_keep_their_codes(op, attrs, shape):
    codes = np.arange(12).reshape(3, 4)
    builder = GraphBuilder()
    builder.input("x", shape)
    builder.constant("w", codes * SCALES[:, None])
    if op == "reshape":
        builder.reshape("w", shape, name="r")
    else:
        builder.op(op, "w", name="r", shape=shape, **attrs)
    builder.op("add", "x", "r", name="y")
    quant = Quantization(COARSE.op, {**COARSE.args, "scale": SCALES})
    tensor = FoldConstants()(with_quants(builder.build(), w=quant)).tensor("r")

    assert tensor.data.shape == shape
    np.testing.assert_array_equal(
        encode(tensor.data, tensor.quant), (codes.T if op == "transpose" else codes).reshape(shape)
    )
