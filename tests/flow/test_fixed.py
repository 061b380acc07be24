"""Weights that do not fit are refused before calibration, with the numbers of afterwards."""

import re

import pytest

from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError
from nnef_hw.flow.fixed import check_weights, fix_model
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme
from nnef_hw.samples.samples import Samples
from nnef_hw.streaming.architecture import Streaming
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

BOARD = find_board("icebreaker")


@pytest.fixture
def model(rng):
    """Return ``model(outputs)``: a linear layer of 127 inputs, and samples."""

    def model(outputs):
        g = GraphBuilder("large")
        x = g.op("linear", g.input("x", [1, 127]), rng.normal(size=(outputs, 127)), 0.0, name="y")
        samples = Samples({"x": rng.normal(size=[20, 127])}, None)
        return simplify(g.build(x)), samples

    return model


def amounts(error):
    return re.search(r"at least [\d,]+ block RAMs, .*? the host link \(.*?\)", error.reason)[0]


def test_too_many_weights_are_found_before_calibration(model):
    graph, samples = model(157)
    with pytest.raises(TargetError) as early:
        check_weights(graph, samples, Scheme(), BOARD, Streaming(), searched=False)
    fixed, _ = fix_model(graph, samples)
    with pytest.raises(TargetError) as late:
        schedule(fixed, BOARD)
    assert amounts(early.value) == amounts(late.value)
    # They depend on ranges.
    assert "LUTs" in late.value.reason
    assert "LUTs" not in early.value.reason


@pytest.mark.parametrize(
    ("outputs", "scheme", "searched"),
    [(30, {}, False), (157, {"weight_bits": 2}, False), (157, {}, True)],
    ids=["few", "narrow", "width searched"],
)
def test_weights_that_could_fit_are_not_refused(outputs, scheme, searched, model):
    graph, samples = model(outputs)
    check_weights(graph, samples, Scheme(**scheme), BOARD, Streaming(), searched=searched)


def test_what_is_quantized_already_is_left_to_the_schedule(model):
    graph, samples = model(157)
    fixed, _ = fix_model(graph, samples)
    check_weights(fixed, samples, Scheme(), BOARD, Streaming(), searched=False)
    check_weights(graph, None, Scheme(), BOARD, Streaming(), searched=False)
