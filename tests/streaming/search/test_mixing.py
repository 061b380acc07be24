"""Multipliers of a layer in DSP blocks and in logic."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.mixing import fill_dsp
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


def blocks_in_logic(fix, rng, board="ecp5"):
    g = GraphBuilder("mixed")
    x = g.conv(g.input("x", [1, 4, 4, 4]), rng.normal(size=[8, 4, 3, 3]))
    graph = fix(g.build(g.conv(x, rng.normal(size=[6, 8, 1, 1]))))
    plan = schedule(graph, find_board(board))
    return graph, plan, [block.with_folding(in_dsp=0) for block in plan.blocks]


@pytest.mark.parametrize("dsp", [0, 3, 10, 1000])
def test_dsp_blocks_that_are_left_are_taken(dsp, fix, rng):
    _, _, blocks = blocks_in_logic(fix, rng)
    filled = fill_dsp(blocks, dsp)
    used = sum(block.resources.dsp for block in filled)
    wanted = min(dsp, sum(block.multipliers for block in blocks))
    assert wanted - 1 <= used <= wanted
    assert [block.cycles for block in filled] == [block.cycles for block in blocks]


@pytest.mark.parametrize("dsp", [1, 3, 5])
def test_a_block_of_two_multipliers_takes_two(dsp, fix, rng):
    _, _, blocks = blocks_in_logic(fix, rng, "icebreaker")
    filled = fill_dsp(blocks, dsp)
    assert sum(block.resources.dsp for block in filled) == dsp
    assert sum(block.in_dsp for block in filled) >= 2 * dsp - len(blocks)


def test_a_plan_of_a_file_fixes_them(fix, rng):
    """A folding with any number of multipliers in DSP blocks is one that a plan may name."""
    graph, plan, blocks = blocks_in_logic(fix, rng)
    for count in range(blocks[0].multipliers + 1):
        folding = blocks[0].with_folding(in_dsp=count).folding
        read = type(folding).from_json(folding.to_json())
        layer = lower(graph).layers[0]
        block = Block.of(layer, read, blocks[0].device)
        assert block.resources.dsp == block.in_dsp
        assert np.isclose(block.in_dsp, count, atol=1)
    assert plan.blocks[0].name == lower(graph).layers[0].name
