"""Networks whose tensors are not images, or whose channels are not the axis behind the batch."""

import numpy as np

from nnef_hw.frontend.building.builder import Builder
from nnef_hw.ir import Tensor
from nnef_hw.testing import GraphBuilder

NHWC, NCHW = [0, 2, 3, 1], [0, 3, 1, 2]


def convolved(g, rng, shape=(1, 3, 4, 5), channels=4, name="x"):
    x = g.input(name, shape)
    return g.conv(x, rng.normal(size=(channels, shape[1], 1, 1)), rng.normal(size=(1, channels)))


def bias_without_batch(rng):
    """A row without its batch, as exporters of linear layers have it."""
    g = GraphBuilder()
    x = g.op("linear", g.input("x", [1, 4]), rng.normal(size=(6, 4)), 0.0)
    x = g.op("relu", g.op("add", g.reshape(x, [6]), rng.normal(size=6)))
    return g.build(g.reshape(x, [1, 6]))


def no_batch_at_all(rng):
    g = GraphBuilder()
    x = g.op("mul", g.input("x", [5]), rng.normal(size=5))
    return g.build(g.op("tanh", x), x)


def batch_of_two(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [2, 3, 2, 2]))
    return g.build(g.op("add", x, rng.normal(size=(1, 3))))


def input_handed_on(rng):
    g = GraphBuilder()
    x, h = g.input("x", [1, 3]), g.input("h", [1])
    return g.build(g.op("linear", x, rng.normal(size=(2, 3)), 0.0), g.op("copy", h))


def bias_along_the_last_axis(rng):
    g = GraphBuilder()
    x = g.op("matmul", g.input("x", [1, 1, 4]), rng.normal(size=(1, 4, 3)),
             transposeA=False, transposeB=False)  # fmt: skip
    return g.build(g.op("add", x, rng.normal(size=(1, 1, 3))))


def offset_of_a_flat_image(rng):
    g = GraphBuilder()
    x = g.op("sub", g.input("x", [1, 1, 1, 4]), rng.normal(size=(1, 1, 1, 4)))
    return g.build(g.op("linear", g.reshape(x, [1, 4]), rng.normal(size=(2, 4)), 0.0))


def bias_of_channels_last(rng):
    g = GraphBuilder()
    x = g.op("transpose", convolved(g, rng), axes=NHWC)
    x = g.op("relu", g.op("add", x, rng.normal(size=(1, 1, 1, 4))))
    return g.build(g.op("linear", g.reshape(x, [1, 80]), rng.normal(size=(3, 80)), 0.0))


def constant_for_each_element(rng):
    g = GraphBuilder()
    return g.build(g.op("add", g.op("tanh", g.input("x", [1, 2, 3, 4])),
                        rng.normal(size=(1, 2, 3, 4))))  # fmt: skip


def mask_of_pixels(rng):
    g = GraphBuilder()
    x = g.op("mul", convolved(g, rng), rng.normal(size=(1, 1, 4, 5)))
    return g.build(g.op("max", x, rng.normal(size=(1, 4, 1, 5))))


def divided_columns(rng):
    g = GraphBuilder()
    x = g.op("div", convolved(g, rng), rng.uniform(1, 2, size=(1, 1, 1, 5)))
    return g.build(g.op("sub", rng.normal(size=(1, 1, 4, 1)), x))


def slopes_in_full(rng):
    g = GraphBuilder()
    slopes = np.broadcast_to(rng.uniform(0.1, 0.9, size=(1, 4, 1, 1)), (1, 4, 4, 5))
    return g.build(g.op("prelu", convolved(g, rng), slopes))


def squeeze_and_excitation(rng):
    g = GraphBuilder()
    x = convolved(g, rng)
    gate = g.op("sigmoid", g.op("mean_reduce", x, axes=[2, 3]))
    return g.build(g.op("mul", x, gate))


def one_channel_for_all(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 3, 2, 4]))
    return g.build(g.op("add", x, g.op("sigmoid", g.input("gate", [1, 1, 2, 1]))))


def logarithm_of_softmax(rng):
    g = GraphBuilder()
    x = g.op("linear", g.input("x", [1, 4]), rng.normal(size=(3, 4)), 0.0)
    x = g.op("sub", x, g.op("max_reduce", x, axes=[1]))
    total = g.op("sum_reduce", g.op("exp", x), axes=[1], normalize=False)
    return g.build(g.op("sub", x, g.op("log", total)))


def maximum_of_channels_last(rng):
    g = GraphBuilder()
    x = g.op("transpose", convolved(g, rng), axes=NHWC)
    return g.build(g.op("max_reduce", x, axes=[1, 2]))


