"""Networks with states on the engine: codes that a frame leaves for the next one."""

import numpy as np
import pytest
from engine_graphs import planned
from recurrent_graphs import STATEFUL, random_recurrent
from simulators import run_benches
from sweeps import covering, few

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.layers.constant import CopyLayer
from nnef_hw.engine.layers.support import check_engine
from nnef_hw.engine.memory.store import stores
from nnef_hw.engine.timing.residency import with_residents
from nnef_hw.engine.timing.timing import waits
from nnef_hw.errors import UsageError
from nnef_hw.host.streams import to_stream
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.testing import GraphBuilder


def fixed(graph, rng):
    """Return the network fixed, with random samples of eight steps."""
    graph = simplify(graph)
    samples = {
        name: rng.normal(size=(10, 8, *graph.tensor(name).shape[1:])) for name in graph.inputs
    }
    return quantize(graph, samples)


@pytest.mark.parametrize("name", STATEFUL)
def test_codes_and_cycles(name, run_engine, rng):
    graph = fixed(STATEFUL[name](), rng)
    plan = planned(graph)
    run_engine(plan, graph, frames=4)
    run_engine(plan, graph, frames=6, stall=0.3)


ENGINES = {
    "several results": {"rows": 8, "lanes": 8, "results": 4},
    "a stream": {"ring_words": 32},
    "single-port RAM": {"board": find_board("icebreaker")},
    "single-port RAM, a stream": {"board": find_board("icebreaker"), "ring_words": 32},
}


@pytest.mark.parametrize(
    ("name", "engine"), covering(["gru", "delay line", "swapped", "convolved"], [*ENGINES])
)
def test_other_engines(name, engine, run_engine, rng):
    graph = fixed(STATEFUL[name](), rng)
    run_engine(planned(graph, **ENGINES[engine]), graph, frames=4, stall=0.0)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 100))]
)
def test_random_networks(seed, run_engine, rng):
    graph = random_recurrent(seed)
    graph = fixed(graph, rng)
    for options in ({}, *ENGINES.values()):
        run_engine(planned(graph, **options), graph, frames=3, stall=0.3)


def copies(plan):
    return [layer.name for layer in plan.design.layers if isinstance(layer, CopyLayer)]


def test_next_values_are_computed_in_the_place_of_their_state(rng):
    """Where nothing reads it any more; others are copied, and of two that swap one twice."""
    found = {}
    for name in ("gru", "delay line", "delayed", "swapped", "convolved"):
        plan = planned(fixed(STATEFUL[name](), rng))
        found[name] = copies(plan)
        places = plan.design.placement.places
        for result, state in plan.design.placement.keeping.in_place.items():
            assert places[result] == places[state]
    assert found == {
        "gru": [], "delay line": [], "delayed": ["before"], "swapped": ["v", "w"],
        "convolved": ["h"],
    }  # fmt: skip


def exchanged():
    """Return a network of two states that take over each other."""
    net = GraphBuilder("exchanged")
    x = net.input("x", (1, 5))
    v, w = net.state("v", np.full((1, 5), 0.5)), net.state("w", np.zeros((1, 5)))
    net.update("v", w)
    net.update("w", v)
    net.op("add", net.op("tanh", net.op("sub", x, v)), w, name="y")
    return net.build("y")


@pytest.mark.parametrize("engine", [{}, ENGINES["single-port RAM"]])
def test_two_states_that_take_over_each_other(engine, run_engine, rng):
    graph = fixed(exchanged(), rng)
    plan = planned(graph, **engine)
    assert len(copies(plan)) == 3
    run_engine(plan, graph, frames=5)


def test_states_in_a_row(run_engine, rng):
    """None is written over before the one behind it has taken it over."""
    net = GraphBuilder("chain")
    x = net.input("x", (1, 4))
    states = [net.state(name, np.zeros((1, 4))) for name in "abc"]
    for state, following in zip(states, [x, *states[:2]], strict=True):
        net.update(state, following)
    net.op("sub", net.op("add", x, "b"), "c", name="y")
    graph = fixed(net.build("y"), rng)
    plan = planned(graph)
    assert copies(plan) == ["c", "b", "a"]
    run_engine(plan, graph, frames=6)


