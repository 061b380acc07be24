"""Products of two activations on the engine: matrices of codes are the array's weights."""

from dataclasses import replace
from itertools import cycle
from itertools import product as product_of

import pytest
from attention_graphs import attention, product, random_attention, random_encoder, random_product
from engine_graphs import board_with, planned
from sweeps import covering, few

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.layers.contraction import ContractionLayer
from nnef_hw.engine.layers.gather import GatherLayer
from nnef_hw.engine.layers.support import check_engine
from nnef_hw.errors import UnsupportedError
from nnef_hw.parts.engine.contraction import Matrices, Measuring
from nnef_hw.passes import simplify
from nnef_hw.quantize import FixedParams, build_fixed
from nnef_hw.testing import GraphBuilder

PRODUCTS = {
    "one": ([1, 1, 1], [1, 1, 1], (False, False)),
    "plain": ([1, 5, 8], [1, 8, 7], (False, False)),
    "uneven": ([1, 5, 7], [1, 7, 6], (False, False)),
    "second_turned": ([1, 4, 6], [1, 21, 6], (False, True)),
    "both_turned": ([1, 8, 4], [1, 3, 8], (True, True)),
    "heads": ([1, 3, 4, 8], [1, 3, 8, 4], (False, False)),
    "heads_turned": ([1, 2, 5, 9], [1, 2, 7, 9], (False, True)),
    "one_matrix_for_all": ([1, 3, 4, 5], [1, 1, 5, 2], (False, False)),
    "rows_for_all": ([1, 1, 4, 4], [1, 3, 4, 4], (False, False)),
    "groups_of_heads": ([1, 2, 3, 4, 4], [1, 2, 1, 4, 4], (False, False)),
}
KINDS = {
    "small": {"rows": 4, "lanes": 4},
    "wide": {"rows": 16, "lanes": 8},
    "fast": {"rows": 8, "lanes": 4, "board": board_with(8)},
    "together": {"rows": 8, "lanes": 4, "results": 4},
    "ring": {"rows": 4, "lanes": 4, "ring_words": 32},
    "single_port": {"board": find_board("icebreaker"), "ring_words": 32},
    "dense": {"rows": 8, "lanes": 4, "dense": True},
    "batch": {"rows": 4, "lanes": 4, "batch": 3},
    "lut_ram": {"rows": 8, "lanes": 4, "lut_matrices": True},
}


@pytest.mark.parametrize(("name", "kind"), covering([*PRODUCTS], [*KINDS]))
def test_hardware_equals_the_model_in_predicted_cycles(name, kind, fix, run_engine):
    first, second, transposes = PRODUCTS[name]
    graph = fix(product(first, second, transposes=transposes))
    plan = planned(graph, **KINDS[kind])
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.3)


@pytest.mark.parametrize("board", few(["icebreaker", "ulx3s_85f"], ["icebreaker"]))
def test_lanes_are_written_alone_where_memories_can(board, rng, fix, run_engine):
    """Scores take them, and values whole words; enough frames for Verilog to be simulated."""
    graph = fix(attention(rng, 5, 8, 2))
    plan = planned(graph, board=find_board(board))
    engine = plan.design.engine
    matrices = engine.find(Matrices)
    assert matrices.turns
    assert matrices.keeps
    assert matrices.writes_lanes(engine) == (board == "icebreaker")
    assert "][7:0] <= " in to_verilog(EngineAccelerator(plan)) or board != "icebreaker"
    run_engine(plan, graph, frames=20)


@pytest.mark.parametrize(("board", "bits"), covering(["icebreaker", "ulx3s_85f"], [8, 4]))
def test_memories_without_gaps(board, bits, rng, fix, run_engine):
    """Matrices are behind the weights, also of 4 bits; instructions have as many rows as needed."""
    graph = fix(attention(rng, 5, 8, 2), weight_bits=bits)
    plain, plan = (
        planned(graph, board=find_board(board), packs_weights=bits == 4, dense=dense)
        for dense in (False, True)
    )
    engine = plan.design.engine
    assert engine.find(Matrices).behind == plan.design.program.weight_words
    assert engine.stride == engine.layout.rows < engine.layout.stride
    assert plan.resources.bram < plain.resources.bram
    assert plan.resources.lut < plain.resources.lut
    assert plan.interval == plain.interval
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.3)


