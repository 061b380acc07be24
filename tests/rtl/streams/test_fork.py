# amaranth: UnusedElaboratable=no
import itertools
import re

import pytest
from simulators import run_benches

from nnef_hw.rtl.streams.fork import Fork
from nnef_hw.sim.pysim import run_streams


@pytest.mark.parametrize("branches", [2, 3, 5])
def test_every_branch_gets_every_item_in_order(branches, stall, rng):
    items = rng.integers(0, 256, 100).tolist()
    names = [f"o{n}" for n in range(branches)]
    run = run_streams(
        Fork(8, branches=branches), {"i": items}, dict.fromkeys(names, len(items)),
        stall=stall, rng=rng,
    )  # fmt: skip
    assert run.items == dict.fromkeys(names, items)


def test_moves_one_item_per_cycle_without_delay(rng):
    run = run_streams(Fork(8, branches=2), {"i": range(20)}, {"o0": 20, "o1": 20}, rng=rng)
    assert run.in_cycles["i"] == list(range(20))
    assert run.out_cycles == {"o0": list(range(20)), "o1": list(range(20))}


def test_no_branch_sees_whether_another_is_ready():
    fork = Fork(8, branches=3)
    outputs = [fork.o0, fork.o1, fork.o2]

    async def bench(ctx):
        ctx.set(fork.i.valid, 1)
        for ready in itertools.product((0, 1), repeat=3):
            for output, value in zip(outputs, ready, strict=True):
                ctx.set(output.ready, value)
            assert all(ctx.get(output.valid) for output in outputs)
            assert ctx.get(fork.i.ready) == all(ready)

    run_benches(fork, bench)


def test_a_branch_takes_an_item_once_and_does_not_wait_for_the_others():
    fork = Fork(8, branches=2)

    async def bench(ctx):
        ctx.set(fork.i.valid, 1)
        ctx.set(fork.i.payload, 7)
        ctx.set(fork.o0.ready, 1)
        await ctx.tick()
        for _ in range(3):
            assert (ctx.get(fork.o0.valid), ctx.get(fork.o1.valid)) == (0, 1)
            assert not ctx.get(fork.i.ready)
            await ctx.tick()
        ctx.set(fork.o1.ready, 1)
        assert ctx.get(fork.i.ready)
        await ctx.tick()
        assert (ctx.get(fork.o0.valid), ctx.get(fork.o1.valid)) == (1, 1)

    run_benches(fork, bench)


@pytest.mark.parametrize("branches", [0, 1])
def test_refuses_a_single_branch(branches):
    message = f"Fork needs at least 2 branches, not {branches}"
    with pytest.raises(ValueError, match=re.escape(message)):
        Fork(8, branches=branches)
