"""Weights of 4 bits: two in a byte of block RAM, of flash and of SDRAM."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from engine_graphs import BOARD, board_with, first_that_fits, grown, planned
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.engine.retrained import retrained
from nnef_hw.errors import UsageError
from nnef_hw.parts.engine.narrow import (
    NarrowWeights,
    ShortWeights,
    WeightWidth,
    are_short,
    packed_words,
    short_words,
)
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

ICEBREAKER = find_board("icebreaker")
WAYS = {
    "block_ram": {},
    "ring": {"ring_words": 32},
    "banks": {"ring_words": 32, "board": ICEBREAKER},
    "results": {"rows": 8, "results": 2, "ring_words": 64},
    "fast": {"rows": 8, "lanes": 8, "board": board_with(40)},
    "batch": {"ring_words": 32, "batch": 3},
}


@pytest.fixture
def graph(fix, rng):
    """An odd number of words, and a layer whose weights have more bits: its average."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 6, 5, 5]), rng.normal(size=(10, 6, 3, 3)), padding=[(1, 1)] * 2)
    x = g.op("relu", x)
    x = g.conv(x, rng.normal(size=(10, 1, 3, 3)), groups=10)
    x = g.reshape(g.pool("avg_pool", x, 3), [1, 10])
    g.op("linear", x, rng.normal(size=(7, 10)), np.zeros((1, 7)))
    return fix(g.build(), weight_bits=4)


def two_linears(rng, inputs, middle, outputs, name="net"):
    g = GraphBuilder(name)
    x = g.input("x", [1, inputs])
    x = g.op("linear", x, rng.normal(size=(middle, inputs)), np.zeros((1, middle)))
    g.op("linear", g.op("relu", x), rng.normal(size=(outputs, middle)), np.zeros((1, outputs)))
    return g.build()


@pytest.mark.parametrize("way", few(list(WAYS), ("ring", "banks", "fast")))
def test_codes_and_cycles(graph, run_engine, way):
    """Two words of weights are one; of an odd number the last one is half a word."""
    plan = planned(graph, packs_weights=True, **WAYS[way])
    plain = planned(graph, **WAYS[way])
    packed, words = (sum(len(x.weights) for x in one.design.instructions) for one in (plan, plain))
    assert packed <= 0.6 * words
    assert plan.interval <= plain.interval
    [feature] = [x for x in plan.design.engine.features if isinstance(x, NarrowWeights)]
    assert not feature.always
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, stall=0.3)


SHORT = {"plain": {}, "results": WAYS["results"] | {"ring_words": 0}, "fast": WAYS["fast"]}


@pytest.mark.parametrize("way", few(list(SHORT), ("plain", "fast")))
def test_short_words(graph, run_engine, way):
    """A word has 4 bits per multiplier; the average's weights are 16 times what it has."""
    plan = planned(graph, short_weights=True, **SHORT[way])
    wide = planned(graph, **SHORT[way])
    [feature] = [x for x in plan.design.engine.features if isinstance(x, ShortWeights)]
    assert not feature.always
    assert 2 * plan.design.engine.weight_bits == wide.design.engine.weight_bits
    assert plan.interval == wide.interval
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, stall=0.3)


def test_short_words_alone(fix, rng, run_engine):
    """No layer has greater weights."""
    graph = fix(two_linears(rng, 20, 9, 4), weight_bits=4)
    plan = planned(graph, short_weights=True)
    [feature] = [x for x in plan.design.engine.features if isinstance(x, ShortWeights)]
    assert feature.always
    run_engine(plan, graph, frames=20)


@pytest.mark.parametrize(("weights", "are_scaled"), [([-8, 0, 7], False), ([-128, 16, 112], True)])
def test_weights_of_short_words(weights, are_scaled):
    found, scaled = short_words(np.array(weights))
    assert scaled == are_scaled
    assert (found * 16 if scaled else found).tolist() == weights


@pytest.mark.parametrize("weights", [[8], [-9], [16, 1], [128]])
def test_weights_that_are_no_short_words(weights):
    assert not are_short(np.array(weights))


def test_where_halves_of_bytes_have_no_room_words_are_short(fix, rng):
    """Memories of two words in one are twice as wide, and may be as deep with fewer words."""
    graph = fix(two_linears(rng, 512, 192, 10, "deep"), weight_bits=4)
    packed = planned(graph, 16, 16, packs_weights=True)
    short = planned(graph, 16, 16, short_weights=True)
    assert short.resources.bram < packed.resources.bram
    device = replace(BOARD.device, bram=short.resources.bram)
    found = schedule_engine(graph, replace(BOARD, device=device, memories=()))
    assert found.design.short_weights
    assert found.interval == packed.interval
    value = json.loads(found.dumps())
    assert value["short_weights"] is True
    assert SharedArray().read_plan(value, graph).dumps() == found.dumps()


