"""Weights that do not fit are refused before calibration, with the numbers of afterwards."""

import pytest

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.errors import TargetError
from nnef_hw.flow.fixed import check_weights
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme
from nnef_hw.streaming.architecture import Streaming
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

BOARD = find_board("icebreaker")


@pytest.fixture
def model(rng):
    """Return ``model(outputs)``: a linear layer of 127 inputs."""

    def model(outputs):
        g = GraphBuilder("large")
        x = g.op("linear", g.input("x", [1, 127]), rng.normal(size=(outputs, 127)), 0.0, name="y")
        return simplify(g.build(x))

    return model


def test_too_many_weights_are_found_before_calibration(model, fix):
    graph = model(600)
    with pytest.raises(TargetError) as early:
        check_weights(graph, Scheme(), BOARD, Streaming(), searched=False)
    with pytest.raises(TargetError) as late:
        schedule(fix(graph), BOARD)
    assert (
        early.value.reason
        == late.value.reason
        == (
            "model 'large' does not fit icebreaker (up5k) with --arch streaming: its weights take "
            "76,200 bytes (all in y 76,200), and all block RAMs and LUTs of the "
            "device together hold 25,920"
        )
    )


@pytest.mark.parametrize(
    ("outputs", "scheme", "searched"),
    [(200, {}, False), (600, {"weight_bits": 2}, False), (600, {}, True)],
    ids=["few", "narrow", "width searched"],
)
def test_weights_that_could_fit_are_not_refused(outputs, scheme, searched, model):
    check_weights(model(outputs), Scheme(**scheme), BOARD, Streaming(), searched=searched)


def test_widths_of_single_layers_count(model):
    scheme = Scheme(layers={"y": {"weight_bits": 2}})
    check_weights(model(600), scheme, BOARD, Streaming(), searched=False)


def test_memory_beside_the_fpga_has_room(model):
    check_weights(model(4000), Scheme(), BOARD, SharedArray(), searched=False)
    with pytest.raises(TargetError, match=r"508,000 bytes .* all block RAMs of the device"):
        check_weights(
            model(4000), Scheme(), find_board("ice40_hx8k_b_evn"), SharedArray(), searched=False
        )


def test_what_is_quantized_already_is_left_to_the_schedule(model, fix):
    check_weights(fix(model(600)), Scheme(), BOARD, Streaming(), searched=False)
