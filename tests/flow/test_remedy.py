"""Remedies of refusals: every one of them works when it is followed, and costs what it says."""

import pickle
import re
from dataclasses import replace
from functools import partial

import pytest
from layers_of_few_divisors import two_layers

from nnef_hw.architectures import able_architectures, unable_architectures
from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import NO_LINK
from nnef_hw.errors import ShortageError, TargetError
from nnef_hw.flow import remedy
from nnef_hw.flow.choice import Candidates, choose_plan
from nnef_hw.flow.options import find_target
from nnef_hw.flow.remedy import Asked, Ways, remedied

pytestmark = pytest.mark.system

TINY = replace(find_board("icebreaker"), device=replace(find_board("icebreaker").device, bram=5))


def plan(graph, target, arch="auto", **wishes):
    candidates = Candidates(
        able_architectures(arch, graph), partial(unable_architectures, arch, graph)
    )
    return choose_plan(candidates, graph, target, **wishes)[0]


def refuse(graph, target, narrowed=None, arch="auto", *, lone=False, **wishes):
    ways = Ways(graph, Asked(arch, lone=lone, **wishes), narrowed)
    with pytest.raises(ShortageError) as caught, remedied(lambda: ways, target):
        plan(graph, target, arch, **wishes)
    return caught.value


def cost(plan):
    rate = plan.clock_mhz * 1e6 / plan.interval
    return f"{plan.interval:,} cycles, {rate:,.0f} inferences/s"


@pytest.fixture
def perceptron(rng):
    return two_layers(rng)


@pytest.fixture
def no_boards(monkeypatch):
    monkeypatch.setattr(remedy, "BOARDS", ())


def test_another_architecture(fix, perceptron):
    graph, board = fix(perceptron), find_board("icebreaker")
    error = refuse(graph, board, arch="streaming")
    assert error.remedy == f"use --arch engine: {cost(plan(graph, board, 'engine'))}"


def test_another_board(fix, perceptron):
    """The smallest one that works; both architectures say why they are no way."""
    graph = fix(perceptron)
    error = refuse(graph, TINY)
    assert re.fullmatch(
        r"model 'perceptron' does not fit icebreaker \(up5k\) with --arch streaming: its weights "
        r"take .*; nor with --arch engine: an array of \d+ x \d+ takes [\d,]+ block RAMs of 5.*",
        error.reason,
    )
    name = re.match(r"use --board (\w+): ", error.remedy)[1]
    assert error.remedy == f"use --board {name}: {cost(plan(graph, find_board(name)))}"
    for smaller in remedy.BOARDS:
        if smaller.device.lut < find_board(name).device.lut and smaller.device != TINY.device:
            with pytest.raises(TargetError):
                plan(graph, smaller)


def test_a_board_that_is_larger(fix, perceptron):
    """An iCE40UP5K runs it as well, with its single-port RAMs: that comes after all larger ones."""
    device = replace(find_board("tang_nano_9k").device, bram=3)
    graph, target = fix(perceptron), replace(find_board("tang_nano_9k"), device=device)
    assert plan(graph, find_board("icebreaker"))
    name = re.match(r"use --board (\w+): ", refuse(graph, target).remedy)[1]
    assert find_board(name).device.lut >= device.lut


def test_another_device_for_plain_ip(fix, perceptron):
    graph, target = fix(perceptron, activation_bits=12), find_target("none", "up5k")
    error = refuse(graph, target)
    name = re.match(r"use --device ([\w-]+): ", error.remedy)[1]
    assert error.remedy.endswith(cost(plan(graph, find_target("none", name))))


@pytest.mark.usefixtures("no_boards")
def test_narrower_weights(fix, perceptron):
    """As many bits as fit, of what a search would try; the engine has no codes of 12 bits."""
    board = find_board("icebreaker")

    def narrowed(bits):
        return fix(perceptron, activation_bits=12, weight_bits=bits)

    error = refuse(narrowed(8), board, narrowed)
    assert "; --arch engine has no hardware for it: " in error.reason
    found = re.match(r"use --weight-bits (\d): (.*), weights of ([\d,]+) bytes", error.remedy)
    bits, weights = int(found[1]), 94 * 206 + 206 * 20
    assert found[2] == cost(plan(narrowed(bits), board))
    assert int(found[3].replace(",", "")) >= weights * bits // 8
    with pytest.raises(ShortageError):
        plan(narrowed(bits + 1), board)


