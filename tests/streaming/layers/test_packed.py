"""Layers of weights of -7 to 7 on arrays whose multipliers make four products each."""

import random
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.streaming.filters.systolic import SystolicFolding
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.options import layer_options
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


def packs(block):
    return isinstance(block.folding, SystolicFolding) and block.folding.products_per_multiplier == 4


def random_network(seed, bits=4):
    """Two convolutions and a linear layer, of weights of that width."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    size, channels = choose.randint(3, 5), choose.choice([2, 3, 5, 8])
    filters = choose.choice([2, 4, 6, 7, 12])
    g = GraphBuilder()
    x = g.input("x", [1, channels, size, size])
    shape = {"border": "constant", "stride": [1, 1], "dilation": [1, 1], "groups": 1}
    y = g.op("conv", x, rng.normal(size=[filters, channels, 3, 3]), 0.0, padding=[(1, 1), (1, 1)],
             **shape)  # fmt: skip
    if choose.random() < 0.5:
        y = g.op("relu", y)
    y = g.op("conv", y, rng.normal(size=[6, filters, 1, 1]), 0.3, padding=[(0, 0), (0, 0)], **shape)
    graph = simplify(g.build(y))
    samples = {"x": rng.normal(size=(8, 1, channels, size, size))}
    return quantize(graph, samples, Scheme(weight_bits=bits))


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(3, 40))]
)
def test_codes_and_cycles(seed, force, simulate):
    """With stalls; every layer that can has such an array, of a size drawn at random."""
    target, fixed = find_board("ecp5"), random_network(seed)
    forced = force(schedule(fixed, target), fixed, target, preferred=packs)
    assert any(map(packs, forced.blocks))
    simulate(forced, fixed).check(4)


@pytest.mark.parametrize(("board", "bits"), [("ecp5", 5), ("ice40", 4), ("tang_nano_20k", 4)])
def test_other_weights_and_blocks_have_none(board, bits):
    fixed, device = random_network(0, bits), find_board(board).device
    blocks = [block for layer in lower(fixed).layers for block in layer_options(layer, device)]
    assert blocks
    assert not any(map(packs, blocks))


def test_a_weight_of_minus_eight_has_none():
    layer = next(x for x in lower(random_network(1)).layers if x.macs)
    device = find_board("ecp5").device
    assert any(map(packs, layer_options(layer, device)))
    weights = layer.weights.copy()
    weights[0, 0, 0] = -8
    blocks = layer_options(replace(layer, weights=weights), device)
    assert blocks
    assert not any(map(packs, blocks))
