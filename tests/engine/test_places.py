"""Integers of inputs on the engine: rows of tables and of caches, channels behind a place."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from engine_graphs import planned
from step_graphs import step
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.engine.layers.conv import ConvLayer
from nnef_hw.engine.layers.gather import GatherLayer
from nnef_hw.engine.layers.support import check_engine
from nnef_hw.parts.engine.border import PlaceInputs
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.testing import GraphBuilder

ENGINES = {
    "plain": {},
    "several results": {"rows": 8, "lanes": 8, "results": 4},
    "a stream": {"ring_words": 128},
    "a stream, and tables among codes": {"ring_words": 128, "keeps_tables": True},
    "tables in single-port RAM": {
        "ring_words": 128,
        "keeps_tables": True,
        "board": find_board("icebreaker"),
    },
    "single-port RAM": {"board": find_board("icebreaker")},
    "pixels at once": {"unit_ways": 2},
    "words": {"unit_words": True, "results": 2},
}
USUAL = [name for name in ENGINES if name not in {"a stream", "single-port RAM"}]
"""Two more engines have a stream, one of them in single-port RAM."""


def fixed(rng, outputs=lambda graph: graph.outputs, **form):
    graph = simplify(step(rng, **form))
    graph = replace(graph, outputs=outputs(graph))
    positions = np.tile(np.arange(8), (6, 3))[..., None]
    tokens = form.get("tokens", 11)
    samples = {"token": rng.integers(0, tokens, positions.shape), "position": positions}
    return quantize(graph, samples)


@pytest.mark.parametrize("engine", few([*ENGINES], USUAL))
def test_a_step_of_a_language_model(engine, run_engine, rng):
    """Bit-exact, of tokens and positions beyond the last ones too, in predicted cycles."""
    graph = fixed(rng)
    plan = planned(graph, **ENGINES[engine])
    run_engine(plan, graph, frames=12)
    run_engine(plan, graph, frames=12, stall=0.3)


USUAL_STEPS = [
    {"heads": 2, "size": 4, "groups": 2, "write": "scatter", "mask": "add"},
    {"heads": 4, "size": 4, "tokens": 16, "write": "opposite", "mask": "future"},
    {"heads": 2, "size": 8, "groups": 1, "turn": "halves"},
    {"heads": 1, "size": 8, "groups": 3, "turn": "pairs", "tiled": True},
    {"heads": 3, "size": 4},
]
"""Each way to write, to mask and to turn; what is left has other sizes."""
STEPS = [
    {"heads": 1, "size": 4, "groups": 2},
    {"heads": 2, "size": 4, "groups": 2, "write": "scatter", "mask": "add"},
    {"heads": 4, "size": 4, "tokens": 16, "write": "opposite", "mask": "future"},
    {"heads": 2, "size": 8, "groups": 2, "turn": "pairs", "tiled": True},
    {"heads": 2, "size": 8, "groups": 1, "turn": "halves"},
    {"heads": 1, "size": 8, "groups": 3, "turn": "pairs", "tiled": True},
    {"heads": 3, "size": 4},
    {"heads": 1, "size": 20, "groups": 2},
]


@pytest.mark.parametrize("form", few(STEPS, USUAL_STEPS))
def test_other_steps(form, run_engine, rng):
    """Several queries for a head of keys, rows and masks that are told in other ways."""
    graph = fixed(rng, **form)
    run_engine(planned(graph), graph, frames=10)


@pytest.mark.parametrize(
    "units",
    [{}, {"unit_ways": 4}, {"unit_words": True, "rows": 8, "lanes": 8}],
    ids=["1", "4", "words"],
)
def test_the_lowest_score_is_not_hidden(units, run_engine, rng):
    """Up to the place it is the next one above, as in the model."""
    net = GraphBuilder()
    x, place = net.input("x", (1, 12, 1, 5)), net.input("place", [1], "integer")
    past = net.op("le", net.constant("places", np.arange(12), dtype="integer"), place)
    past = net.op("unsqueeze", past, axes=[0, 2, 3], shape=[1, 12, 1, 1])
    y = net.op("softmax", net.op("select", past, x, np.asarray(-np.inf)), axes=[1])
    net.conv(y, rng.normal(size=(4, 12, 1, 1)))
    graph = simplify(net.build())
    samples = {"x": rng.normal(0, 0.02, (30, 12, 1, 5)), "place": rng.integers(0, 12, (30, 1))}
    graph = quantize(graph, samples)
    run_engine(planned(graph, **units), graph, frames=30)


@pytest.mark.system
def test_many_steps_with_pauses(run_engine, rng):
    graph = fixed(rng)
    run_engine(planned(graph, rows=8, lanes=4, results=4), graph, frames=260, stall=0.3)


def test_rows_are_written_to_the_place_of_their_state(rng):
    """A step writes one row: no copy, no cache that passes."""
    plan = planned(fixed(rng))
    rows = [layer for layer in plan.design.layers if layer.row is not None]
    assert [type(row) for row in rows] == [ConvLayer, ConvLayer]
    assert not plan.design.placement.keeping.copies
    places, words = plan.design.placement.places, plan.design.placement.tensor_words
    for row, state in zip(rows, ("keys", "values"), strict=True):
        assert places[row.tensor] == places[state]
        assert (row.target.words(4), words[state]) == (2, 16)
    assert not any(isinstance(layer, GatherLayer) and layer not in rows
                   for layer in plan.design.frame_layers)  # fmt: skip


def started_early(plan):
    """Return the layers that begin while results of another one leave."""
    names = plan.design.program.names
    numbers = sorted(plan.design.program.followers)
    return [names[n] for n in numbers if names[n] != names[n - 1]]


def test_projections_do_not_wait_for_one_another(rng):
    """None reads what the one before gives. Of a stream each instruction waits."""
    graph = fixed(rng)
    plan = planned(graph)
    rows = [layer.tensor for layer in plan.design.frame_layers if layer.row is not None]
    early = started_early(plan)
    assert set(rows) & set(early), (rows, early)
    for before, layer in pairwise(plan.design.frame_layers):
        assert layer.tensor not in early or before.tensor not in layer.operands
    assert not started_early(planned(graph, ring_words=128))
    assert not started_early(planned(graph, board=find_board("icebreaker")))


def test_a_row_that_is_needed_elsewhere_moves(run_engine, rng):
    """It is written twice: where it is read, and to its place of the cache."""

    def outputs(graph):
        keys, _ = (node for node in graph.nodes if node.op == "write_row")
        return (*graph.outputs, keys.inputs[1])

    graph = fixed(rng, outputs)
    plan = planned(graph)
    rows = [layer for layer in plan.design.layers if layer.row is not None]
    assert [type(row) for row in rows] == [GatherLayer, ConvLayer]
    run_engine(plan, graph, frames=10)


def test_a_cache_that_is_not_kept_is_refused(rng):
    net = GraphBuilder()
    x, place = net.input("x", (1, 4)), net.input("place", [1], "integer")
    cache = net.state("cache", np.zeros((8, 4)))
    here = net.op("eq", net.constant("places", np.arange(8), dtype="integer"), place)
    here = net.op("unsqueeze", here, axes=[1], shape=[8, 1])
    written = net.op("select", here, x, cache, name="written")
    net.update("cache", net.op("tanh", written, name="next"))
    net.reshape("next", [1, 32], name="y")
    texts = [str(error) for error in check_engine(simplify(net.build("y")))]
    assert any("is no state that takes over what it writes" in text for text in texts), texts


@pytest.mark.parametrize("size", [7, 11])
def test_rows_of_other_words_are_refused(size, rng):
    graph = simplify(step(rng, heads=2, size=2 * size))
    texts = [str(error) for error in check_engine(graph)]
    reason = f"{size} words of 4, and not one or two powers of two"
    assert any(reason in text for text in texts), texts


def test_registers_are_as_wide_as_the_integers(rng):
    """Those of inputs that choose something, by the numbers of their inputs."""
    assert planned(fixed(rng)).design.engine.find(PlaceInputs).bits == {0: 4, 1: 3}
