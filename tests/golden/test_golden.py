"""A refactoring leaves every byte of what is planned and generated as it is.

A change that is meant updates the digests, in its own commit: ``make golden``.
"""

import json
from pathlib import Path

import pytest
from golden_builds import BUILDS
from golden_digests import BOARDS, fixed_graph, plan_digest, planned, verilog_digest
from golden_networks import NETWORKS
from sweeps import covering

RECORDED = json.loads((Path(__file__).parent / "digests.json").read_text())
RECORDED_BUILDS = json.loads((Path(__file__).parent / "builds.json").read_text())


@pytest.mark.parametrize(
    ("network", "board"),
    covering(NETWORKS, BOARDS),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_plan_and_verilog(network, board):
    recorded = RECORDED[f"{network.__name__}, {board}"]
    plan = planned(network, board)
    assert plan_digest(plan) == recorded["plan"]
    assert verilog_digest(plan, fixed_graph(network)) == recorded["top.v"]


@pytest.mark.system
@pytest.mark.usefixtures("all_boards")
@pytest.mark.parametrize(
    "build",
    [
        pytest.param(build, id=build.name, marks=[pytest.mark.nightly] if build.nightly else [])
        for build in BUILDS
    ],
)
def test_build(build):
    """Every file of it, one by one, so that a failure says which."""
    assert build.digests() == RECORDED_BUILDS[build.name]
