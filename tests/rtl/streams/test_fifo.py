# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from amaranth.sim import Simulator

from nnef_hw import parts
from nnef_hw.hardware.geometry.blockram import BlockRam

NINE_BITS = BlockRam("nine", ((16, 9),))
FRAME = 7


KINDS = (parts.BlockFifo, parts.CutFifo)


@pytest.fixture(params=KINDS, ids=[kind.__name__ for kind in KINDS])
def kind(request):
    return request.param


def describe(kind, depth, ram, *, bits=8, signed=False, lanes=1):
    return kind(bits=bits, signed=signed, lanes=lanes, frame=FRAME, depth=depth, ram=ram)


def build(*args, **fields):
    part = describe(*args, **fields)
    return part.component_class()(part)


def beats(rng, count, *, lo=0, hi=255, lanes=1):
    codes = rng.integers(lo, hi + 1, (count, lanes)).tolist()
    return [{"data": beat, "last": n % FRAME == FRAME - 1} for n, beat in enumerate(codes)]


def as_dicts(items):
    return [{"data": list(item.data), "last": bool(item.last)} for item in items]


@pytest.mark.parametrize("depth", [4, 5, 10, 18, 40, 300])
def test_keeps_every_beat_and_their_order(kind, depth, stall, drive, ram, rng):
    items = beats(rng, max(150, 2 * depth))
    run = drive(build(kind, depth, ram), items, len(items), stall=stall)
    assert as_dicts(run.items) == items


@pytest.mark.parametrize(
    ("bits", "signed", "lanes", "ram", "stores_last"),
    [
        (8, True, 1, NINE_BITS, True),
        (8, True, 1, BlockRam("eight", ((16, 8),)), False),
        (3, False, 3, NINE_BITS, False),
        (4, True, 4, NINE_BITS, True),
        (16, True, 1, NINE_BITS, True),
    ],
)
def test_last_takes_no_more_block_ram(
    kind, bits, signed, lanes, ram, stores_last, stall, drive, rng
):
    part = describe(kind, 12, ram, bits=bits, signed=signed, lanes=lanes)
    assert part.stores_last == stores_last
    assert part.memory.count == -(-bits * lanes // ram.shapes[0][1])
    lo = -(1 << bits - 1) if signed else 0
    items = beats(rng, 10 * FRAME, lo=lo, hi=lo + (1 << bits) - 1, lanes=lanes)
    run = drive(part.component_class()(part), items, len(items), stall=stall)
    assert as_dicts(run.items) == items


@pytest.mark.verilator
@pytest.mark.parametrize("engine", ["cocotb", "verilator"])
def test_verilog(kind, engine, drive, ram, rng):
    items = beats(rng, 20 * FRAME)
    run = drive(build(kind, 21, ram), items, len(items), stall=0.5, engine=engine)
    assert as_dicts(run.items) == items


@pytest.mark.parametrize("depth", [4, 5, 30])
def test_moves_a_beat_per_cycle(kind, depth, drive, ram, rng):
    items = beats(rng, 60)
    run = drive(build(kind, depth, ram), items, len(items))
    assert (np.diff(run.in_cycles) == 1).all()
    assert (run.out_cycles - run.in_cycles == 3 + (kind is parts.CutFifo)).all()


@pytest.mark.parametrize("depth", [4, 5, 19])
def test_cycles(kind, depth, drive, ram, rng):
    items = beats(rng, 200)
    run = drive(build(kind, depth, ram), items, len(items), stall=0.4)
    in_cycles, out_cycles = run.in_cycles, run.out_cycles
    read, moved, registered = [-1], [-1], [-1]
    given = [-2, -1, *out_cycles]
    for k, time in enumerate(in_cycles):
        read.append(max(time + 1, moved[-1]))
        if kind is parts.CutFifo:
            moved.append(max(read[-1] + 1, registered[-1]))
            registered.append(max(moved[-1] + 1, registered[-1] + 1, given[k] + 1))
            assert out_cycles[k] > registered[-1]
        else:
            moved.append(max(read[-1] + 1, given[k + 1]))
            assert out_cycles[k] > moved[-1]
        if k + 2 >= depth:
            assert time > read[k - depth + 3]


@pytest.mark.parametrize("depth", [4, 6, 18, 33])
@pytest.mark.parametrize("warm_up", [0, 5])
def test_holds_depth_beats_and_registers_both_directions(kind, depth, warm_up, ram):
    fifo = build(kind, depth, ram)
    held = depth + 2 * (kind is parts.CutFifo)

    async def bench(ctx):
        ctx.set(fifo.i.valid, 1)
        ctx.set(fifo.o.ready, 1)
        for item in range(warm_up):
            ctx.set(fifo.i.payload.data[0], item)
            await ctx.tick()
        ctx.set(fifo.i.valid, 0)
        await ctx.tick().repeat(5)

        ctx.set(fifo.o.ready, 0)
        ctx.set(fifo.i.valid, 1)
        for item in range(held):
            ctx.set(fifo.i.payload.data[0], item)
            assert ctx.get(fifo.i.ready)
            await ctx.tick()
        for _ in range(3):
            assert not ctx.get(fifo.i.ready)
            await ctx.tick()
        ctx.set(fifo.o.ready, 1)
        assert not ctx.get(fifo.i.ready), "i.ready must not follow o.ready within a cycle"
        ctx.set(fifo.i.valid, 0)
        for item in range(held):
            assert ctx.get(fifo.o.valid)
            assert ctx.get(fifo.o.payload.data[0]) == item
            await ctx.tick()
        ctx.set(fifo.i.valid, 1)
        assert not ctx.get(fifo.o.valid), "o.valid must not follow i.valid within a cycle"

    simulator = Simulator(fifo)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def test_refuses_a_queue_without_memory(ram):
    with pytest.raises(ValueError, match=re.escape("BlockFifo depth must be at least 4, not 3")):
        describe(parts.BlockFifo, 3, ram)
