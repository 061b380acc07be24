"""Attention head by head: scores of one head at a time are in the memory of codes."""

import pytest
from attention_graphs import attention, random_attention, random_encoder
from engine_graphs import BOARD, board_with, planned
from sweeps import covering

from nnef_hw.engine.layers.contraction import ContractionLayer
from nnef_hw.engine.layers.gather import GatherLayer
from nnef_hw.engine.layers.support import check_engine
from nnef_hw.engine.memory.rounds import find_rounds
from nnef_hw.engine.report import report_plan
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

ATTENTION = {
    "two_heads": {"tokens": 25, "features": 16, "heads": 2},
    "three_heads": {"tokens": 17, "features": 12, "heads": 3},
    "four_heads": {"tokens": 21, "features": 16, "heads": 4},
    "cross": {"tokens": 9, "features": 8, "heads": 2, "sources": 31},
}
KINDS = {
    "small": {"rows": 4, "lanes": 4},
    "together": {"rows": 8, "lanes": 4, "results": 4},
    "fast": {"rows": 8, "lanes": 4, "board": board_with(8)},
    "ring": {"rows": 4, "lanes": 4, "ring_words": 32},
    "lut_ram": {"rows": 8, "lanes": 4, "lut_matrices": True},
    "ways": {"rows": 4, "lanes": 4, "unit_ways": 2},
    "single_copy": {"rows": 4, "lanes": 4, "ring_words": 32, "single_copy": True},
}


@pytest.mark.parametrize(("name", "kind"), covering([*ATTENTION], [*KINDS]))
def test_hardware_equals_the_model_in_predicted_cycles(name, kind, fix, rng, run_engine):
    graph = fix(attention(rng, **ATTENTION[name]))
    whole, plan = (planned(graph, **KINDS[kind], head_by_head=own) for own in (False, True))
    heads = ATTENTION[name]["heads"]
    assert [rounds.times for rounds in plan.design.placement.rounds] == [heads]
    assert plan.design.engine.codes.words < whole.design.engine.codes.words
    assert plan.macs == whole.macs
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.4)


def test_scores_take_the_room_of_one_head(fix, rng):
    """They are there a head at a time; what is read and written stays for all of them."""
    graph = fix(attention(rng, tokens=8, features=16, heads=4))
    plan = planned(graph, head_by_head=True)
    placement = plan.design.placement
    [rounds] = placement.rounds
    names = [placement.frame_layers[n].tensor for n in rounds.layers]
    stays = {stay.tensor: stay for stay in placement.stays}
    loads = placement.steps.loads_of_turn
    scores, shares, values = (stays[name] for name in names)
    assert scores.words == shares.words == 8 * 2
    assert (scores.first, shares.first) == (loads + rounds.layers[0], loads + rounds.layers[1])
    assert values.words == 4 * 8
    assert values.first == loads + rounds.layers[0]
    first = placement.frame_layers[rounds.layers[0]]
    assert all(stays[name].last == loads + rounds.layers[-1] for name in first.read_tensors)