def kept_in(plan, words):
    """Return the plan of the same network with room for so many words of codes as weights."""
    network = plan.design.network
    layers = tuple(
        replace(layer, kept=words) if isinstance(layer, ContractionLayer) else layer
        for layer in network.layers
    )
    return replace(plan, design=plan.design.changed(network=replace(network, layers=layers)))


@pytest.mark.parametrize(("words", "ring_words"), covering([1, 3, 8], [0, 32]))
def test_matrices_in_parts_where_their_memory_is_small(words, ring_words, fix, run_engine):
    graph = fix(product([1, 3, 4, 8], [1, 3, 14, 8], transposes=(False, True)))
    whole = planned(graph, ring_words=ring_words)
    plan = kept_in(whole, words)
    [layer] = plan.design.layers
    parts = plan.design.program.parts[0]
    assert len(parts) > 2
    assert len(parts) % 2 == 0
    assert plan.design.engine.find(Matrices).words <= max(words, layer.source.blocks(4))
    run_engine(plan, graph)


def projected(rng, tokens, features, heads, *, columns=None):
    """Return attention without softmax: layers before, between and behind the products."""
    g = GraphBuilder("heads")
    x = g.input("x", [1, tokens, features])
    size = features // heads

    def layer(source, count):
        weights = g.constant(f"w{count}", rng.normal(size=(1, features, features)) / 3)
        return g.op("matmul", source, weights, transposeA=False, transposeB=False)

    def split(y):
        return g.op("transpose", g.reshape(y, [1, tokens, heads, size]), axes=[0, 2, 1, 3])

    query, key, value = (split(layer(x, n)) for n in range(3))
    scores = g.op("matmul", query, key, transposeA=False, transposeB=True)
    scores = g.op("sigmoid", scores)
    y = g.op("matmul", scores, value, transposeA=False, transposeB=False)
    y = g.reshape(g.op("transpose", y, axes=[0, 2, 1, 3]), [1, tokens, features])
    return g.build(layer(y, 3))


SIZES = (6, 16, 2), (5, 24, 3), (7, 16, 4)
OTHERS = ("ring", "single_port", "dense", "batch", "lut_ram")
"""Engines that have layers around products by day; others have attention then."""


@pytest.mark.parametrize(
    ("kind", "tokens", "features", "heads"),
    few(
        [(kind, *size) for kind in KINDS for size in SIZES],
        [(kind, *size) for kind, size in zip(OTHERS, cycle(SIZES), strict=False)],
    ),
)
def test_layers_around_products(kind, tokens, features, heads, fix, rng, run_engine):
    graph = fix(projected(rng, tokens, features, heads))
    run_engine(planned(graph, **KINDS[kind]), graph)


@pytest.mark.parametrize(("lanes", "moves"), [(4, 0), (8, 0), (16, 4)])
def test_heads_of_whole_words_are_split_and_joined_by_addresses(lanes, moves, fix, rng):
    """Words of 16 codes have those of two heads."""
    plan = planned(fix(projected(rng, 6, 16, 2)), 16, lanes)
    assert sum(isinstance(x, GatherLayer) for x in plan.design.layers) == moves


