"""A refactoring leaves every byte of what is planned and generated as it is.

A change that is meant updates the digests, in its own commit: ``make golden``.
"""

import json
from pathlib import Path

import pytest
from golden_digests import BOARDS, fixed_graph, plan_digest, verilog_digest
from golden_networks import NETWORKS
from sweeps import covering

from nnef_hw.streaming import find_board, schedule

RECORDED = json.loads((Path(__file__).parent / "digests.json").read_text())


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)
def test_plan(network, board):
    plan = schedule(fixed_graph(network), find_board(board))
    assert plan_digest(plan) == RECORDED[f"{network.__name__}, {board}"]["plan"]


@pytest.mark.parametrize(
    ("network", "board"),
    covering(NETWORKS, BOARDS),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_verilog(network, board):
    graph = fixed_graph(network)
    plan = schedule(graph, find_board(board))
    assert verilog_digest(plan, graph) == RECORDED[f"{network.__name__}, {board}"]["top.v"]
