"""Engines whose program a system writes: another network's weights, without another bitstream."""

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from engine_graphs import BOARD, planned
from sweeps import covering
from written_engines import every_memory, with_other_weights

from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.timing.timing import simulate_frames
from nnef_hw.host.streams import to_stream
from nnef_hw.ir.batch import sample_extents
from nnef_hw.parts.engine.tables import Tables
from nnef_hw.parts.engine.units import StreamUnits
from nnef_hw.reference import run_fixed
from nnef_hw.sim.pysim import run_streams

FRAMES = 3


class Loading(wiring.Component):
    """An accelerator whose program is written from the first cycle on.

    Parameters
    ----------
    again : int
        Words that are missing when it is written a second time from the first word on; 0: never.
    """

    def __init__(self, accelerator, again=0):
        self.accelerator, self.again = accelerator, again
        members = accelerator.signature.members
        super().__init__({x: members[x] for x in members if x not in {"load", "left"}})

    def elaborate(self, platform):
        m = Module()
        m.submodules.accelerator = accelerator = self.accelerator
        for name, member in self.signature.members.items():
            one, other = getattr(accelerator, name), wiring.flipped(getattr(self, name))
            wiring.connect(m, *((one, other) if member.flow is wiring.Out else (other, one)))
        has_begun, is_second = Signal(), Signal()
        is_there = accelerator.left == self.again if self.again else 0
        again = has_begun & ~is_second & is_there
        m.d.comb += accelerator.load.eq(~has_begun | again)
        m.d.sync += [has_begun.eq(1), is_second.eq(is_second | again)]
        return m


def words(image):
    return [int.from_bytes(image[n : n + 4], "little") for n in range(0, len(image), 4)]


def run(component, plan, graph, rng, *, program=(), stall=0.0):
    """Return the ends of frames; their codes are those of the graph."""
    shape = sample_extents(graph.tensor("x").shape)
    qtype = graph.tensor("x").qtype
    codes = {"x": rng.integers(qtype.lo, qtype.hi + 1, (FRAMES, *shape))}
    [source], [sink] = plan.inputs, plan.outputs
    fed = {
        "i": [
            {"data": lanes, "last": n == source.beats - 1}
            for frame in to_stream(codes["x"], source).tolist() for n, lanes in enumerate(frame)
        ],
        **({"program": list(program)} if program else {}),
    }  # fmt: skip
    done = run_streams(component, fed, {"o": FRAMES * sink.beats}, rng=rng, stall=stall,
                       idle_limit=10_000)  # fmt: skip
    [expected] = run_fixed(graph, codes).values()
    found = [item.data[0] for item in done.items["o"]]
    assert found == to_stream(expected, sink).ravel().tolist()
    return np.array(done.out_cycles["o"])[sink.beats - 1 :: sink.beats]


@pytest.fixture
def designed(fix, rng):
    """Return a plan with a program that may be written, its graph, and those of other weights."""
    graph = fix(every_memory(rng))
    plan = planned(graph, rows=4, lanes=4, is_loaded=True)
    return plan, graph, *with_other_weights(plan, fix, rng)


def test_the_first_program_is_there_from_the_beginning(designed, rng):
    """Its instructions have more rows than one for ever, as fewer fields are the same in all."""
    plan, graph, *_ = designed
    assert plan.design.engine.has(Tables)
    assert plan.design.engine.has(StreamUnits)
    assert plan.design.engine.supply.tail_beats
    fixed = EnginePlan.of(plan.design.changed(is_loaded=False), BOARD, None)
    assert fixed.interval <= plan.interval
    ends = run(EngineAccelerator(plan), plan, graph, rng)
    predicted = simulate_frames(plan.design, FRAMES).last_outputs
    assert np.diff(ends).tolist() == np.diff(predicted).tolist()


@pytest.mark.parametrize(("stall", "again"), covering([0.0, 0.3], [25, 0]))
def test_another_program_computes_other_weights(designed, rng, stall, again):
    """Whatever is half written when it comes anew; the cycles are those of the first program."""
    plan, _, new, other = designed
    image = words(new.loaded)
    first = image[: len(image) - again] if again else []
    assert len(new.loaded) == len(plan.loaded)
    assert new.loaded != plan.loaded
    loading = Loading(EngineAccelerator(plan), again)
    ends = run(loading, plan, other, rng, program=[*first, *image], stall=stall)
    if not stall:
        predicted = simulate_frames(new.design, FRAMES).last_outputs
        assert np.diff(ends).tolist() == np.diff(predicted).tolist()