def test_no_layer_has_wider_weights(fix, rng, run_engine):
    """The width is a constant of the hardware; a ring has room for twice as many words.

    Both layers have an odd number of words: what is left of them is freed, frame after frame.
    """
    graph = fix(two_linears(rng, 20, 9, 4), weight_bits=4)
    plan = planned(graph, packs_weights=True, ring_words=16)
    counts = [[len(part.weights) for part in parts] for parts in plan.design.program.parts]
    assert counts == [[8], [2]]
    [feature] = [x for x in plan.design.engine.features if isinstance(x, NarrowWeights)]
    assert feature.always
    assert plan.design.engine.same_fields["halves"] == (1, 1)
    run_engine(plan, graph, frames=20)


MORE = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 40)]


@pytest.mark.parametrize("seed", [0, *MORE])
def test_random_networks(fix, run_engine, seed):
    rng = np.random.default_rng([seed, 4])
    way = WAYS[list(WAYS)[seed % len(WAYS)]]

    def attempt():
        network = grown(rng, (2, 6), ("mul", "max", "min"))
        graph = fix(network, weight_bits=int(rng.integers(2, 5)), calibration="minmax")
        plan = planned(graph, packs_weights=True, **way)
        assert plan.design.program.parts
        is_packed = any(map(plan.design.program.is_packed, plan.design.layers))
        return (plan, graph) if is_packed else None

    plan, graph = first_that_fits(attempt)
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, stall=0.3)


def test_a_second_half_retires_its_word():
    """In the cycle in which it is read; what is left of an odd number, when the last one is."""
    narrow = NarrowWeights(always=True)
    assert narrow.retired([WeightWidth()], [(3, 10)]) == [(3, 10)]
    assert narrow.retired([WeightWidth(halves=1)], [(4, 10)]) == [(2, 11)]
    assert narrow.retired([WeightWidth(halves=1)], [(3, 10), (2, 20)]) == [
        (1, 11),
        (1, 20),
        (1, 21),
    ]
    assert narrow.retired([WeightWidth(halves=1)], [(1, 10), (1, 20)]) == [(1, 20)]


def test_halves_of_a_byte():
    words = np.array([[-8, 7], [-1, 3], [5, -2]], np.int8)
    found = packed_words(words).view(np.uint8)
    assert found.tolist() == [[0xF8, 0x37], [0x05, 0x0E]]


def waiting(fix, rng, **scheme):
    """Return a network whose engine waits for its weights, and its plan."""
    g = GraphBuilder("waits")
    x = g.input("x", [1, 256])
    for _ in range(6):
        x = g.op("relu", g.op("linear", x, rng.normal(size=(256, 256)), np.zeros((1, 256))))
    graph = fix(g.build(), **scheme)
    return graph, schedule_engine(graph, ICEBREAKER)


def test_they_come_as_fast_again(fix, rng):
    """What does not fit on the chip comes in half the time; plans keep that two are a byte."""
    wide, narrow = (waiting(fix, rng, weight_bits=bits) for bits in (8, 4))
    assert not wide[1].design.packs_weights
    graph, plan = narrow
    assert plan.design.packs_weights
    assert 2 * plan.interval < wide[1].interval
    value = json.loads(plan.dumps())
    assert value["packed_weights"] is True
    assert SharedArray().read_plan(value, graph).dumps() == plan.dumps()


def test_packets_stay_on_the_chip(fix, rng, run_engine):
    """More of them do."""
    g = GraphBuilder()
    x = g.input("x", [1, 7, 2, 2])
    for inputs, outputs in pairwise((7, 24, 18, 13)):
        x = g.op("relu", g.conv(x, rng.normal(size=(outputs, inputs, 1, 1))))
    graph = fix(g.build(), weight_bits=4)
    plan = planned(graph, board=ICEBREAKER, ring_words=32, packs_weights=True, resident=(1, 2, 3))
    run_engine(plan, graph, frames=3)


def test_a_bitstream_has_no_room_for_wider_weights(fix, rng):
    """Which is what its refusal says."""
    _, narrow = waiting(fix, rng, weight_bits=4)
    wide, _ = waiting(fix, rng, weight_bits=8)
    with pytest.raises(UsageError, match=r"there it is conv 1 x 1, .* with weights of 4 bits"):
        retrained(wide, narrow.design)


def test_small_networks_keep_a_byte_for_each(graph):
    """Of plans that are as fast that with fewer LUTs is taken."""
    assert not schedule_engine(graph, BOARD).design.packs_weights
