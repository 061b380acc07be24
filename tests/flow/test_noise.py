"""Samples of nothing, where a plan has none."""

from step_graphs import step

from nnef_hw.boards import find_board
from nnef_hw.flow.survey import noise, roughly_fixed
from nnef_hw.passes import simplify
from nnef_hw.streaming.search.solver import schedule


def test_integers_are_those_of_the_tables(rng):
    graph = step(rng)
    found = noise(simplify(graph)).inputs
    assert [(x.min(), x.max() + 1) for x in found.values()] == [(0, 11), (0, 8)]
    assert schedule(roughly_fixed(graph, None), find_board("ulx3s_85f")).interval > 0
