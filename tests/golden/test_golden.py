"""A refactoring leaves every byte of what is planned and generated as it is.

A change that is meant updates the digests, in its own commit: ``make golden``.
"""

import json
from pathlib import Path

import pytest
from golden_digests import BOARDS, digests
from golden_networks import NETWORKS

RECORDED = json.loads((Path(__file__).parent / "digests.json").read_text())


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)
def test_plan_and_verilog(network, board):
    assert digests(network, board) == RECORDED[f"{network.__name__}, {board}"]
