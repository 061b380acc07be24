"""What no hardware exists for is refused by name and place, never by a crash or a hang."""

import re

import numpy as np
import pytest

from nnef_hw.errors import ErrorGroup, UnsupportedError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.ir import Tensor
from nnef_hw.passes import simplify
from nnef_hw.testing import GraphBuilder


def network(*steps, shape=(1, 2, 3), dtype="scalar"):
    """Apply operators one after the other; a step is (operator, arguments behind, attributes)."""
    builder = Builder("net")
    tensor = builder.input(Tensor("x", shape, dtype))
    for op, others, attrs, result in steps:
        constants = [builder.constant("k", np.asarray(other)) for other in others]
        (tensor, *_) = builder.node(op, [tensor, *constants], attrs, op, [result])
    return builder.build([tensor.name])


def loop(axis, shape, *inside):
    """Return a sum over an axis, plus what is computed of each part."""
    body = Builder("body")
    x, h = (body.input(Tensor(name, shape)) for name in "xh")
    for op, arguments, attrs in inside:
        constants = [body.constant("", np.asarray(value)) for value in arguments]
        (x,) = body.node(op, [x, *constants], attrs, [op], ["scalar"])
    body.node("add", [x, h], {}, ["next"])
    return {
        "body": body.build(["next"]),
        "scans": [(axis, 1)],
        "full": 0,
        "states": ["next"],
        "outputs": [("next", "last", 0, 1)],
    }


def loop_in_a_loop():
    inner = ("scan", [np.zeros((1, 1, 1))], loop(2, (1, 1, 1)))
    spread = ("broadcast", [], {"shape": [1, 1, 3]})
    attrs = loop(1, (1, 1, 3), inner, spread)
    return network(("scan", [np.zeros((1, 1, 3))], attrs, "scalar"))


REFUSED = {
    "loop": (loop_in_a_loop(), "scan 'scan': there is a loop of several steps in it, 'scan'; let"),
    "extended operator": (
        network(("trilu", [], {}, "scalar")),
        "trilu 'trilu': this operator is not supported; use convolutions",
    ),
    "integer input": (
        network(("cast", [], {}, "scalar"), dtype="integer"),
        "quantized real numbers only; if all are one number in every inference: --bind x=X",
    ),
    "condition": (
        network(
            ("lt", [np.array([[0.0, 1.0]])], {}, "logical"), ("select", [1.0, 0.0], {}, "scalar")
        ),
        "lt 'lt': this operator is not supported",
    ),
    "function of integers": (
        network(
            ("argmax_reduce", [], {"axes": [1]}, "integer"),
            ("abs", [], {}, "integer"),
            shape=(1, 4),
        ),
        "abs 'abs': its input 'argmax_reduce' holds integers",
    ),
    "join of images": (
        network(("concat", [np.ones((1, 2, 3, 4))], {"axis": 0}, "scalar"), shape=(1, 2, 3, 4)),
        "concat 'concat': axis 0 is not supported: one image at a time is computed",
    ),
    "infinite bias": (
        network(
            ("linear", [np.ones((2, 4)), np.full((1, 2), -np.inf)], {}, "scalar"), shape=(1, 4)
        ),
        "linear 'linear': its input 'k_1' holds -inf at [0, 0]; use a finite number",
    ),
    "linear behind a reshape that is no flatten": (
        network(
            ("trilu", [], {}, "scalar"),
            ("reshape", [], {"shape": [1, 3, 8], "axis_start": 0, "axis_count": -1}, "scalar"),
            ("linear", [np.ones((1, 5, 8)), 0.0], {}, "scalar"),
            shape=(1, 2, 3, 4),
        ),
        "trilu 'trilu': this operator is not supported",
    ),
    "function of rank 3 behind an unknown operator": (
        network(("trilu", [], {}, "scalar"), ("relu", [], {}, "scalar")),
        "trilu 'trilu': this operator is not supported",
    ),
}


@pytest.mark.parametrize(("graph", "message"), REFUSED.values(), ids=REFUSED)
def test_refusal_names_the_reason(graph, message):
    with pytest.raises((UnsupportedError, ErrorGroup), match=re.escape(message)):
        simplify(graph)


def test_a_state_that_becomes_a_constant_is_refused():
    net = GraphBuilder()
    net.op("add", net.input("x", (1, 3)), net.state("h", np.zeros((1, 3))), name="y")
    net.update("h", net.constant("ones", np.ones((1, 3))))
    with pytest.raises(UnsupportedError, match="'h' takes a constant for its next value"):
        simplify(net.build("y"))


def test_states_that_nothing_depends_on_are_left_out():
    net = GraphBuilder()
    x, h = net.input("x", (1, 3)), net.state("h", np.zeros((1, 3)))
    net.state("g", np.zeros((1, 3)))
    net.update("h", net.op("add", x, h, name="total"))
    net.update("g", "h")
    net.op("relu", x, name="y")
    assert not simplify(net.build("y")).states
    assert list(simplify(net.build("g", "y")).states) == ["h", "g"]


def unsupported_average(b, rng):
    b.pool("avg_pool", "x", 2, padding=2, stride=1, border="ignore")


def unsupported_reshape(b, rng):
    y = b.conv("x", rng.normal(size=(3, 3, 1, 1)))
    b.op("softmax", b.reshape(y, [1, 4, 27]), axes=[1])


def unsupported_filter(b, rng):
    b.input("w", (4, 3, 1, 1))
    b.conv("x", np.zeros((4, 3, 1, 1)))
    b._nodes[-1] = b._nodes[-1].__class__(
        "conv", ("x", "w", b._nodes[-1].inputs[2]), b._nodes[-1].outputs, b._nodes[-1].attrs
    )


def unsupported_batch_norm(b, rng):
    zeros = np.zeros((1, 3))
    b.op("batch_normalization", "x", zeros, zeros, zeros, zeros + 1, epsilon=0.0)


UNSUPPORTED = {
    unsupported_batch_norm: "batch_normalization 'batch_normalization1': this operator is not",
    unsupported_average: "avg_pool 'avg_pool1': some of its windows lie outside of the image",
    unsupported_reshape: (
        "reshape 'reshape2': the change from 'conv1' [1, 3, 6, 6] to [1, 4, 27] is no exchange of "
        "axes"
    ),
    unsupported_filter: "conv 'conv1': its filter is computed, not constant",
}


@pytest.mark.parametrize("make", UNSUPPORTED, ids=lambda make: make.__name__)
def test_what_no_hardware_exists_for_is_refused(make, image, rng):
    make(image, rng)
    with pytest.raises((UnsupportedError, ErrorGroup), match=re.escape(UNSUPPORTED[make])):
        simplify(image.build())


def test_every_problem_is_listed_with_its_location(image, rng):
    y = image.op("lrn", "x", shape=(1, 3, 6, 6))
    y = image.op("relu", y)
    image.op("fancy", y, shape=(1, 3, 6, 6))
    with pytest.raises(ErrorGroup) as info:
        simplify(image.build())
    assert [error.location.line for error in info.value.errors] == [1, 3]
    assert all(isinstance(error, UnsupportedError) for error in info.value.errors)
