"""Packets of the program that stay in the memory of codes: their beats come from there."""

import json
from itertools import pairwise

import numpy as np
import pytest
from engine_graphs import first_that_fits, grown

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.memory.store import stores
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.program.packets import Packets
from nnef_hw.engine.timing.residency import feeds, with_residents
from nnef_hw.engine.timing.timing import waits
from nnef_hw.testing import GraphBuilder

BOARD = find_board("icebreaker")


def resident_plan(graph, chosen, ring_words=32, staged=()):
    """Return the plan of an engine of which these packets stay on the chip, or are staged."""
    network = lower(graph, BOARD.device)
    design = Design(
        network, Shape(4, 4), BOARD.device, ring_words, resident=chosen, staged=tuple(staged)
    )
    return EnginePlan.of(design, BOARD, None)


def layers(rng, size, *channels):
    builder = GraphBuilder()
    x = builder.input("x", (1, channels[0], size, size))
    for inputs, outputs in pairwise(channels):
        weights = rng.normal(size=(outputs, inputs, 1, 1))
        x = builder.conv(x, weights, rng.normal(size=(1, outputs)))
        x = builder.op("relu", x)
    return builder.build()


def test_all_packets_stay(fix, rng, run_engine):
    """But the first one, which comes before any is written; nothing else comes again."""
    graph = fix(layers(rng, 2, 7, 24, 18, 13))
    plan = resident_plan(graph, ())
    count = len(plan.design.instructions)
    assert count > 5
    plan = resident_plan(graph, tuple(range(1, count)))
    first = plan.design.instructions[0]
    assert plan.design.packets.frame_words == plan.design.packets.packet_words(first)
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


def test_packets_in_the_bank_that_is_read(fix, rng, run_engine, monkeypatch):
    """They come when the instruction before has ended."""

    def other(design, n, left):
        del left
        return design.instructions[n - 1].bank

    graph = fix(layers(rng, 2, 7, 24, 18, 13))
    count = len(resident_plan(graph, ()).design.instructions)
    better = resident_plan(graph, tuple(range(1, count)))
    bank, places = better.design.placement.bank, better.design.packets.resident_places
    banks = {n: bank(place) for n, place in places.items()}
    monkeypatch.setattr(Packets, "resident_bank", other)
    plan = resident_plan(graph, tuple(range(1, count)))
    for n, place in plan.design.packets.resident_places.items():
        assert plan.design.placement.bank(place) == 1 - banks[n]
    assert plan.interval > better.interval
    run_engine(plan, graph, frames=3)


def test_a_full_bank_leaves_the_other_one(fix, rng):
    graph = fix(layers(rng, 2, 7, 24, 18, 13))
    design = resident_plan(graph, (1, 2)).design
    words = design.packets.resident_words(design.instructions[2])
    bank = 1 - design.instructions[1].bank
    room = [words, words]
    assert design.packets.resident_bank(2, room) == bank
    room[bank] -= 1
    assert design.packets.resident_bank(2, room) == 1 - bank
    assert design.packets.resident_bank(2, [words - 1] * 2) is None


MORE = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 40)]


@pytest.mark.parametrize("seed", [0, *MORE])
def test_some_packets_of_random_networks(fix, run_engine, seed):
    rng = np.random.default_rng([seed, 77])

    def attempt():
        graph = fix(grown(rng, (2, 6)))
        design = resident_plan(graph, (), 64).design
        count = len(design.instructions)
        return None if design.placement.banks is None else (graph, count)

    graph, count = first_that_fits(attempt)
    chosen = tuple(n for n in rng.permutation(range(1, count)).tolist() if rng.random() < 0.6)
    run_engine(resident_plan(graph, chosen, 64), graph, frames=3)


