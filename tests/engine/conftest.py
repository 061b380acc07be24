"""Engines run cycle by cycle."""

from dataclasses import dataclass

import numpy as np
import pytest
from amaranth.hdl import Shape
from simulators import is_worth_compiling

from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.program.image import fill_beats, frame_beats
from nnef_hw.engine.timing.timing import simulate_frames
from nnef_hw.host.streams import to_stream
from nnef_hw.ir.batch import sample_extents
from nnef_hw.reference import run_fixed
from nnef_hw.sim import verilator
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.pysim import run_streams


@dataclass(frozen=True)
class Beats:
    """Payloads of every output, and the cycles in which beats moved, by the names of streams."""

    items: dict
    in_cycles: dict
    out_cycles: dict


class Compiled:
    """An engine in Verilator."""

    def __init__(self, component, inputs, outputs):
        self._shapes = {
            name: getattr(component, name).payload.shape() for name in (*inputs, *outputs)
        }
        self._runner = FastRunner(to_verilog(component), inputs=inputs, outputs=outputs)

    def run(self, fed, expected, *, rng, stall, idle_limit):
        """Do what ``run_streams`` does."""
        beats = {name: _words(self._shapes[name], items) for name, items in fed.items()}
        done = self._runner.run_streams(
            beats, expected, stall=stall, seed=int(rng.integers(1 << 30)), idle_limit=idle_limit
        )
        items = {}
        for name, count in expected.items():
            rows = done.payloads[name].reshape(count, -1).tolist()
            values = [sum(word << 64 * n for n, word in enumerate(row)) for row in rows]
            items[name] = [self._shapes[name].from_bits(value) for value in values]
        return Beats(items, done.in_cycles, done.out_cycles)


def _words(shape, items):
    """Payloads as rows of 64-bit words, lowest first."""
    width = Shape.cast(shape).width
    values = [item if isinstance(item, int) else shape.const(item).as_bits() for item in items]
    count = -(-width // 64)
    rows = [[value >> 64 * n & (1 << 64) - 1 for n in range(count)] for value in values]
    return np.array(rows, np.uint64)


def _computed(graph, codes):
    """Return what the fixed reference gives for frames, which may be steps of a sequence."""
    if not graph.is_sequential:
        return run_fixed(graph, codes)
    found = run_fixed(graph, {name: steps[None] for name, steps in codes.items()})
    return {name: steps[0] for name, steps in found.items()}


@pytest.fixture(autouse=True)
def few_cycles(monkeypatch):
    """Compile models that run a few thousand cycles: without optimization it takes half as long."""
    monkeypatch.setattr(verilator, "OPTIMIZATION", "-O0")


@pytest.fixture
def run_engine(rng):
    """Return ``run_engine(plan, graph, frames, stall)``: whether codes and cycles are as they must.

    Random frames, or so many batches of them, run through the hardware, in Amaranth's simulator or,
    if they take many cycles, in Verilator; codes are compared with those of the fixed reference,
    cycles (without stalls) with the plan's. What is compiled for a plan is kept for its other runs.
    """
    compiled = {}

    def check(plan, graph, frames=2, stall=0.0):
        batches, frames = frames, frames * plan.batch
        codes = {}
        for name in graph.inputs:
            tensor = graph.tensor(name)
            shape = (frames, *sample_extents(tensor.shape))
            codes[name] = rng.integers(tensor.qtype.lo, tensor.qtype.hi + 1, shape)
        fed = {}
        for name, source in zip(graph.inputs, plan.inputs, strict=True):
            beats = to_stream(codes[name], source).tolist()
            fed[source.name] = [
                {"data": lanes, "last": n == source.beats - 1}
                for frame in beats
                for n, lanes in enumerate(frame)
            ]
        design = plan.design
        if design.ring_words:
            fed["feed"] = [*fill_beats(design), *[*frame_beats(design)] * batches]
            assert (
                len(fed["feed"]) == design.packets.once_words + batches * design.packets.frame_words
            )
        cycles = plan.latency + (batches - 1) * plan.batch_cycles
        counts = {sink.name: frames * sink.beats for sink in plan.outputs}
        options = {"rng": rng, "stall": stall, "idle_limit": 4 * plan.latency + 100}
        if plan in compiled or is_worth_compiling(cycles / (1 - stall)):
            if plan not in compiled:
                compiled[plan] = Compiled(EngineAccelerator(plan), tuple(fed), tuple(counts))
            done = compiled[plan].run(fed, counts, **options)
        else:
            done = run_streams(EngineAccelerator(plan), fed, counts, **options)
        expected, ends = _computed(graph, codes), []
        for output, sink in zip(graph.outputs, plan.outputs, strict=True):
            found = [item.data[0] for item in done.items[sink.name]]
            assert found == to_stream(expected[output], sink).ravel().tolist(), output
            lasts = [item.last for item in done.items[sink.name]]
            assert lasts == [*[0] * (sink.beats - 1), 1] * frames
            ends.append(np.array(done.out_cycles[sink.name])[sink.beats - 1 :: sink.beats])
        if not stall:
            ends = np.max(ends, axis=0)
            assert ends[0] - done.in_cycles[plan.inputs[0].name][0] == plan.latency
            predicted = np.array(simulate_frames(design, frames).last_outputs)
            assert np.diff(ends).tolist() == np.diff(predicted).tolist()
            steady = predicted[plan.settling - 1 :]
            assert (steady[plan.batch :] - steady[: -plan.batch] == plan.batch_cycles).all()
            assert plan.interval == -(-plan.batch_cycles // plan.batch)

    return check
