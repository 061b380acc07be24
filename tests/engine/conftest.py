"""Engines run cycle by cycle."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.engine.accelerator import EngineAccelerator
from nnef_hw.engine.image import fill_beats, frame_beats
from nnef_hw.engine.timing import simulate_frames
from nnef_hw.ir.batch import sample_extents
from nnef_hw.reference import run_fixed
from nnef_hw.run.streams import to_stream
from nnef_hw.sim.pysim import run_streams


@pytest.fixture(scope="module")
def few_boards():
    """Reports say what two boards would make of a network; those of test_build.py take them all."""
    boards = tuple(find_board(name) for name in ("icebreaker", "ulx3s_85f"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nnef_hw.engine.report.BOARDS", boards)
        yield


@pytest.fixture
def run_engine(rng):
    """Return ``run_engine(plan, graph, frames, stall)``: whether codes and cycles are as they must.

    Random frames, or so many batches of them, run through the hardware in Amaranth's simulator;
    codes are compared with those of the fixed reference, cycles (without stalls) with the plan's.
    """

    def run(plan, graph, frames=2, stall=0.0):
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
        component = EngineAccelerator(plan)
        design = plan.design
        if design.ring_words:
            fed["feed"] = [*fill_beats(design), *[*frame_beats(design)] * batches]
            assert len(fed["feed"]) == design.fill_words + batches * design.frame_words
        done = run_streams(
            component, fed, {sink.name: frames * sink.beats for sink in plan.outputs}, rng=rng,
            stall=stall, idle_limit=4 * plan.latency + 100,
        )  # fmt: skip
        expected, ends = run_fixed(graph, codes), []
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

    return run