def mean_of_channels_last(rng):
    g = GraphBuilder()
    x = g.op("transpose", convolved(g, rng), axes=NHWC)
    return g.build(g.op("mean_reduce", x, axes=[1, 2]))


def minimum_of_channels(rng):
    g = GraphBuilder()
    return g.build(g.op("min_reduce", g.op("tanh", g.input("x", [1, 3, 2, 4])), axes=[1]))


def softmax_of_a_pixel(rng):
    g = GraphBuilder()
    x = g.op("mean_reduce", convolved(g, rng), axes=[2, 3])
    return g.build(g.op("softmax", x, axes=[1, 2, 3]))


def softmax_of_anchors(rng):
    """The head of a detector: classes are the last axis."""
    g = GraphBuilder()
    x = g.op("transpose", convolved(g, rng), axes=NHWC)
    return g.build(g.op("softmax", g.reshape(x, [1, 40, 2]), axes=[2]))


def detector(rng):
    """An image with the channels last, padded by itself; two scales of classes and boxes."""
    g = GraphBuilder()
    padding = [(0, 0), (0, 1), (0, 1), (0, 0)]
    x = g.op("pad", g.input("x", [1, 4, 4, 2]), padding=padding, border="constant", value=0.0)
    x = g.op("transpose", x, axes=NCHW)
    large = g.op("relu", g.conv(x, rng.normal(size=(4, 2, 3, 3)), stride=2))
    small = g.op("relu", g.conv(large, rng.normal(size=(4, 4, 2, 2)), rng.normal(size=(1, 4))))

    def joined(values):
        heads = []
        for feature, anchors, pixels in ((large, 2, 4), (small, 3, 1)):
            y = g.conv(feature, rng.normal(size=(anchors * values, 4, 1, 1)))
            y = g.op("transpose", y, axes=NHWC)
            heads.append(g.reshape(y, [1, anchors * pixels, values]))
        return g.op("concat", *heads, axis=1, shape=[1, 11, values])

    return g.build(g.op("softmax", joined(2), axes=[2]), g.op("sigmoid", joined(4)))


def anchors_decoded(rng):
    """Anchors, rows, columns and values are axes; the first two values are scaled."""
    g = GraphBuilder()
    x = g.reshape(convolved(g, rng, channels=8), [1, 2, 4, 4, 5])
    x = g.op("sigmoid", g.op("transpose", x, axes=[0, 1, 3, 4, 2]))
    parts = [
        g.op("slice", x, axes=[4], begin=[begin], end=[begin + 2], stride=[1]) for begin in (0, 2)
    ]
    x = g.op("concat", g.op("mul", parts[0], parts[0]), parts[1], axis=4, shape=[1, 2, 4, 5, 4])
    return g.build(g.reshape(x, [1, 40, 4]))


def chosen_channels(rng):
    g = GraphBuilder()
    x = g.op("gather", g.op("tanh", g.input("x", [1, 5, 2, 3])), np.array([3, 0, 1, 3]), axis=1)
    return g.build(g.op("sigmoid", x))


def joined_with_numbers(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2, 2, 3]))
    y = g.op("concat", rng.normal(size=(1, 1, 2, 3)), x, x, axis=1, shape=[1, 5, 2, 3])
    return g.build(g.op("sigmoid", y))


def greatest_along_rows(rng):
    g = GraphBuilder()
    return g.build(g.op("argmax_reduce", g.op("tanh", g.input("x", [1, 2, 5, 3])), axes=[2]))


def padded_channels(rng):
    g = GraphBuilder()
    padding = [(0, 0), (1, 2), (0, 1), (0, 0)]
    return g.build(g.op("pad", convolved(g, rng), padding=padding, border="constant", value=0.0))


def joined_with_one_value(rng):
    g = GraphBuilder()
    x = g.op("sigmoid", g.input("x", [1, 2, 3, 4]))
    value = np.full((1, 1, 3, 4), 0.5)
    return g.build(g.op("concat", value, x, value, axis=1, shape=[1, 4, 3, 4]))


def shuffled_channels(rng):
    g = GraphBuilder()
    x = g.reshape(g.op("tanh", g.input("x", [1, 6, 2, 3])), [1, 2, 3, 2, 3])
    x = g.reshape(g.op("transpose", x, axes=[0, 2, 1, 3, 4]), [1, 6, 2, 3])
    return g.build(g.op("sigmoid", x))


def space_to_depth(rng):
    """Five axes of the stream change places."""
    g = GraphBuilder()
    x = g.reshape(g.op("tanh", g.input("x", [1, 2, 4, 6])), [1, 2, 2, 2, 3, 2])
    x = g.reshape(g.op("transpose", x, axes=[0, 3, 5, 1, 2, 4]), [1, 8, 2, 3])
    return g.build(g.op("sigmoid", x))


