"""Loops of several steps within an inference: codes and cycles of whole accelerators."""

import pytest
from recurrent_graphs import looped

from nnef_hw.ir import Tensor
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming import find_board, schedule

FRAMES = 3


def begun_by_input(net):
    return net.input(Tensor("begin", (1, 1, 3)))


LOOPS = {
    "all steps": lambda: looped(5),
    "last step": lambda: looped(4, last=True),
    "backwards": lambda: looped(5, step=-1),
    "last step backwards": lambda: looped(3, step=-1, last=True),
    "computed initial value": lambda: looped(4, initial=begun_by_input),
}


def planned(graph, rng):
    samples = {name: rng.normal(size=(10, *graph.tensor(name).shape[1:])) for name in graph.inputs}
    fixed = quantize(simplify(graph), samples)
    return schedule(fixed, find_board("ulx3s_85f")), fixed


@pytest.mark.parametrize("name", LOOPS)
def test_codes_and_cycles(name, simulate, rng):
    simulate(*planned(LOOPS[name](), rng)).check(FRAMES)
