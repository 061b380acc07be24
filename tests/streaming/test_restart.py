"""A restart in the middle of anything leaves an accelerator as it was after power-on."""

import numpy as np
import pytest
from amaranth.sim import Simulator
from recurrent_graphs import convolved, looped
from temporal_graphs import unlike_branches

from nnef_hw.ir import Stage
from nnef_hw.passes import simplify
from nnef_hw.passes.stream_time import StreamTime
from nnef_hw.reference import run_fixed
from nnef_hw.run.streams import to_stream
from nnef_hw.streaming import find_board, schedule
from nnef_hw.streaming.accelerator import MOST_HOPS, Accelerator
from nnef_hw.testing import GraphBuilder


def network(rng):
    """A shortcut, a pool and a padded convolution: forks, FIFOs, line buffers, a running pool."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 6, 6]), rng.normal(size=[4, 2, 3, 3]), padding=[(1, 1)] * 2)
    y = g.conv(x, rng.normal(size=[4, 4, 3, 3]), padding=[(1, 1)] * 2)
    x = g.pool("max_pool", g.op("add", x, y), 2)
    return g.build(g.conv(x, rng.normal(size=[3, 4, 2, 2])))


def recurrent(rng):
    """A state, which a restart resets: all that reads it has to be restarted first."""
    return convolved(seed=int(rng.integers(100)))


def loop(rng):
    """A loop that a restart may leave after any of its steps, with a memory that is filled."""
    return looped(3, step=-1)


def stepwise(rng):
    """Rows of steps before, in line buffers and a delay that gives codes as soon as it may."""
    step, _ = StreamTime().steps(simplify(unlike_branches(seed=int(rng.integers(100)))))
    return step.replaced(stage=Stage.FLOAT)


def early(rng):
    """A delay in front of many blocks: it may not begin before a restart has reached them."""
    g = GraphBuilder()
    x = g.input("x", [1, 2, 1, 1])
    both = g.op("concat", g.state("old", np.zeros([1, 2, 3, 1])), x, axis=2, name="both")
    parts = {"next": (1, 4), "late": (0, 1)}
    for name, (begin, end) in parts.items():
        g.op("slice", both, name=name, axes=[2], begin=[begin], end=[end], stride=[1],
             shape=[1, 2, end - begin, 1])  # fmt: skip
    g.update("old", "next")
    for _ in range(8):
        x = g.conv(x, rng.normal(size=[2, 2, 1, 1]))
    return g.build(g.op("add", "late", x))


@pytest.mark.parametrize("restarts", [8, pytest.param(40, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("network", "board", "frames"),
    [
        (network, "ice40", 1),
        (network, "ecp5", 1),
        (recurrent, "ecp5", 2),
        (loop, "ecp5", 2),
        (stepwise, "ecp5", 14),
        (early, "ecp5", 6),
    ],
)
def test_restart_at_any_time(network, board, frames, restarts, fix, rng):
    graph = fix(network(rng))
    plan = schedule(graph, find_board(board))
    accelerator = Accelerator(plan, graph, restartable=True)
    tensor = graph.tensor(graph.inputs[0])
    codes = rng.integers(tensor.qtype.lo, tensor.qtype.hi + 1, (frames, *tensor.shape[1:]))
    expected = run_fixed(graph, {tensor.name: codes})[graph.outputs[0]]
    beats = to_stream(codes, plan.inputs[0]).reshape(-1).tolist()
    expected = to_stream(expected, plan.outputs[0]).reshape(-1).tolist()
    found = []

    async def put(ctx, count):
        """Offer beats of frames that follow each other."""
        for n in range(count):
            code = beats[n % len(beats)]
            last = n % tensor.volume == tensor.volume - 1
            ctx.set(accelerator.i.payload, {"data": [code], "last": last})
            ctx.set(accelerator.i.valid, 1)
            await ctx.tick().until(accelerator.i.ready)
        ctx.set(accelerator.i.valid, 0)

    async def host(ctx):
        for beats_before in rng.integers(1, 3 * len(beats) // frames, restarts).tolist():
            await put(ctx, beats_before)
            await ctx.tick().repeat(int(rng.integers(1, 60)))
            ctx.set(accelerator.restart, 1)
            await ctx.tick()
            ctx.set(accelerator.restart, 0)
            await ctx.tick().repeat(MOST_HOPS)
            found.append([])
            await put(ctx, len(beats))
            await ctx.tick().repeat(2 * plan.latency + frames * plan.interval)
            assert found[-1] == expected

    async def sink(ctx):
        while True:
            ctx.set(accelerator.o.ready, int(rng.integers(2)))
            _, _, was_accepted, payload = await ctx.tick().sample(
                accelerator.o.valid & accelerator.o.ready, accelerator.o.payload
            )
            if was_accepted and found:
                found[-1].append(payload.data[0])

    simulator = Simulator(accelerator)
    simulator.add_clock(1e-6)
    simulator.add_testbench(host)
    simulator.add_testbench(sink, background=True)
    simulator.run()
    assert len(found) == restarts