def test_packets_are_staged_where_codes_were(fix, rng, run_engine):
    """They are written again in every frame, while the results of their hosts are."""
    graph = fix(layers(rng, 4, 64, 48, 16, 24, 20, 12))
    plan = resident_plan(graph, (1,))
    count = len(plan.design.instructions)
    for n in range(count):
        for host in range(1, n - 1):
            packets = plan.design.packets
            if packets.can_stage(n, host) and not packets.staged_behind(host):
                plan = resident_plan(graph, (1,), staged=(*plan.design.staged, (n, host)))
                break
    assert len(plan.design.staged) >= 3
    depth = BOARD.device.single_port.depth
    places, lasting = plan.design.packets.resident_places, plan.design.placement.lasting
    assert all(places[n] < lasting[places[n] // depth].start for n, _ in plan.design.staged)
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


def test_packets_that_save_most_waiting_stay(fix, rng):
    """As many as have room; the first frame takes longer, since they come with it."""
    graph = fix(layers(rng, 2, 8, 192, 320, 256))
    [store, *_] = stores(BOARD, 24.0)
    network = lower(graph, BOARD.device)
    without = Design(network, Shape(4, 4), BOARD.device, 512, store)
    design = with_residents(without)
    plan, other = (EnginePlan.of(x, BOARD, 24.0) for x in (design, without))
    assert 0 < sum(waits(design)) < sum(waits(without))
    assert plan.interval < other.interval
    assert plan.interval < plan.latency
    sizes = [design.packets.resident_words(design.instructions[n]) for n in design.resident]
    assert sum(sizes) <= sum(map(len, design.placement.lasting))
    assert design.packets.reader.once == design.packets.fill_words > 0


def test_a_queue_fills_while_packets_come_from_the_chip(fix, rng):
    """The deepest one that has room; packets that stay are then not neighbours if that can be."""
    graph = fix(layers(rng, 2, 8, 192, 320, 256))
    [store, *_] = stores(BOARD, 24.0)
    design = Design(lower(graph, BOARD.device), Shape(4, 4), BOARD.device, 256, store)
    asked = []

    def fits(trial):
        asked.append(trial.queue_words)
        return trial.queue_words <= 512

    alone, kept, queued = feeds(design, fits)
    assert asked == [2048, 1024, 512]
    assert (alone, kept.queue_words, queued.queue_words) == (design, 0, 512)
    plans = [EnginePlan.of(x, BOARD, 24.0) for x in (alone, kept, queued)]
    intervals = [plan.interval for plan in plans]
    assert intervals == sorted(set(intervals), reverse=True)
    memory = [plan.resources.bram for plan in plans]
    assert memory[2] == memory[1] + 2

    def neighbours(trial):
        return sum(n + 1 in trial.resident for n in trial.resident)

    assert neighbours(queued) < neighbours(kept)
    value = json.loads(plans[2].dumps())
    assert SharedArray().read_plan(value, graph).dumps() == plans[2].dumps()


def test_reads_that_leave_out_what_comes_once():
    """Both commands are in the reader's table, and the prediction knows of the second one."""
    [store, *_] = stores(BOARD, 24.0)
    reader = store.reader(100, BOARD.device, 60)
    words = reader.words_from()
    counts = []
    for _ in range(3):
        words.begin(0)
        counts.append(words.left)
        words.take_all(words.left, 0)
    assert counts == [100, 40, 40]
    with pytest.raises(ValueError, match="cannot be those that come once"):
        store.reader(100, BOARD.device, 100)


def test_what_outlives_a_frame_is_no_tensors_place(fix, rng):
    """That of some steps is free in these, and may be taken in others."""
    placement = resident_plan(fix(layers(rng, 4, 64, 48, 16, 24)), ()).design.placement
    last = max(stay.last for stay in placement.stays)
    assert sum(map(len, placement.lasting)) > 0
    for bank in (0, 1):
        assert placement.unused(bank, 0, last) == placement.lasting[bank]
        late = placement.unused(bank, last, last)
        assert set(placement.lasting[bank]) <= set(late)
        for stay in placement.stays:
            begin = placement.places[stay.tensor]
            own = set(range(begin, begin + stay.words))
            assert own.isdisjoint(placement.lasting[bank])
            assert stay.last < last or own.isdisjoint(late)
    assert placement.unused(0, last, last) != placement.lasting[0]


def test_a_choice_shares_what_it_does_not_decide(fix, rng):
    """And the plan is that of a design that is made anew."""
    graph = fix(layers(rng, 4, 64, 48, 16, 24))
    fresh = resident_plan(graph, (1,)).design
    one = resident_plan(graph, ()).design
    assert EnginePlan.of(one, BOARD, None).interval
    changed = one.changed(resident=(1,))
    assert changed.placement is one.placement
    assert changed.program is not one.program
    plans = [EnginePlan.of(x, BOARD, None) for x in (changed, fresh)]
    assert plans[0].dumps() == plans[1].dumps()
    more = changed.changed(resident=(1, 2))
    assert more.engine is changed.engine
    assert EnginePlan.of(more, BOARD, None).dumps() == resident_plan(graph, (1, 2)).dumps()
    assert more.changed(batch=2).placement is not more.placement
    assert more.changed(ring_words=64).program is not more.program
