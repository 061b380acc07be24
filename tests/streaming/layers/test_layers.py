import re

import numpy as np
import pytest

from nnef_hw.errors import ErrorGroup, UnsupportedError
from nnef_hw.ir import image_shape
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.support import check_streamable
from nnef_hw.testing import GraphBuilder


@pytest.mark.parametrize(
    ("shape", "image"),
    [
        ((1, 5), (1, 1, 5)),
        ((1, 5, 7), (7, 1, 5)),
        ((1, 5, 7, 3), (7, 3, 5)),
        ((2, 5), None),
        ((), None),
        ((1,), None),
        ((1, 2, 3, 4, 5), None),
    ],
)
def test_image_shape(shape, image):
    assert image_shape(shape) == image


def joined_rows():
    g = GraphBuilder()
    parts = [g.input("x", [1, 2, 3]), np.ones((1, 2, 1))]
    return g.build(g.op("concat", *parts, name="rows", axis=2, shape=[1, 2, 4]))


def reflected():
    g = GraphBuilder()
    x = g.input("x", [1, 1, 4, 4])
    return g.build(g.conv(x, np.ones((1, 1, 3, 3)), name="mirror", padding=1, border="reflect"))


def replicated_maximum():
    g = GraphBuilder()
    x = g.input("x", [1, 1, 4, 4])
    return g.build(g.pool("max_pool", x, 2, name="edge", padding=1, border="replicate"))


def softmax_over_rows():
    g = GraphBuilder()
    return g.build(g.op("softmax", g.input("x", [1, 2, 3, 1]), name="rows", axes=[2]))


def batch_of_two():
    g = GraphBuilder()
    return g.build(g.op("tanh", g.input("x", [2, 3]), name="pair"))


REFUSED = {
    joined_rows: [
        (
            "net.nnef:1: concat 'rows': a constant part is not streamed yet; add it after the "
            "accelerator"
        ),
    ],
    reflected: ["net.nnef:1: conv 'mirror': border 'reflect' is not streamed yet; use 'constant'"],
    replicated_maximum: [
        (
            "net.nnef:1: max_pool 'edge': border 'replicate' is not streamed yet; "
            "use 'constant' or 'ignore'"
        )
    ],
    softmax_over_rows: ["net.nnef:1: softmax 'rows': axes = [2] are not streamed; use axes = [1]"],
    batch_of_two: [
        f"net.nnef:1: tanh 'pair': tensor {name!r} of shape [2, 3] cannot be streamed; use shapes "
        "[1, C], [1, C, L] or [1, C, H, W]"
        for name in ("x", "pair")
    ],
}


@pytest.mark.parametrize(
    ("network", "messages"), REFUSED.items(), ids=lambda v: getattr(v, "__name__", "")
)
def test_refuses_what_cannot_be_streamed(network, messages):
    graph = network()
    assert [str(error) for error in check_streamable(graph)] == messages
    kind = UnsupportedError if len(messages) == 1 else ErrorGroup
    with pytest.raises(kind, match=re.escape(messages[0])):
        lower(graph)


def test_padding_of_zero_has_any_border():
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 1, 4, 4]), np.ones((1, 1, 2, 2)), border="reflect")
    assert check_streamable(g.build(g.pool("avg_pool", x, 2, stride=1, border="ignore"))) == []


def test_reshapes_at_the_borders_are_left_to_the_host(fix):
    g = GraphBuilder()
    x = g.conv(g.reshape(g.input("x", [1, 6]), [1, 1, 2, 3]), np.ones((2, 1, 2, 3)))
    network = lower(fix(g.build(g.reshape(x, [1, 2]))))
    assert [layer.node.op for layer in network.layers] == ["conv"]
    assert [port.image for port in (*network.inputs, *network.outputs)] == [(2, 3, 1), (1, 1, 2)]


def test_nothing_to_compute(fix):
    g = GraphBuilder()
    graph = fix(g.build(g.reshape(g.input("x", [1, 4]), [1, 4, 1, 1])))
    with pytest.raises(UnsupportedError, match="the model has nothing to compute"):
        lower(graph)
