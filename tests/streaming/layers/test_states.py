"""Networks with states: codes and cycles of whole accelerators, step by step."""

from pathlib import Path

import numpy as np
import pytest
from recurrent_graphs import STATEFUL, random_recurrent

from nnef_hw.boards import find_board
from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming.architecture import Streaming
from nnef_hw.streaming.beats.activity import make_timeline
from nnef_hw.streaming.report import report_plan
from nnef_hw.streaming.search import solver
from nnef_hw.streaming.search.loop_search import layers_in_loops
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

ROOT = Path(__file__).parents[3]
STEPS = 4
LONG = 64
SLOW = ("gru", "convolved", "delayed", "swapped")


def planned(graph, rng):
    """Return the plan of a network with states, and the network fixed."""
    samples = {
        name: rng.normal(size=(10, 8, *graph.tensor(name).shape[1:])) for name in graph.inputs
    }
    fixed = quantize(simplify(graph), samples)
    return schedule(fixed, find_board("ulx3s_85f")), fixed


@pytest.mark.parametrize("name", STATEFUL)
def test_codes_and_cycles(name, simulate, rng):
    simulate(*planned(STATEFUL[name](), rng)).check(STEPS)


@pytest.mark.parametrize(
    "name",
    ["delay line", "of two inputs", *(pytest.param(n, marks=pytest.mark.nightly) for n in SLOW)],
)
def test_any_foldings(name, force, simulate, rng):
    plan, graph = planned(STATEFUL[name](), rng)
    simulate(force(plan, graph, find_board("ulx3s_85f")), graph).check(STEPS)


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(4, 200))]
)
def test_random_networks(seed, force, simulate, rng):
    """Codes and cycles, with stalls, are those of foldings that are forced."""
    target = find_board("ecp5")
    graph = simplify(random_recurrent(seed))
    samples = {"x": rng.normal(size=(6, 8, *graph.tensor("x").shape[1:]))}
    fixed = quantize(graph, samples)
    plan = force(schedule(fixed, target), fixed, target)
    simulate(plan, fixed).check(4)


@pytest.mark.verilator
@pytest.mark.parametrize(
    "seed", [300, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(301, 330))]
)
def test_long_sequences(seed, force, simulate, rng):
    """The cycles of all steps, of two outputs, and codes with stalls."""
    graph = simplify(random_recurrent(seed).replaced(outputs=("mixed", "y")))
    samples = {"x": rng.normal(size=(6, 8, *graph.tensor("x").shape[1:]))}
    fixed = quantize(graph, samples)
    target = find_board("ecp5")
    plan = force(schedule(fixed, target), fixed, target)
    simulate(plan, fixed, "verilator").check(LONG)


def test_foldings_are_chosen_for_the_time_around_a_loop(monkeypatch):
    """Where that bounds the interval, as it does in the example."""
    folder = ROOT / "examples" / "digits_gru"
    samples = {"row": np.load(folder / "samples.npz")["inputs"][::10]}
    fixed = quantize(simplify(load(folder / "digits_gru.nnef.tgz")), samples)
    quick = schedule(fixed, find_board("icebreaker"))
    monkeypatch.setattr(solver, "shorten_loops", lambda *_: None)
    slow = schedule(fixed, find_board("icebreaker"))
    assert slow.interval > max(block.cycles for block in slow.blocks)
    assert quick.interval < 0.85 * slow.interval
    looped = layers_in_loops(quick.blocks)
    assert {"h", "gates", "h_next"} <= looped
    assert looped.isdisjoint({"scores", "row_in_seen"})
    report = report_plan(quick, fixed, find_board("icebreaker"), make_timeline(quick))
    assert set(report.loop) == looped
    assert [row.cycles_per_inference for row in report.boards] == [quick.interval]


def test_outputs_of_states_alone_are_refused():
    """They would leave before the step begins."""
    net = GraphBuilder("early")
    x, s = net.input("x", (1, 3)), net.state("s", np.zeros((1, 3)))
    net.update("s", net.op("tanh", net.op("add", x, s), name="next"))
    net.op("relu", s, name="before")
    (error,) = Streaming().problems(simplify(net.build("next", "before")))
    assert "output 'before' depends on no input of its step, only on states" in str(error)
    assert not Streaming().problems(simplify(net.build("next")))


def test_states_that_run_by_themselves_end(fix, simulate):
    """A counter that no input is a part of is as fast as what it is added to."""
    net = GraphBuilder("counter")
    x, n = net.input("x", (1, 3)), net.state("n", np.full((1, 3), 0.125))
    net.update("n", net.op("sin", net.op("add", n, 0.5, name="more"), name="next"))
    net.op("add", net.op("linear", x, np.eye(3), np.zeros((1, 3))), n, name="y")
    graph = fix(net.build("y"))
    simulate(schedule(graph, find_board("ulx3s_85f")), graph).check(STEPS)
