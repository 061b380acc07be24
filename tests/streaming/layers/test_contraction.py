"""Products of two activations: hardware equals the model, in the cycles that are predicted."""

from itertools import cycle
from itertools import product as pairs_of

import numpy as np
import pytest
from attention_graphs import attention, product, random_attention, random_encoder, random_product
from sweeps import few

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError
from nnef_hw.passes import simplify
from nnef_hw.quantize import FixedParams, build_fixed
from nnef_hw.reference import run_float
from nnef_hw.streaming.beats.activity import make_timeline
from nnef_hw.streaming.report import report_plan
from nnef_hw.streaming.search.solver import schedule

BOARDS = ["icebreaker", "ulx3s_85f", "tang_nano_20k"]
FRAMES = 9
PRODUCTS = {
    "one": ([1, 1, 1], [1, 1, 1], (False, False)),
    "plain": ([1, 5, 3], [1, 3, 7], (False, False)),
    "second_turned": ([1, 4, 6], [1, 5, 6], (False, True)),
    "both_turned": ([1, 5, 4], [1, 3, 5], (True, True)),
    "heads": ([1, 3, 4, 5], [1, 3, 5, 2], (False, False)),
    "heads_turned": ([1, 2, 5, 4], [1, 2, 3, 5], (True, True)),
    "one_matrix_for_all": ([1, 3, 4, 5], [1, 1, 5, 2], (False, False)),
    "rows_for_all": ([1, 1, 4, 5], [1, 3, 5, 2], (False, False)),
    "groups_of_heads": ([1, 2, 3, 4, 5], [1, 2, 1, 5, 3], (False, False)),
}
ATTENTION = {
    "one_head": {"tokens": 5, "features": 6, "heads": 1},
    "three_heads": {"tokens": 7, "features": 6, "heads": 3},
    "mask": {"tokens": 4, "features": 8, "heads": 2, "mask": True},
    "cross": {"tokens": 3, "features": 4, "heads": 2, "sources": 5},
}


NAMES = [*PRODUCTS, *ATTENTION]
LARGE = {"three_heads", "mask", "one_head"}
"""Attention on one input is by itself in other tests: of steps, of parts, of a transformer."""


def build(name, rng):
    if name in PRODUCTS:
        *shapes, transposes = PRODUCTS[name]
        return product(*shapes, transposes=transposes)
    return attention(rng, **ATTENTION[name])


@pytest.mark.parametrize(
    ("name", "board"),
    few(
        [*pairs_of(NAMES, BOARDS)],
        [
            (name, board)
            for name, board in zip(NAMES, cycle(BOARDS), strict=False)
            if name not in LARGE
        ],
    ),
)
def test_hardware_equals_the_model_in_predicted_cycles(name, board, fix, simulate, rng):
    graph = fix(build(name, rng))
    plan = schedule(graph, find_board(board))
    simulate(plan, graph).check(FRAMES)


def test_codes_whose_zero_points_are_not_zero(simulate):
    """Differences of 9 bits on both sides."""
    graph = simplify(product([1, 2, 5, 3], [1, 2, 3, 4]))
    first, second = QType(8, False, 0.03, 77), QType(8, True, 0.05, -100)
    formats = dict.fromkeys(graph.tensors, first)
    moved = {"b"}
    for node in graph.nodes:
        if not moved.isdisjoint(node.inputs) and node.op != "contraction":
            moved.update(node.outputs)
    formats |= dict.fromkeys(moved, second)
    fixed = build_fixed(graph, FixedParams(formats, {}))
    for board in BOARDS:
        simulate(schedule(fixed, find_board(board)), fixed).check(5)


@pytest.mark.usefixtures("one_code_per_beat")
@pytest.mark.parametrize("board", ["ulx3s_85f", "tang_nano_20k"])
def test_several_sums_in_a_beat_where_a_rate_takes_them(board, fix, simulate):
    target = find_board(board)
    graph = fix(product([1, 16, 4], [1, 4, 12]))
    slow = schedule(graph, target)
    # 192 sums, one in a cycle, take longer
    plan = schedule(graph, target, target_fps=target.clock_mhz * 1e6 / 150)
    assert slow.interval >= 192 > 150 >= plan.interval
    assert max(plan.lanes.values()) > 1
    simulate(plan, graph).check(6)


def test_a_report_shows_no_kernel(fix, rng):
    """Rows times matrices slide over nothing; arrays of filters do."""
    graph, board = fix(build("one_head", rng)), find_board("ulx3s_85f")
    plan = schedule(graph, board)
    rows = report_plan(plan, graph, board, make_timeline(plan)).layers
    kernels = {row.op: row.kernel for row in rows}
    assert kernels["contraction"] is None
    assert kernels["conv"] == (1, 1)


@pytest.mark.parametrize("mask", [False, True])
def test_heads_are_split_and_joined_without_transposes(mask, fix, rng):
    graph = fix(attention(rng, 7, 6, 3, mask=mask))
    plan = schedule(graph, find_board("ulx3s_85f"))
    kinds = [block.kind for block in plan.blocks]
    assert kinds.count("contraction") == 2
    assert "transpose" not in kinds


RANDOM = [
    pytest.param(make, seed, marks=[pytest.mark.nightly] if seed >= usual else [])
    for make, usual in ((random_product, 3), (random_attention, 1), (random_encoder, 0))
    for seed in range(100)
]


@pytest.mark.parametrize(("make", "seed"), RANDOM)
def test_random_graphs(make, seed, fix, simulate, rng):
    network = make(rng)
    canonical = simplify(network)
    x = {name: rng.normal(size=(2, *network.tensor(name).shape[1:])) for name in network.inputs}
    wanted, found = run_float(network, x), run_float(canonical, x)
    for name in network.outputs:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, atol=1e-8)
    graph = fix(network)
    try:
        plan = schedule(graph, find_board(BOARDS[seed % len(BOARDS)]))
    except TargetError:
        plan = schedule(graph, find_board("ecp5"))
    simulate(plan, graph).check(60 if seed > 2 else 7)