def several_rows(rng):
    """A layer for each step of a sequence."""
    g = GraphBuilder()
    x = g.op("matmul", g.input("x", [1, 5, 3]), rng.normal(size=(3, 4)),
             transposeA=False, transposeB=False)  # fmt: skip
    return g.build(g.op("relu", g.op("add", x, rng.normal(size=(1, 1, 4)))))


def rows_without_batch(rng):
    g = GraphBuilder()
    return g.build(g.op("linear", g.input("x", [5, 3]), rng.normal(size=(4, 3)), 0.0))


def attention(rng):
    """Two heads of three steps, whose weights are computed."""
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2, 3, 4]))
    attrs = {"transposeA": False, "transposeB": True}
    weights = g.op("softmax", g.op("matmul", x, x, **attrs), axes=[3])
    return g.build(g.op("matmul", weights, x, transposeA=False, transposeB=False))


def rows_times_vector(rng):
    """A product of different ranks, whose first operand is turned."""
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 4, 3]))
    y = g.op("sigmoid", g.input("y", [1, 4, 1]))
    return g.build(g.op("matmul", x, y, transposeA=True, transposeB=False))


def loop_of_one_step(rng):
    body = Builder("body")
    x, h = (body.input(Tensor(name, (1, 1, 3))) for name in "xh")
    total, *_ = body.node("add", [x, h], {}, "total", ["scalar"])
    body.node("tanh", [total], {}, "next", ["scalar"])
    attrs = {
        "body": body.build(["next"]),
        "scans": [(1, 1)],
        "full": 0,
        "states": ["next"],
        "outputs": [("next", "last", 0, 1)],
    }
    builder = Builder("net")
    x, h = (builder.input(Tensor(name, (1, 1, 3))) for name in "xh")
    builder.node("scan", [x, h], attrs, "y", ["scalar"])
    return builder.build(["y"])


def six_limits(rng):
    """A limit on one side alone is one on the other side that no number exceeds."""
    g = GraphBuilder()
    x = g.op("min", g.op("max", convolved(g, rng), 0.0), 0.6)
    return g.build(g.op("clamp", g.op("max", x, 0.1), -np.inf, 0.5))


NETWORKS = {
    bias_without_batch: ["linear"],
    no_batch_at_all: ["conv", "tanh"],
    batch_of_two: ["tanh", "conv"],
    input_handed_on: ["linear"],
    bias_along_the_last_axis: ["linear"],
    offset_of_a_flat_image: ["linear"],
    bias_of_channels_last: ["conv", "conv"],
    constant_for_each_element: ["tanh", "add"],
    mask_of_pixels: ["conv", "mul", "max"],
    divided_columns: ["conv", "mul", "sub"],
    slopes_in_full: ["conv", "conv", "max"],
    squeeze_and_excitation: ["conv", "avg_pool", "sigmoid", "nearest_upsample", "mul"],
    one_channel_for_all: ["tanh", "sigmoid", "nearest_upsample", "nearest_upsample", "add"],
    logarithm_of_softmax: [
        "linear", "max_pool", "nearest_upsample", "sub", "exp", "box", "log", "nearest_upsample",
        "sub",
    ],
    maximum_of_channels_last: ["conv", "max_pool"],
    mean_of_channels_last: ["conv", "avg_pool"],
    minimum_of_channels: ["pointwise", "max_pool", "neg"],
    softmax_of_a_pixel: ["conv", "avg_pool", "softmax"],
    softmax_of_anchors: ["conv", "softmax"],
    detector: [
        "conv", "conv", "conv", "conv", "concat", "softmax", "conv", "conv", "concat", "sigmoid",
    ],
    anchors_decoded: ["conv", "sigmoid", "slice", "slice", "pointwise", "concat"],
    chosen_channels: ["tanh", "slice", "slice", "concat", "sigmoid"],
    joined_with_numbers: ["tanh", "pad", "concat", "add", "sigmoid"],
    greatest_along_rows: ["tanh", "argmax_reduce"],
    padded_channels: ["conv", "pad", "pad"],
    joined_with_one_value: ["sigmoid", "pad"],
    shuffled_channels: ["tanh", "sigmoid"],
    space_to_depth: ["tanh", "sigmoid"],
    several_rows: ["conv"],
    rows_without_batch: ["conv"],
    loop_of_one_step: ["add", "tanh"],
    six_limits: ["conv"],
    attention: ["tanh", "contraction", "softmax", "contraction"],
    rows_times_vector: ["tanh", "sigmoid", "contraction"],
}  # fmt: skip
"""Operators of each in its canonical form, beside reshapes and transposes."""
