# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.lib import stream
from amaranth.sim import Simulator

from nnef_hw.rtl.streams.stream import Fifo, beat_layout, code_shape, elastic_stages


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_fifo_keeps_every_item_and_their_order(depth, stall, drive, rng):
    items = rng.integers(0, 256, 200).tolist()
    run = drive(Fifo(8, depth=depth), items, len(items), stall=stall)
    assert run.items == items


@pytest.mark.parametrize("depth", [2, 3])
def test_fifo_moves_one_item_per_cycle(depth, drive):
    run = drive(Fifo(8, depth=depth), list(range(20)), 20)
    assert (run.out_cycles - run.in_cycles == Fifo.latency).all()
    assert (np.diff(run.in_cycles) == 1).all()


@pytest.mark.parametrize("depth", [2, 5])
def test_fifo_holds_depth_items_and_registers_both_directions(depth):
    fifo = Fifo(8, depth=depth)

    async def bench(ctx):
        ctx.set(fifo.i.valid, 1)
        for item in range(depth):
            ctx.set(fifo.i.payload, item)
            assert ctx.get(fifo.i.ready)
            await ctx.tick()
        assert not ctx.get(fifo.i.ready)
        ctx.set(fifo.o.ready, 1)
        assert not ctx.get(fifo.i.ready), "i.ready must not follow o.ready within a cycle"
        for item in range(depth):
            ctx.set(fifo.i.valid, 0)
            assert ctx.get(fifo.o.valid)
            assert ctx.get(fifo.o.payload) == item
            await ctx.tick()
        ctx.set(fifo.i.valid, 1)
        assert not ctx.get(fifo.o.valid), "o.valid must not follow i.valid within a cycle"

    simulator = Simulator(fifo)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_stages_fill_up_whatever_came_between(stages, every):
    """Gaps close while the last stage waits, and then every item leaves, one per cycle."""
    m = Module()
    present = Signal()
    o = stream.Signature(1).flip().create()
    enables, _ = elastic_stages(m, present, o, stages=stages)
    moved = []

    async def bench(ctx):
        for cycle in range(4 * stages * every):
            ctx.set(present, cycle % every == 0)
            moved.append(ctx.get(present & enables[0]))
            await ctx.tick()
        assert sum(moved) == stages
        ctx.set(present, 0)
        ctx.set(o.ready, 1)
        for _ in range(stages):
            assert ctx.get(o.valid)
            await ctx.tick()
        assert not ctx.get(o.valid)

    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def test_fifo_refuses_a_single_slot():
    with pytest.raises(ValueError, match=re.escape("Fifo depth must be at least 2, not 1")):
        Fifo(8, depth=1)


@pytest.mark.parametrize("signed", [False, True])
def test_beats_pack_lane_0_lowest_and_last_on_top(signed):
    layout = beat_layout(bits=5, signed=signed, lanes=3)
    assert layout.size == 16
    code = -2 if signed else 30
    beat = layout.const({"data": [code, 0, 1], "last": 1})
    assert beat.as_bits() == 30 | 1 << 10 | 1 << 15
    assert beat.data[0] == code
    assert code_shape(5, signed).signed is signed
