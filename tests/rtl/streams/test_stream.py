# amaranth: UnusedElaboratable=no
import re

import pytest
from amaranth import Module, Signal
from amaranth.lib import stream
from examples.example import RAM
from simulators import run_benches

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import Fifo, beat_layout, code_shape, elastic_stages

BEATS = {"bits": 8, "signed": False, "frame": 7, "ram": RAM}
QUEUES = [
    (parts.Fifo(bits=9, depth=2), 2), (parts.Fifo(bits=9, depth=5), 5),
    *((parts.BlockFifo(**BEATS, depth=depth), depth) for depth in (4, 6, 18, 33)),
    *((parts.CutFifo(**BEATS, depth=depth), depth + 2) for depth in (4, 6, 18, 33)),
]  # fmt: skip


@pytest.mark.parametrize(("part", "held"), QUEUES, ids=lambda x: getattr(x, "label", x))
@pytest.mark.parametrize("warm_up", [0, 5])
def test_queues_hold_their_depth_and_register_both_directions(part, held, warm_up):
    fifo = part.build(shape=beat_layout(bits=8, signed=False, lanes=1))

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

    run_benches(fifo, bench)


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

    run_benches(m, bench)


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
