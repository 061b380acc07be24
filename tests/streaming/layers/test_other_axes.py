"""Networks whose tensors are no images in hardware: codes and cycles."""

import pytest
from other_axes import (
    NETWORKS,
    bias_of_channels_last,
    detector,
    loop_of_one_step,
    padded_channels,
    softmax_of_anchors,
)
from sweeps import alternate

from nnef_hw.boards import find_board
from nnef_hw.streaming.search.solver import schedule

FRAMES = 3


@pytest.mark.parametrize("network", alternate(NETWORKS), ids=lambda network: network.__name__)
def test_codes_and_cycles(network, fix, simulate, rng):
    graph = fix(network(rng))
    plan = schedule(graph, find_board("ecp5"))
    simulate(plan, graph).check(FRAMES)


@pytest.mark.parametrize(
    "network",
    [bias_of_channels_last, detector, loop_of_one_step, padded_channels, softmax_of_anchors],
)
def test_what_the_stream_has_already_is_no_hardware(network, fix, rng):
    blocks = schedule(fix(network(rng)), find_board("ecp5")).blocks
    assert "transpose" not in [block.kind for block in blocks]
