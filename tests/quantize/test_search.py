"""Widths of weights, searched."""

import re
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.errors import SampleError, UsageError
from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import Budget, Scheme, quantize, search_widths
from nnef_hw.quantize.calibration.quality import Judge
from nnef_hw.samples.samples import load_samples
from nnef_hw.testing import GraphBuilder

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"


def weight_bits(fixed):
    filters = [
        fixed.tensor(node.inputs[1]) for node in fixed.nodes if node.op in {"conv", "linear"}
    ]
    return {tensor.name: tensor.qtype.bits for tensor in filters}, sum(
        tensor.volume * tensor.qtype.bits for tensor in filters
    )


@pytest.fixture(scope="module")
def example():
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    calibration, others = load_samples(EXAMPLE / "samples.npz", graph).split()
    return simplify(graph), calibration, others


def test_a_search_halves_the_memory_within_the_drop_that_is_allowed(example):
    graph, calibration, others = example
    scheme = search_widths(
        graph, calibration.inputs, (others.inputs, others.labels), Scheme(), Budget(1.0)
    )
    fixed = quantize(graph, calibration.inputs, scheme)
    assert Judge(graph, others.inputs, others.labels).drop(fixed)[0] <= 1.0
    assert weight_bits(fixed)[1] < 0.5 * weight_bits(quantize(graph, calibration.inputs))[1]


def uneven(rng):
    """A large layer whose precision hardly counts, and a small one that decides."""
    builder = GraphBuilder()
    builder.input("x", (1, 32))
    y = builder.op("relu", builder.op("linear", "x", rng.standard_normal((64, 32)), 0.0, name="a"))
    builder.op("linear", y, rng.standard_normal((1, 64)), 0.0, name="b")
    return simplify(builder.build()), {"x": rng.standard_normal((200, 32))}


def test_layers_that_cost_most_get_the_fewest_bits(rng):
    graph, x = uneven(rng)
    scheme = search_widths(graph, x, (x, None), Scheme(), Budget(15.0))
    bits = [
        scheme.of(node.name).weight_bits for node in graph.nodes if node.op in {"conv", "linear"}
    ]
    assert bits[0] < bits[1] <= 8


def test_layers_with_a_width_of_their_own_keep_it(rng):
    graph, x = uneven(rng)
    first = graph.nodes[0].name
    scheme = Scheme(layers={first: {"weight_bits": 7}})
    found = search_widths(graph, x, (x, None), scheme, Budget(15.0))
    assert found.of(first).weight_bits == 7
    assert set(found.layers) > {first}


def test_what_even_the_widest_weights_lose_is_refused(rng):
    graph, x = uneven(rng)
    message = (
        r"8-bit weights alone lose .* points of relative error, but 0\.01 are allowed; allow a"
    )
    with pytest.raises(UsageError, match=message):
        search_widths(graph, x, (x, None), Scheme(), Budget(0.01))


def test_a_search_needs_samples_to_compare(rng):
    graph, x = uneven(rng)
    nothing = {"x": np.zeros((0, 32))}
    with pytest.raises(SampleError, match=re.escape("there are no samples")):
        search_widths(graph, x, (nothing, None), Scheme(), Budget())


@pytest.mark.parametrize(
    ("labels", "what"),
    [([0, 1, 1, 0], "accuracy"), (None, "agreement"), ([0.5, 1.0, 1.0, 0.0], "relative error")],
)
def test_drops_are_those_of_labels_else_of_the_real_network(labels, what):
    """Two outputs, of which one is saturated by a scheme with few bits."""
    builder = GraphBuilder()
    builder.input("x", (1, 2))
    builder.op("linear", "x", np.eye(2), 0.0, name="y")
    graph = simplify(builder.build())
    x = {"x": np.array([[2.0, 1.9], [1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])}
    labels = None if labels is None else np.array(labels)
    judge = Judge(graph, x, labels)
    assert judge.what == what
    fixed = [
        quantize(graph, x, Scheme(8, bits, calibration="minmax", headroom=0.0)) for bits in (16, 2)
    ]
    assert judge.drop(fixed[0])[0] == pytest.approx(0.0, abs=0.1)
    if what == "relative error":
        assert judge.drop(fixed[1])[0] > 5
    else:
        assert judge.drop(fixed[1])[0] in {0.0, 25.0, 50.0}
