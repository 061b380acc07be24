"""How near designs come to the fewest LUTs."""

import numpy as np
import pytest
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.streaming.foldings.budget import Budget
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.knapsack import LUT, least
from nnef_hw.streaming.search.options import layer_options
from nnef_hw.streaming.search.search import Search
from nnef_hw.testing import GraphBuilder


def search_of(weight_bits, dsp, fix, rng):
    """Return a search of six convolutions on an ECP5 with so many DSP blocks."""
    g = GraphBuilder("wide")
    x, width = g.input("x", [1, 16, 8, 8]), 16
    for channels, kernel in ((16, 3), (16, 3), (32, 3), (32, 3), (64, 3), (64, 1)):
        weights = rng.normal(size=[channels, width, kernel, kernel])
        x, width = g.op("relu", g.conv(x, weights, padding=kernel // 2)), channels
    device = find_board("ulx3s_85f").device
    layers = lower(fix(g.build(x), weight_bits=weight_bits)).layers
    budget = Budget(lut=45_000, dsp=dsp, bram=200, spram=0)
    options = [layer_options(layer, device) for layer in layers]
    return Search(options, budget, device, steady_words=True)


@pytest.mark.parametrize(
    ("weight_bits", "dsp", "cycles"),
    few(
        [(8, 60, 9_216), (8, 156, 4_608), (8, 156, 18_432), (4, 20, 9_216), (4, 156, 4_608)],
        [(8, 60, 9_216), (4, 156, 4_608)],
    ),
)
def test_designs_take_about_the_fewest_luts(weight_bits, dsp, cycles, fix, rng):
    """The other LUTs are for fewer block RAMs and idle multipliers."""
    search = search_of(weight_bits, dsp, fix, rng)
    blocks = search.within(cycles)
    assert blocks is not None
    assert max(block.cycles for block in blocks) <= cycles
    allowed = [
        np.array([
            [b.resources.lut, b.resources.dsp, b.resources.bram, b.resources.spram]
            for b in layer if b.cycles <= cycles
        ])
        for layer in search.options
    ]  # fmt: skip
    fewest = least(allowed, search.limits, LUT)
    assert sum(block.resources.lut for block in blocks) <= 1.03 * fewest
