"""More room never gives a slower design, and a lower rate never costs more."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from golden_networks import lenet, residual, separable
from sweeps import covering, few

from nnef_hw.boards import find_board
from nnef_hw.hardware.devices import LUT_SHARE
from nnef_hw.streaming.foldings.budget import border_resources, budget_of
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.options import network_options
from nnef_hw.streaming.search.room import fast_budget
from nnef_hw.streaming.search.search import SLACK, Search
from nnef_hw.streaming.search.solver import schedule

NETWORKS = {"lenet": lenet, "residual": residual, "separable": separable}
BOARDS = [find_board(name) for name in ("icebreaker", "ulx3s_12f", "tang_nano_9k")]


@cache
def fixed_of(network):
    return NETWORKS[network]().fixed()


def room_of(graph, target):
    """Return the least interval within the budget for speed, and the budget."""
    network = lower(graph)
    options = network_options(network, target.device)
    link = border_resources(network, target)
    budget = fast_budget(options, target.device, link)
    assert budget.lut <= budget_of(target.device, link, LUT_SHARE).lut
    search = Search(options, budget, target.device, steady_words=True)
    return search.least() or np.inf, budget


@pytest.mark.parametrize(
    ("network", "board", "resource"),
    covering([*NETWORKS], BOARDS, ["lut", "dsp", "bram"]),
    ids=lambda x: getattr(x, "name", x),
)
def test_more_of_a_device_gives_no_slower_layers(network, board, resource, rng):
    graph = fixed_of(network)
    amounts = np.sort(rng.uniform(0.2, 2, 12)) * getattr(board.device, resource)
    devices = [replace(board.device, **{resource: int(amount)}) for amount in amounts]
    found = [room_of(graph, replace(board, device=device))[0] for device in devices]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("network", "board"), covering([*NETWORKS], BOARDS), ids=lambda x: getattr(x, "name", x)
)
def test_a_larger_host_link_gives_no_faster_layers(network, board, rng):
    graph = fixed_of(network)
    links = np.sort(rng.integers(0, board.device.lut, 24)).tolist()
    found = [room_of(graph, replace(board, link_lut=link)) for link in links]
    assert [interval for interval, _ in found] == sorted(interval for interval, _ in found)
    luts = [budget.lut for _, budget in found]
    assert luts == sorted(luts, reverse=True)


def test_a_design_at_the_edge_of_the_comfortable_share_may_fill_more():
    """Its smallest design fits by a few LUTs; with fewer it may take all that can be placed."""
    graph, board = fixed_of("residual"), BOARDS[0]
    links = [board.link_lut + more for more in (-200, -40, 0, 40, 80, 120)]
    plans = [schedule(graph, replace(board, link_lut=link)) for link in links]
    found = [plan.interval for plan in plans]
    assert found == sorted(found)
    shares = [plan.resources.lut / board.device.lut for plan in plans]
    assert max(shares) > board.device.stream_share
    assert max(shares) <= LUT_SHARE


@pytest.mark.parametrize("network", few(["separable", "lenet", "residual"], ["separable"]))
def test_a_design_is_within_an_eighth_of_one_with_less_room(network, rng):
    graph, board = fixed_of(network), BOARDS[1]
    luts = np.sort(rng.uniform(0.35, 1.5, 5)) * board.device.lut
    found = [
        schedule(graph, replace(board, device=replace(board.device, lut=int(lut)))).interval
        for lut in luts
    ]
    best = np.minimum.accumulate(found)
    assert np.all(found <= best * SLACK)
