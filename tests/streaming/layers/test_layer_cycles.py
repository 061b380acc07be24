"""The cycles that foldings of a layer are chosen by are those of the layer's simulated beats."""

import random
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.streaming.beats.beats import simulate_beats
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FOLDINGS = 12


def random_convolution(choose, rng):
    height, width = choose.randint(1, 7), choose.randint(2, 9)
    kernel = [choose.randint(1, min(3, height)), choose.randint(1, min(3, width))]
    padding = [(choose.randint(0, size - 1), choose.randint(0, size - 1)) for size in kernel]
    channels, filters = choose.choice([1, 2, 3, 5, 8]), choose.choice([1, 2, 3, 7, 10, 16])
    g = GraphBuilder()
    x = g.input("x", [1, channels, height, width])
    y = g.op("conv", x, rng.normal(size=[filters, channels, *kernel]), 0.0, border="constant",
             padding=padding, stride=[choose.randint(1, 2), choose.randint(1, 2)],
             dilation=[1, 1], groups=1)  # fmt: skip
    return g.build(y)


def never_waits_for_room(block):
    """Whether its line buffer holds what comes until its reader wants it."""
    return isinstance(block.buffer, LineBuffer) and not block.buffer.missing_words


@pytest.mark.parametrize("board", ["ice40", "ecp5"])
@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(8, 60))]
)
def test_foldings_take_the_cycles_that_they_are_chosen_by(seed, board, fix):
    choose = random.Random(f"{seed} {board}")
    plan = schedule(fix(random_convolution(choose, np.random.default_rng(seed))), find_board(board))
    [place] = [n for n, block in enumerate(plan.blocks) if block.buffer]
    block = plan.blocks[place]
    variants = [replace(block, folding=f) for f in block.layer.foldings(block.device)]
    variants = list(filter(never_waits_for_room, variants))
    assert variants
    for variant in choose.sample(variants, min(FOLDINGS, len(variants))):
        blocks = [*plan.blocks[:place], variant, *plan.blocks[place + 1 :]]
        times = simulate_beats(blocks, plan.inputs, plan.outputs)
        assert times.interval == max(block.cycles for block in blocks), variant.folding