def with_one_projection(rng, tokens, features, heads):
    """Return attention without softmax whose queries, keys and values are of one layer."""
    g = GraphBuilder("projected")
    weights = g.constant("w", rng.normal(size=(1, features, 3 * features)) / 3)
    x = g.input("x", [1, tokens, features])
    y = g.op("matmul", x, weights, transposeA=False, transposeB=False)
    y = g.op("transpose", g.reshape(y, [1, tokens, 3, features]), axes=[2, 0, 1, 3])

    def split(n):
        part = g.op("slice", y, axes=[0], begin=[n], end=[n + 1], stride=[1])
        part = g.reshape(part, [1, tokens, heads, features // heads])
        return g.op("transpose", part, axes=[0, 2, 1, 3])

    query, key, value = map(split, range(3))
    scores = g.op("matmul", query, key, transposeA=False, transposeB=True)
    scores = g.op("sigmoid", scores)
    y = g.op("matmul", scores, value, transposeA=False, transposeB=False)
    return g.build(g.reshape(g.op("transpose", y, axes=[0, 2, 1, 3]), [1, tokens, features]))


@pytest.mark.parametrize(
    "kind", few(["small", "together", "single_port", "batch"], ["single_port", "batch"])
)
def test_queries_keys_and_values_are_read_where_they_were_computed(kind, fix, rng, run_engine):
    graph = fix(with_one_projection(rng, 5, 16, 2))
    plan = planned(graph, **KINDS[kind])
    assert not any(isinstance(layer, GatherLayer) for layer in plan.design.layers)
    run_engine(plan, graph)


ATTENTION = {
    "one_head": {"tokens": 5, "features": 6, "heads": 1},
    "three_heads": {"tokens": 7, "features": 12, "heads": 3},
    "mask": {"tokens": 4, "features": 8, "heads": 2, "mask": True},
    "cross": {"tokens": 3, "features": 8, "heads": 2, "sources": 5},
}


@pytest.mark.parametrize(
    ("name", "kind"),
    few(
        [*product_of(ATTENTION, KINDS)],
        [("one_head", "ring"), ("three_heads", "wide"), ("mask", "fast"), ("cross", "together")],
    ),
)
def test_attention(name, kind, fix, rng, run_engine):
    graph = fix(attention(rng, **ATTENTION[name]))
    kind = KINDS[kind] if ATTENTION[name]["features"] % 8 == 0 else {**KINDS[kind], "lanes": 4}
    plan = planned(graph, **kind)
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.4)


@pytest.mark.parametrize(
    "kind", few(["small", "wide", "together", "ring", "dense"], ["wide", "ring", "dense"])
)
def test_probabilities_are_not_preceded_by_rows_of_padding(kind, fix, rng, run_engine):
    """Their zero is code 0, which adds nothing; that of queries is measured."""
    graph = fix(attention(rng, tokens=5, features=16, heads=2))
    plan = planned(graph, **KINDS[kind])
    layers = [x for x in plan.design.layers if isinstance(x, ContractionLayer)]
    rows = [x.passes(plan.design.shape)[1] for x in layers]
    assert [x.pad == 0 for x in layers] == [False, True]
    assert rows[0] > rows[1] == layers[1].product.rows
    found = {y.measures for x in plan.design.instructions if (y := x.find(Measuring))}
    assert found == {0, 1}
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.4)


RANDOM = [
    pytest.param(make, seed, marks=[pytest.mark.nightly] if seed > 0 else [])
    for make in (random_product, random_attention, random_encoder)
    for seed in range(100)
]


@pytest.mark.parametrize(("make", "seed"), RANDOM)
def test_random_graphs(make, seed, fix, rng, run_engine):
    graph = fix(make(rng))
    if reasons := check_engine(graph):
        pytest.skip(f"refused: {reasons[0]}")
    kinds = [*KINDS.values()]
    plan = planned(graph, **{**kinds[seed % len(kinds)], "lanes": 4})
    frames = 60 // plan.batch if seed > 1 else 3
    run_engine(plan, graph, frames=frames)
    run_engine(plan, graph, frames=frames, stall=0.4)


def test_matrices_whose_zero_is_not_in_the_middle_are_refused():
    graph = simplify(product([1, 5, 4], [1, 4, 3]))
    formats = dict.fromkeys(graph.tensors, QType(8, False, 0.03, 77))
    fixed = build_fixed(graph, FixedParams(formats, {}))
    [error] = check_engine(fixed)
    assert isinstance(error, UnsupportedError)
    assert "weights of 8 bits less 128, and the code of 0.0 is 77" in str(error)


def test_matrices_in_the_bank_that_is_written(fix, rng, run_engine):
    """What fills the array's memory waits for results that are on their way to that bank."""
    graph = fix(projected(rng, 7, 16, 4))
    plan = planned(graph, board=find_board("icebreaker"), ring_words=32)
    placement, layers = plan.design.placement, plan.design.layers
    assert placement.banks is not None
    assert any(placement.meets(x, 0) for x in layers if isinstance(x, ContractionLayer))
    run_engine(plan, graph, frames=3)
    plan = kept_in(plan, 4)
    run_engine(plan, graph)


def test_beside_weights_of_4_bits(fix, rng, run_engine):
    graph = fix(projected(rng, 6, 16, 2), weight_bits=4)
    run_engine(planned(graph, 4, 4, 32, packs_weights=True), graph)
    run_engine(planned(graph, 8, 8, packs_weights=True), graph)
