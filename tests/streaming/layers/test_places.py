"""Tables, masks and caches by integers: hardware equals the model, in predicted cycles."""

import re
from itertools import product

import numpy as np
import pytest
from step_graphs import step
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.errors import UnsupportedError
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.lanes import equally_wide, takes_lanes
from nnef_hw.streaming.search.solver import schedule

BOARDS = ["icebreaker", "ulx3s_85f", "tang_nano_20k"]
FORMS = {
    "plain": {},
    "one_head": {"heads": 1, "size": 5},
    "groups": {"heads": 2, "groups": 3, "size": 2},
    "scatter": {"write": "scatter", "mask": "add"},
    "sixteen_tokens": {"tokens": 16, "mask": "future", "write": "opposite"},
}


def fixed(rng, **form):
    graph = simplify(step(rng, **form))
    tokens = form.get("tokens", 11)
    # of every sequence the caches are empty at first, and full at last
    positions = np.tile(np.arange(8), (3, 2))[..., None]
    samples = {"token": rng.integers(0, tokens, positions.shape), "position": positions}
    return quantize(graph, samples)


USUAL = ["groups", "scatter", "sixteen_tokens"]
"""The plain form takes many steps in another test, and one head has wide beats there."""


@pytest.mark.parametrize(
    ("name", "board"),
    few([*product(FORMS, BOARDS)], zip(USUAL, BOARDS[::-1], strict=True)),
)
def test_hardware_equals_the_model_in_predicted_cycles(name, board, simulate, rng):
    graph = fixed(rng, **FORMS[name])
    plan = schedule(graph, find_board(board))
    simulate(plan, graph).check(40)


@pytest.mark.system
def test_many_steps_with_pauses(simulate, rng):
    graph = fixed(rng)
    plan = schedule(graph, find_board("ulx3s_85f"))
    simulate(plan, graph).check(260)


@pytest.mark.parametrize("seed", few(range(3), [0]))
def test_other_foldings_compute_the_same(seed, simulate, force, rng):
    graph, board = fixed(rng, heads=2, size=4), find_board("ulx3s_85f")
    plan = force(schedule(graph, board), graph, board)
    simulate(plan, graph).check(20)


@pytest.mark.parametrize(
    ("lanes", "heads", "size"), few([(2, 2, 4), (4, 1, 5), (8, 2, 2)], [(4, 1, 5)])
)
def test_scores_pass_in_wide_beats(lanes, heads, size, simulate, force, rng):
    """Mask and softmax take several codes per beat, beside the place, which is one."""
    graph, board = fixed(rng, heads=heads, size=size), find_board("ulx3s_85f")
    network = lower(graph)
    [mask] = [layer for layer in network.layers if layer.label == "mask"]
    scores, place = mask.sources
    [streams] = [found for found in equally_wide(network) if scores in found]
    assert mask.tensor in streams
    assert place not in streams
    wide = network.widened(dict.fromkeys(streams, lanes))
    assert takes_lanes(wide, board)
    plan = force(schedule(graph, board), graph, board, wide)
    kinds = {block.kind for block in plan.blocks if block.layer.result_lanes == lanes}
    assert {"mask", "pipelined_softmax"} <= kinds
    simulate(plan, graph).check(20)


def test_a_cache_is_no_loop_and_a_step_writes_one_row(rng):
    graph = fixed(rng)
    network = lower(graph)
    assert not any(layer.closes_loop for layer in network.layers)
    products = [layer for layer in network.layers if layer.label == "contraction"]
    assert [layer.written_codes for layer in products] == [8, 8]
    assert {len(layer.sources) for layer in products} == {3}


def test_the_position_is_no_position_of_a_table_alone(rng):
    """The mask's end and the rows of both caches read the same stream."""
    network = lower(fixed(rng))
    names = [layer.sources[-1] for layer in network.layers if len(layer.sources) > 1]
    [position] = {name for name in names if "position" in name}
    assert names.count(position) == 3


def test_a_cache_that_something_else_reads_is_refused(rng):
    graph = simplify(step(rng, leak=True))
    reason = "write_row 'select11': clamp 'leaked' reads its cache, which is no product"
    with pytest.raises(UnsupportedError, match=re.escape(reason)):
        lower(graph)