def block(rng, tokens, features, heads, *, heads_first=False, tied=False, reads_twice=False):
    """Return a block of a vision transformer: queries, keys and values are of one layer.

    ``heads_first``: they are in that order before they are parted; ``tied``: keys are the queries;
    ``reads_twice``: something else reads what attention gives.
    """
    g = GraphBuilder("block")
    x = g.input("x", [1, tokens, features])

    def linear(source, inputs, outputs):
        weights = g.constant(f"w{outputs}", rng.normal(size=(1, inputs, outputs)) / inputs**0.5)
        return g.op("matmul", source, weights, transposeA=False, transposeB=False)

    def part(n):
        piece = g.op("slice", y, axes=[0], begin=[n], end=[n + 1], stride=[1])
        if heads_first:
            return g.reshape(piece, [1, heads, tokens, features // heads])
        piece = g.reshape(piece, [1, tokens, heads, features // heads])
        return g.op("transpose", piece, axes=[0, 2, 1, 3])

    y = g.reshape(linear(x, features, 3 * features), [1, tokens, 3, heads, features // heads])
    y = g.op("transpose", y, axes=[2, 0, 3, 1, 4] if heads_first else [2, 0, 1, 3, 4])
    query, key, value = part(0), part(0 if tied else 1), part(2)
    scores = g.op("matmul", query, key, transposeA=False, transposeB=True)
    shares = g.op("softmax", g.op("mul", scores, (features // heads) ** -0.5), axes=[3])
    y = g.op("matmul", shares, value, transposeA=False, transposeB=False)
    joined = g.reshape(g.op("transpose", y, axes=[0, 2, 1, 3]), [1, tokens, features])
    total = g.op("add", x, linear(joined, features, features))
    return g.build(g.op("mul", total, joined) if reads_twice else total)


BLOCKS = {"three": (9, 24, 3), "two": (12, 16, 2), "two_wide": (5, 32, 2), "four": (7, 16, 4)}
"""Tokens, features, heads."""


@pytest.mark.parametrize(("name", "kind", "first"), covering([*BLOCKS], [*KINDS], [False, True]))
def test_attention_writes_over_its_queries(name, kind, first, fix, rng, run_engine):
    """Attention's result takes no room, and is read there: heads are not joined by a layer."""
    graph = fix(block(rng, *BLOCKS[name], heads_first=first))
    whole, plan = (planned(graph, **KINDS[kind], head_by_head=own) for own in (False, True))
    [(result, queries)] = plan.design.placement.replacing.tensors.items()
    assert plan.design.placement.places[result] == plan.design.placement.places[queries]
    joins, none = (
        [x for x in own.design.layers if isinstance(x, GatherLayer)] for own in (whole, plan)
    )
    assert bool(joins) == first
    assert not none
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.4)


@pytest.mark.parametrize("options", [{"tied": True}, {"reads_twice": True}], ids=str)
def test_queries_that_are_read_again_are_kept(options, fix, rng, run_engine):
    """They are the keys, too; or what attention gives is read by something else."""
    graph = fix(block(rng, 6, 16, 2, **options))
    plan = planned(graph, head_by_head=True)
    assert not plan.design.placement.replacing.tensors
    run_engine(plan, graph)


def test_a_product_ends_rounds_or_begins_them(fix, rng, run_engine):
    """Of three products in a row the second one is of the first one's rounds alone."""
    g = GraphBuilder("chain")
    x, *others = (g.input(name, [1, 2, 9, 4]) for name in "xyzw")
    for n, other in enumerate(others):
        x = g.op("matmul", x, other, transposeA=False, transposeB=n != 1)
    graph = fix(g.build(x))
    plan = planned(graph, head_by_head=True)
    products = [x for x in plan.design.frame_layers if isinstance(x, ContractionLayer)]
    assert len(products) == 3
    assert len(plan.design.placement.rounds) == 1
    run_engine(plan, graph)


def test_a_report_counts_all_rounds(fix, rng):
    graph = fix(attention(rng, tokens=6, features=16, heads=2))
    whole, plan = (planned(graph, head_by_head=own) for own in (False, True))
    names = [layer.name for layer in report_plan(whole, graph, BOARD).layers]
    report = report_plan(plan, graph, BOARD)
    assert [layer.name for layer in report.layers] == names
    assert sum(layer.cycles for layer in report.layers) <= plan.interval
    assert report.memory_map.steps == report_plan(whole, graph, BOARD).memory_map.steps


def test_what_else_needs_a_whole_tensor_has_it(fix, rng):
    """Scores that are sent, too, and those of single heads, are there as a whole."""
    plan = planned(fix(attention(rng, tokens=6, features=16, heads=2)))
    layers = plan.design.frame_layers
    [rounds] = find_rounds(layers, ())
    for n in rounds.layers[:-1]:
        assert not [*find_rounds(layers, {layers[n].tensor})]
    assert [*find_rounds(layers, {layers[rounds.layers[-1]].tensor})]
    alone = planned(fix(attention(rng, tokens=6, features=16, heads=1)), head_by_head=True)
    assert not alone.design.placement.rounds


@pytest.mark.parametrize("options", [{"batch": 2}], ids=str)
def test_batches_have_all_heads_at_once(options, fix, rng, run_engine):
    graph = fix(attention(rng, tokens=5, features=8, heads=2))
    plan = planned(graph, **options, head_by_head=True)
    assert not plan.design.placement.rounds
    run_engine(plan, graph)


RANDOM = [
    pytest.param(make, seed, marks=[pytest.mark.nightly] if seed > 1 else [])
    for make in (random_attention, random_encoder)
    for seed in range(60)
]


@pytest.mark.parametrize(("make", "seed"), RANDOM)
def test_random_graphs(make, seed, fix, rng, run_engine):
    graph = fix(make(rng))
    if reasons := check_engine(graph):
        pytest.skip(f"refused: {reasons[0]}")
    kind = [*KINDS.values()][seed % len(KINDS)]
    plan = planned(graph, **{**kind, "lanes": 4}, head_by_head=True)
    products = [x for x in plan.design.layers if isinstance(x, ContractionLayer)]
    assert all(x.rounds in {1, x.groups} for x in products)
    frames = 60 if seed > 1 else 3
    run_engine(plan, graph, frames=frames)
    run_engine(plan, graph, frames=frames, stall=0.4)