def test_banks_may_want_a_copy(run_engine, rng):
    """A convolution of a state writes the other bank than the one that it reads."""
    net = GraphBuilder()
    x, h = net.input("x", (1, 4, 2, 2)), net.state("h", np.zeros((1, 4, 2, 2)))
    kept = net.conv(h, rng.normal(size=(4, 4, 1, 1)))
    net.update("h", net.op("tanh", net.op("add", kept, net.op("sigmoid", x)), name="next"))
    graph = fixed(net.build("next"), rng)
    plan = planned(graph, board=find_board("icebreaker"))
    assert plan.design.placement.banks is not None
    assert copies(plan) == ["h"]
    run_engine(plan, graph, frames=4, stall=0.3)


def test_packets_that_stay_leave_room_for_states(rng, run_engine):
    """In the banks; what initial values take of the stream comes once."""
    net = GraphBuilder()
    x, h = net.input("x", (1, 8, 2, 2)), net.state("h", rng.normal(size=(1, 320, 2, 2)))
    wide = net.op("relu", net.conv(x, rng.normal(size=(192, 8, 1, 1))))
    wide = net.op("tanh", net.conv(wide, rng.normal(size=(320, 192, 1, 1))))
    net.update("h", net.op("tanh", net.op("add", h, wide, name="sum"), name="next"))
    net.conv("next", rng.normal(size=(64, 320, 1, 1)), name="y")
    graph = fixed(net.build("y"), rng)
    board = find_board("icebreaker")
    [store, *_] = stores(board, 24.0)
    plan = planned(graph, board=board, ring_words=512, store=store)
    design = with_residents(plan.design)
    assert design.resident
    assert min(design.resident) > design.program.first > 0
    assert sum(waits(design)) < sum(waits(plan.design))
    packets = design.packets
    assert packets.reader.once == packets.once_words > packets.fill_words > 0
    alone = planned(
        graph, board=board, ring_words=512, resident=design.resident, staged=design.staged
    )
    run_engine(alone, graph, frames=3)
    run_engine(alone, graph, frames=3, stall=0.2)


@pytest.mark.parametrize("cycles", few([1, 30, 200, 470], [1, 200]))
def test_a_restart_in_the_middle_of_a_frame(cycles, rng):
    """States begin with their initial values."""
    graph = fixed(STATEFUL["gru"](), rng)
    plan = planned(graph)
    dut = EngineAccelerator(plan, restartable=True)
    tensor = graph.tensor("x")
    codes = rng.integers(tensor.qtype.lo, tensor.qtype.hi + 1, (4, *tensor.shape[1:]))
    beats = to_stream(codes, plan.inputs[0]).tolist()
    found = []

    async def feed(frames, context):
        for frame in frames:
            for lanes in frame:
                context.set(dut.i.payload, {"data": lanes, "last": 0})
                context.set(dut.i.valid, 1)
                await context.tick().until(dut.i.ready)
        context.set(dut.i.valid, 0)

    async def bench(context):
        context.set(dut.o.ready, 1)
        await feed(beats[:1], context)
        await context.tick().repeat(cycles)
        context.set(dut.restart, 1)
        await context.tick().repeat(2)
        context.set(dut.restart, 0)
        found.clear()
        await feed(beats, context)
        await context.tick().repeat(2 * plan.latency)

    async def watch(context):
        async for _, _, valid, data in context.tick().sample(dut.o.valid, dut.o.payload.data[0]):
            if valid:
                found.append(data)

    run_benches(dut, bench, watching=[watch])
    expected = run_fixed(graph, {"x": codes[None]})["y"][0]
    assert found == to_stream(expected, plan.outputs[0]).ravel().tolist()


def test_frames_of_a_batch_are_no_steps(rng):
    graph = fixed(STATEFUL["gru"](), rng)
    with pytest.raises(UsageError, match="--batch 2 computes frames together"):
        SharedArray().plan(graph, find_board("ulx3s_85f"), batch=2)


def test_what_is_refused(rng):
    net = GraphBuilder()
    x, h = net.input("x", (1, 4)), net.state("h", np.zeros((1, 4)))
    net.update("h", net.op("tanh", net.op("add", x, h), name="next"))
    [error] = check_engine(fixed(net.build("h", "next"), rng))
    assert "output 'h' is what the step before left in state 'h'" in str(error)
    assert "give 'next' as an output" in error.remedy
