"""Refusals: every number in them is the least."""

import re
from dataclasses import replace

import pytest
from layers_of_few_divisors import two_layers

from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError
from nnef_hw.streaming.search import solver, width
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

SHORT = re.compile(
    r"at least ([\d,]+) ([\w\- ]+), ([\d,]+) more than the ([\d,]+) left beside the host link "
    r"\((?:most|all) in ([^)]+)\)"
)


def number(text):
    return int(text.replace(",", ""))


def shortages(error):
    """Return (least, name, excess, left, layers) of every resource that a refusal names."""
    return [
        (number(needed), name, number(excess), number(available), layers)
        for needed, name, excess, available, layers in SHORT.findall(error.reason)
    ]


def refuse(graph, target, **options):
    with pytest.raises(TargetError) as caught:
        schedule(graph, target, **options)
    return caught.value


def on(board, **amounts):
    """Return a board with other amounts of some resources."""
    target = find_board(board)
    return replace(target, device=replace(target.device, **amounts))


@pytest.fixture
def perceptron(rng):
    return two_layers(rng)


@pytest.fixture
def residual(rng):
    """Return a block whose skip connection waits for rows."""
    g = GraphBuilder("residual")
    x = g.conv(g.input("x", [1, 4, 10, 10]), rng.normal(size=[16, 4, 1, 1]), name="first")
    y = g.conv(x, rng.normal(size=[16, 16, 3, 3]), padding=1, name="second")
    y = g.conv(y, rng.normal(size=[16, 16, 3, 3]), padding=1, name="third")
    return g.build(g.op("add", x, y, name="sum"))


def test_too_many_weights(fix, perceptron):
    error = refuse(fix(perceptron), find_board("icebreaker"))
    assert error.reason.startswith(
        "model 'perceptron' does not fit icebreaker (up5k) with --arch streaming: it takes at "
    )
    ((needed, name, excess, available, layers),) = shortages(error)
    assert (name, available) == ("block RAMs", 29)
    assert excess == needed - available > 0
    # All in block RAM would be 47.
    assert needed >= 40
    amounts = dict(layer.rsplit(" ", 1) for layer in re.split(", | and ", layers))
    assert list(amounts) == ["linear206", "linear20"]
    assert sum(map(number, amounts.values())) == needed
    assert re.search(r"; of the others, [\d,]+ of [\d,]+ LUTs, 0 of 8 DSP blocks, ", error.reason)


def test_too_many_weights_for_a_gowin_device(fix, perceptron):
    error = refuse(fix(perceptron), on("tang_nano_9k", bram=6))
    assert (
        "does not fit tang_nano_9k (gw1nr-9c) with --arch streaming: it takes at least "
        in error.reason
    )
    ((needed, name, excess, left, _),) = shortages(error)
    assert (name, left) == ("block RAMs", 5)
    assert excess == needed - left > 0
    assert re.search(r"; of the others, [\d,]+ of 7,[\d,]+ LUTs, 0 of 40 DSP blocks ", error.reason)


def test_the_named_amount_is_the_least(fix, perceptron):
    graph, link = fix(perceptron), find_board("icebreaker").link_bram
    ((needed, *_),) = shortages(refuse(graph, find_board("icebreaker")))
    (few,) = shortages(refuse(graph, on("icebreaker", bram=needed + link - 1)))
    assert few[:4] == (needed, "block RAMs", 1, needed - 1)
    # With the fewest block RAMs it takes more LUTs than there are.
    error = refuse(graph, on("icebreaker", bram=needed + link))
    assert re.search(
        r"each resource by itself would do \([\d,]+ of 4,1\d\d LUTs, 0 of 8 DSP blocks, "
        rf"{needed} of {needed} block RAMs, 0 of 4 single-port RAMs\), but not all together: "
        r"with no more of the others it takes at least ",
        error.reason,
    )
    ways = {name: amount for amount, name, *_ in shortages(error)}
    enough = ways["block RAMs"]
    assert {"LUTs", "block RAMs"} <= set(ways)
    refuse(graph, on("icebreaker", bram=enough + link - 1))
    plan = schedule(graph, on("icebreaker", bram=enough + link))
    assert plan.resources.bram == enough + link


def test_fifos_that_do_not_fit(fix, residual):
    graph = fix(residual)
    few = on("ulx3s_25f", bram=1)
    ((needed, *_),) = shortages(refuse(graph, few))
    link = few.link_bram
    error = refuse(graph, on("ulx3s_25f", bram=needed + link))
    match = re.search(
        r"its layers alone would fit, but the smallest design found takes (\d+) block RAMs, (\d+) "
        r"more than the (\d+) left beside the host link, (\d+) of them for FIFOs",
        error.reason,
    )
    total, excess, available, fifos = map(int, match.groups())
    assert (available, total - excess, total - fifos) == (needed, available, needed)
    plan = schedule(graph, on("ulx3s_25f", bram=total + link))
    assert plan.resources.bram <= total + link


def test_a_misfit_at_any_rate_is_no_matter_of_the_rate(fix, perceptron):
    graph, target = fix(perceptron), find_board("icebreaker")
    assert str(refuse(graph, target, target_fps=1.0)) == str(refuse(graph, target))


def test_weights_that_no_folding_could_hold_are_refused_before_any_is_made(
    fix, perceptron, monkeypatch
):
    def enumerate_options(network, device):
        raise AssertionError("foldings are enumerated")

    for module in (solver, width):
        monkeypatch.setattr(module, "network_options", enumerate_options)
    board = on("icebreaker", bram=2, lut=400)
    error = refuse(fix(perceptron), board)
    assert re.search(
        r"its weights take ([\d,]+) bytes \(most in linear206 [\d,]+ and linear20 [\d,]+\), and "
        r"all block RAMs and LUTs of the device together hold 1,824",
        error.reason,
    )

    with pytest.raises(AssertionError, match="enumerated"):
        schedule(fix(perceptron), find_board("ulx3s_25f"))
