"""A restart in the middle of anything, of every architecture."""

import pytest
from amaranth import Module
from conformance_cases import (
    ARCHITECTURES,
    BOARDS,
    PAIRS,
    beats_of,
    codes_of,
    fixed,
    kinds,
    planned,
)  # fmt: skip
from simulators import run_benches
from sweeps import few

from nnef_hw.streaming.hardware.accelerator import MOST_HOPS


class Restarts:
    """An accelerator, cycle by cycle, that is restarted while frames are inside."""

    def __init__(self, component, plan):
        self.component = component
        self.sources, self.sinks = (
            {port.name: getattr(component, port.name) for port in ports}
            for ports in (plan.inputs, plan.outputs)
        )
        self.lanes = {port.name: port.lanes for port in plan.outputs}

    def run(self, trials):
        """Yield a list of codes by output for each trial: cycles before, beats before, beats."""
        found = []

        async def bench(ctx):
            for cycles, before, beats, limit in trials:
                await self.offer(ctx, before, cycles)
                ctx.set(self.component.restart, 1)
                await ctx.tick().until(self.component.restarted)
                ctx.set(self.component.restart, 0)
                await self.offer(ctx, {}, MOST_HOPS)
                found.append(await self.offer(ctx, beats, limit))

        m = Module()
        m.submodules.dut = self.component
        run_benches(m, bench)
        return found

    async def offer(self, ctx, beats, cycles):
        """Offer beats for some cycles, take what comes, and stop offering."""
        left = {name: list(beats.get(name, ())) for name in self.sources}
        given = {name: [] for name in self.sinks}
        for sink in self.sinks.values():
            ctx.set(sink.ready, 1)
        ends = [source.ready for source in self.sources.values()]
        for sink in self.sinks.values():
            ends += [sink.valid, sink.payload]
        for _ in range(cycles):
            for name, source in self.sources.items():
                ctx.set(source.valid, bool(left[name]))
                if left[name]:
                    ctx.set(source.payload, left[name][0])
            _, _, *seen = await ctx.tick().sample(*ends)
            taken, results = seen[: len(left)], seen[len(left) :]
            for name, ready in zip(left, taken, strict=True):
                del left[name][: bool(ready)]
            for name, valid, payload in zip(given, results[::2], results[1::2], strict=True):
                if valid:
                    given[name] += [payload.data[n] for n in range(self.lanes[name])]
        for source in self.sources.values():
            ctx.set(source.valid, 0)
        return given


@pytest.mark.parametrize(
    ("name", "network"),
    few(PAIRS, [pair for pair in PAIRS if pair != ("engine", kinds)]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_restart_in_the_middle(name, network, rng):
    """Whatever was inside is lost, and the next frame is whole."""
    architecture, graph = ARCHITECTURES[name], fixed(network)
    plan = planned(name, network, BOARDS[0])
    component = architecture.component(plan, graph, restartable=True)
    fed, expected = beats_of(graph, plan, codes_of(graph, rng, 1))
    limit = 2 * plan.latency + plan.interval + 20
    begins = [1, 3, *rng.integers(1, plan.latency + plan.interval, 2).tolist()]
    found = Restarts(component, plan).run([(cycles, fed, fed, limit) for cycles in begins])
    assert found == [expected] * len(begins)
