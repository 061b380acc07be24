"""The solver does not try designs of which smaller arrays have shown that nothing is gained."""

from dataclasses import replace
from itertools import pairwise

import pytest
from attention_graphs import attention

from nnef_hw.boards import find_board
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.planning import feeding, solver
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.errors import ShortageError
from nnef_hw.testing import GraphBuilder

BOARD = find_board("ulx3s_85f")


def with_block_rams(count):
    return replace(BOARD, device=replace(BOARD.device, bram=count))


def network(rng, fix, **scheme):
    builder = GraphBuilder()
    x = builder.input("x", (1, 8))
    for inputs, outputs in pairwise((8, 120, 120, 16)):
        x = builder.op("linear", x, rng.normal(size=(outputs, inputs)), 0.0)
    return fix(builder.build(), **scheme)


@pytest.fixture
def tried(monkeypatch):
    """Return the designs that are predicted."""
    found = []
    of = EnginePlan.of.__func__

    def recorded(cls, design, *target):
        found.append(design)
        return of(cls, design, *target)

    monkeypatch.setattr(EnginePlan, "of", classmethod(recorded))
    return found


@pytest.mark.parametrize(("rate", "is_enough"), [(100.0, True), (0.5, False)])
def test_no_larger_array_reads_a_memory_that_gives_all_it_can(
    rate, is_enough, rng, fix, tried, monkeypatch
):
    monkeypatch.setattr(feeding, "LONG_FRAME", 1)
    monkeypatch.setattr(feeding, "NEAR_RATE", rate)
    graph = network(rng, fix)
    plan = schedule_engine(graph, with_block_rams(14))
    assert plan.design.ring_words, "weights have no room"
    read = {(x.shape.rows, x.shape.lanes) for x in tried if x.ring_words}
    alone = {(x.shape.rows, x.shape.lanes) for x in tried if not x.ring_words}
    assert (read == {(4, 4)}) == is_enough
    assert len(alone) > 2, "all in block RAM may be faster"


def test_no_memory_is_read_that_alone_takes_longer_than_a_smaller_array(rng, fix, monkeypatch):
    limits = []

    def recorded(design, target, clock_mhz, fast):
        limits.append(fast)
        return feeding.streamed(design, target, clock_mhz, fast)

    monkeypatch.setattr(solver, "streamed", recorded)
    plan = schedule_engine(network(rng, fix), BOARD)
    assert not plan.design.ring_words
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] >= plan.interval


def test_weights_that_had_no_room_are_not_tried_in_wider_memories(rng, fix, tried):
    """Words of a byte per weight are not tried once shorter ones fit."""
    plan = schedule_engine(network(rng, fix, weight_bits=4), with_block_rams(16))
    assert plan.design.short_weights
    assert not plan.design.ring_words
    alone = [x for x in tried if not x.ring_words]
    whole = [x for x in alone if not x.packs_weights and not x.short_weights]
    # those of 8 rows lack a quarter of the block RAMs at most
    assert {x.shape[:2] for x in whole} == {(4, 4), (8, 4)}
    assert len({x.shape[:2] for x in alone}) > 2


def test_what_has_no_room_is_tried_with_fewer_words_of_codes(rng, fix, tried, monkeypatch):
    """Attention whose scores are most of the memory runs head by head, only if it must."""
    monkeypatch.setattr(solver, "sizes", lambda *_, **__: [Shape(4, 4)])
    graph = fix(attention(rng, tokens=80, features=16, heads=4))
    assert not schedule_engine(graph, BOARD).design.head_by_head
    least = min(own.engine.resources(BOARD.device).bram for own in tried)
    tried.clear()
    plan = schedule_engine(graph, with_block_rams(least - 3))
    assert plan.design.head_by_head
    assert plan.resources.bram <= least - 3
    assert {own.head_by_head for own in tried} == {False, True}


@pytest.mark.parametrize("lacking", ["codes", "weights"])
def test_no_larger_array_is_tried_where_memories_are_too_small_for_any(rng, fix, tried, lacking):
    """Codes alone, or weights that come from no memory of the board, are more than all of them."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 16, 32, 32) if lacking == "codes" else (1, 64))
    if lacking == "codes":
        builder.conv(x, rng.normal(size=(64, 16, 1, 1)))
    else:
        builder.op("linear", x, rng.normal(size=(400, 64)), 0.0)
    graph = fix(builder.build())
    board = BOARD if lacking == "codes" else find_board("orangecrab")
    board = replace(board, device=replace(board.device, bram=5))
    with pytest.raises(ShortageError, match="an array of 4 x 4 takes"):
        schedule_engine(graph, board)
    assert {own.shape[:2] for own in tried} == {(4, 4)}
