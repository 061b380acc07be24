"""Networks with states: codes and cycles of whole accelerators, step by step."""

import pytest
from recurrent_graphs import STATEFUL

from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming import find_board, schedule

STEPS = 6


@pytest.fixture(params=STATEFUL.values(), ids=STATEFUL)
def planned(request, rng):
    """A fixed network with states, and its plan."""
    graph = request.param()
    samples = {
        name: rng.normal(size=(10, 8, *graph.tensor(name).shape[1:])) for name in graph.inputs
    }
    fixed = quantize(simplify(graph), samples)
    return schedule(fixed, find_board("ulx3s_85f")), fixed


def test_codes_and_cycles(planned, simulate):
    simulate(*planned).check(STEPS)


def test_any_foldings(planned, force, simulate):
    plan, graph = planned
    simulate(force(plan, graph, find_board("ulx3s_85f")), graph).check(STEPS)
