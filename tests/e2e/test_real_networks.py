"""Networks of other people come as far as is recorded, or further."""

import pytest
from real_networks import known_networks, survey

NETWORKS = {network.name: network for network in known_networks()}


@pytest.mark.nightly
@pytest.mark.verilator
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_comes_as_far_as_recorded(name, realworld, tmp_path):
    pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
    pytest.importorskip("ai_edge_litert", reason="pip install nnef-hw[crosscheck]")
    network = NETWORKS[name]
    path = network.find(realworld)
    if path is None:
        pytest.skip(f"no {network.file} of the recorded hash in {realworld}")
    recorded = network.verdict
    # What was never built takes hours to try again: scripts/record/real_networks.py does.
    boards = (recorded.board,) if recorded.board else ()
    found = survey(network, path, tmp_path, boards)
    assert found.rank >= recorded.rank, f"{found.stage}, not {recorded.stage}: {found.reason}"


def test_enough_networks_are_built():
    """The record may only improve."""
    built = [network for network in NETWORKS.values() if network.verdict.stage == "built"]
    assert len(built) >= 40
    assert len({network.name for network in built}) == len(built)
    assert all(network.verdict.interval and network.verdict.rate for network in built)