@pytest.mark.usefixtures("no_boards")
@pytest.mark.parametrize("free", [True, False])
def test_nothing_works(free, fix, perceptron):
    """Weights that the author quantized keep their bits whatever is asked: that is no way."""
    target = replace(TINY, device=replace(TINY.device, bram=2))
    error = refuse(
        fix(perceptron), target, lambda bits: fix(perceptron, weight_bits=bits if free else 8)
    )
    narrower = ", nor has this one with weights of 2 bits" if free else ""
    assert error.remedy == (
        f"no board known here was found to have room for it{narrower}; use fewer or smaller layers"
    )


@pytest.mark.usefixtures("no_boards")
def test_weights_beyond_all_widths(fix, perceptron):
    """Nothing is quantized for what the widths alone decide."""
    device = replace(TINY.device, bram=1, lut=100)

    def narrowed(bits):
        pytest.fail(f"{bits} bits were tried")

    error = refuse(fix(perceptron), replace(TINY, device=device), narrowed, "streaming")
    assert error.remedy == (
        "no board known here was found to have room for it, nor has this one with weights of 2 "
        "bits; use fewer or smaller layers"
    )


def test_a_lower_rate(fix, perceptron):
    """Of both architectures one rate is named, which the better one reaches."""
    graph, board = fix(perceptron), find_board("icebreaker")
    error = refuse(graph, board, target_fps=1e6)
    assert error.reason.startswith("model 'perceptron' does not fit icebreaker (up5k) with --arch ")
    assert (
        "; model 'perceptron' does not reach 1e+06 inferences/s on icebreaker at 36.75 MHz (36 "
        "cycles each) with --arch engine: no array that fits takes fewer than "
    ) in error.reason
    rate = int(re.match(r"use --target-fps (\d+): ", error.remedy)[1])
    reached = plan(graph, board, target_fps=rate)
    assert error.remedy.endswith(cost(reached))
    fastest = plan(graph, board)
    assert rate == int(fastest.clock_mhz * 1e6 / fastest.interval)


def test_a_board_with_a_given_clock(fix, perceptron):
    """One that has no such clock is not named: its oscillator is divided, not multiplied."""
    graph = fix(perceptron)
    error = refuse(graph, TINY, clock_mhz=30.0)
    name = re.match(r"use --board (\w+): ", error.remedy)[1]
    assert error.remedy.endswith(cost(plan(graph, find_board(name), clock_mhz=30.0)))


def test_refusals_come_from_other_processes():
    error = ShortageError("model 'm' does not fit b", "engine", "it takes 3 of 2")
    error.remedy = "use less"
    copied = pickle.loads(pickle.dumps(error))
    assert (
        str(copied)
        == str(error)
        == ("model 'm' does not fit b with --arch engine: it takes 3 of 2; use less")
    )
    assert (copied.claim, copied.arch, copied.lack) == (error.claim, error.arch, error.lack)


def test_errors_of_other_kinds_have_no_such_remedy(fix, perceptron):
    graph, board = fix(perceptron), find_board("icebreaker")
    ways = Ways(graph, Asked(layer_counters=True))
    with pytest.raises(TargetError) as caught, remedied(lambda: ways, board):
        raise TargetError("no clock")
    assert caught.value.remedy is None


@pytest.mark.usefixtures("no_boards")
def test_without_the_host_link(fix, perceptron, monkeypatch):
    """Where a sensor and a sink leave it out."""
    graph, board = fix(perceptron), find_board("icebreaker")
    lone = replace(board, link_lut=NO_LINK.luts, link_bram=0)
    alone = plan(graph, lone, "engine", target_fps=1)
    room = alone.resources.lut / 0.95 + 10
    small = replace(board, device=replace(board.device, lut=int(room)))
    monkeypatch.setattr(remedy, "BOARDS", (board,))
    told = refuse(graph, small, arch="engine", target_fps=1, lone=True).remedy
    assert told.startswith("use --link none: "), told
    told = refuse(graph, small, arch="engine", target_fps=1).remedy
    assert "--link" not in told
