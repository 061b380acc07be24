import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.resources import LUT_SHARE
from nnef_hw.streaming.search import search
from nnef_hw.streaming.search.options import layer_options
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

BOARDS = pytest.mark.parametrize("board", ["ice40", "ecp5"])


def classifier(rng, *, width=4, size=10):
    """Return two convolutions, pools and a linear layer."""
    g = GraphBuilder("classifier")
    x = g.conv(g.input("x", [1, 1, size, size]), rng.normal(size=[width, 1, 3, 3]), padding=1)
    x = g.pool("max_pool", g.op("relu", x), 2)
    x = g.conv(x, rng.normal(size=[2 * width, width, 3, 3]))
    pixels = (size // 2 - 2) ** 2
    x = g.reshape(g.op("relu", x), [1, 2 * width * pixels])
    return g.build(g.op("linear", x, rng.normal(size=[5, 2 * width * pixels]), np.zeros((1, 5))))


@BOARDS
@pytest.mark.parametrize("width", [1, 4, 7])
def test_stays_within_the_budget(width, board, fix, rng):
    target = find_board(board)
    plan = schedule(fix(classifier(rng, width=width)), target)
    used, device = plan.resources, target.device
    assert used.lut <= LUT_SHARE * device.lut
    assert used.dsp <= device.dsp
    assert used.bram <= device.bram
    assert plan.link.bram >= target.link_bram


@BOARDS
def test_numbers_of_a_plan_agree(board, fix, rng):
    graph = fix(classifier(rng))
    plan = schedule(graph, find_board(board))
    layers = lower(graph).layers
    assert [block.name for block in plan.blocks] == [layer.name for layer in layers]
    convolutions = [block for block in plan.blocks if block.kind in {"conv", "dot"}]
    assert plan.multipliers == sum(block.multipliers for block in convolutions)
    # Output elements x kernel volume: 10x10, 3x3 and 1x1 pixels.
    assert plan.macs == 100 * 4 * 9 + 9 * 8 * 36 + 5 * 72
    assert plan.mac_utilization == plan.macs / (plan.interval * plan.multipliers)
    assert plan.interval >= max(
        block.macs / (block.multipliers * block.folding.products_per_multiplier)
        for block in convolutions
    )
    assert plan.latency >= plan.inputs[0].beats


def test_every_option_computes_all_of_the_layer(fix, rng):
    device = find_board("ecp5").device
    for layer in lower(fix(classifier(rng, width=3, size=6))).layers:
        for block in layer_options(layer, device):
            if block.buffer is None:
                continue
            assert block.cycles >= layer.image.beats
            if isinstance(block.buffer, LineBuffer):
                assert block.buffer.depth & (block.buffer.depth - 1) == 0
                assert block.buffer.depth >= block.buffer.window.min_depth
            if block.kind == "conv":
                window, folding = block.buffer.window, block.folding
                assert window.passes * folding.rows >= layer.out_channels
                lanes = folding.lanes // (window.taps if folding.parallel else 1)
                assert window.channel_blocks * lanes >= layer.in_channels
                assert 1 <= folding.group_rows <= folding.rows
                products = block.multipliers * block.folding.products_per_multiplier
                assert block.cycles * products >= block.macs


def test_a_bigger_board_is_no_slower(fix, rng):
    graph = fix(classifier(rng))
    small, big = (schedule(graph, find_board(name)) for name in ("ice40", "ecp5"))
    assert big.interval <= small.interval


def test_fewer_resources_are_no_faster(fix, rng):
    graph = fix(classifier(rng))
    target = find_board("ecp5")
    half = replace(target, device=replace(target.device, lut=3000, dsp=2))
    few, many = schedule(graph, half), schedule(graph, target)
    assert few.interval > many.interval
    assert few.multipliers < many.multipliers
    assert few.resources.dsp <= 2


def test_target_fps_takes_the_smallest_design_that_reaches_it(fix, rng):
    graph, target = fix(classifier(rng)), find_board("ecp5")
    fastest = schedule(graph, target)
    rate = fastest.clock_mhz * 1e6 / fastest.interval
    plans = [schedule(graph, target, target_fps=rate / n) for n in (2, 8, 40)]
    for divisor, plan in zip((2, 8, 40), plans, strict=True):
        assert plan.clock_mhz * 1e6 / plan.interval >= rate / divisor
    luts = [plan.resources.lut for plan in (fastest, *plans)]
    multipliers = [plan.multipliers for plan in (fastest, *plans)]
    assert luts == sorted(luts, reverse=True)
    assert multipliers == sorted(multipliers, reverse=True)
    assert multipliers[-1] < multipliers[0]


def test_a_clock_changes_no_cycles(fix, rng):
    graph, target = fix(classifier(rng)), find_board("ice40")
    slow, usual = schedule(graph, target, clock_mhz=12.0), schedule(graph, target)
    assert slow.dumps() == replace(usual, clock_mhz=12.0).dumps()


def test_the_same_plan_every_time(fix, rng):
    graph, target = fix(classifier(rng)), find_board("ice40")
    assert schedule(graph, target).dumps() == schedule(graph, target).dumps()


def layered_perceptron(rng, sizes):
    g = GraphBuilder("layered_perceptron")
    x = g.input("x", [1, sizes[0]])
    for inputs, outputs in pairwise(sizes):
        x = g.op("relu", x) if inputs != sizes[0] else x
        weights = rng.normal(size=[outputs, inputs]) / np.sqrt(inputs)
        x = g.op("linear", x, weights, rng.normal(size=[1, outputs]))
    return g.build(g.op("softmax", x, axes=[1]))


@pytest.mark.parametrize(
    ("sizes", "block_rams"),
    # All weights at 8 bits take 43 full ones, and with the host's link 50 are the least.
    [((240, 256, 128, 29), 50)]
    # 180; an 85F has 208.
    + [pytest.param((480, 512, 256, 128, 29), n, marks=pytest.mark.nightly) for n in (190, 208)],
)
def test_a_network_that_fits_by_few_block_rams_is_found(sizes, block_rams, fix, rng):
    """Arrays of few multipliers take block RAMs that wider ones do not, for the same weights."""
    graph, board = fix(layered_perceptron(rng, sizes)), find_board("ulx3s_85f")
    target = replace(board, device=replace(board.device, bram=block_rams))
    plan = schedule(graph, target)
    assert plan.resources.bram <= block_rams
    assert plan.resources.lut <= target.device.lut * target.device.stream_share


def test_an_unreachable_rate_names_the_rate_asked_for(fix, rng):
    graph, target = fix(classifier(rng)), find_board("ice40")
    at = f"on icebreaker at {target.clock_mhz:g} MHz"
    message = f"model 'classifier' does not reach 1e+06 inferences/s {at}"
    with pytest.raises(TargetError, match=re.escape(message)) as caught:
        schedule(graph, target, target_fps=1e6)
    cycles = re.search(
        r"no foldings that fit together take fewer than ([\d,]+) ", str(caught.value)
    )
    clock = target.clock_mhz * 1e6
    rate = clock / int(cycles[1].replace(",", ""))
    assert schedule(graph, target, target_fps=rate / 2).interval <= clock / (rate / 2)
    with pytest.raises(TargetError, match="no foldings that fit together take fewer"):
        schedule(graph, target, target_fps=rate + 1)


def pointwise_and_depthwise(rng, *, channels=128, size=6):
    g = GraphBuilder("separable")
    x = g.input("x", [1, channels, size, size])
    x = g.conv(x, rng.normal(size=[channels, channels, 1, 1]))
    x = g.conv(x, rng.normal(size=[channels, 1, 3, 3]), padding=1, groups=channels)
    return g.build(g.conv(x, rng.normal(size=[channels, channels, 1, 1])))


@pytest.mark.parametrize(("block_rams", "reached"), [(23, True), (22, False)])
def test_layers_without_cycles_to_lose_get_fifos_or_it_is_said(block_rams, reached, fix, rng):
    """A depthwise layer takes nothing for a while at the end of a frame."""
    graph, board = fix(pointwise_and_depthwise(rng)), find_board("ulx3s_85f")
    target = replace(board, device=replace(board.device, lut=24_000, bram=block_rams))
    wanted = 17_300

    def solve():
        return schedule(graph, target, target_fps=target.clock_mhz * 1e6 / wanted)

    if reached:
        plan = solve()
        assert plan.interval <= wanted
        assert any(source.depth for block in plan.blocks for source in block.sources)
    else:
        message = r"foldings of ([\d,]+) .* layers wait for each other: .* takes ([\d,]+) cycles"
        with pytest.raises(TargetError, match="layers wait") as caught:
            solve()
        found = re.search(message, str(caught.value))
        least, fastest = (int(number.replace(",", "")) for number in found.groups())
        assert least <= wanted < fastest
        clock = target.clock_mhz * 1e6
        rate = int(clock / fastest)
        assert schedule(graph, target, target_fps=rate).interval <= clock / rate


def test_all_dsp_blocks_of_a_large_device_are_used(fix, rng):
    g = GraphBuilder("two_sizes")
    x = g.conv(g.input("x", [1, 128, 4, 6]), rng.normal(size=[128, 128, 1, 1]))
    x = g.conv(x, rng.normal(size=[128, 128, 1, 1]))
    graph = fix(g.build(g.conv(x, rng.normal(size=[48, 128, 1, 1]))))
    target = find_board("ulx3s_85f")
    plan = schedule(graph, target, target_fps=target.clock_mhz * 1e6 / (24 * 128))
    assert plan.resources.dsp == plan.multipliers == 156


@pytest.mark.parametrize(
    ("interval", "least", "halfway", "limit"),
    [
        (1100, 800, True, 909),  # in proportion
        (2000, 800, True, 900),  # halfway to the least
        (2000, 800, False, 800),
        (1001, 800, True, 999),
        (2000, 1000, False, 999),  # the least has been tried: nothing fits
        (1100, None, True, 909),
    ],
)
def test_faster_layers_are_tried_step_by_step(interval, least, halfway, limit):
    assert search.faster_limit(1000, interval, 1000, least, halfway=halfway) == limit


@pytest.mark.parametrize(("used", "least", "most"), [(120, 20, 50), (170, 20, 50), (200, 200, 300)])
def test_the_last_block_rams_are_worth_more_luts(used, least, most):
    """What else a block RAM's place in a nearly full device costs is clock."""
    device = find_board("ulx3s_85f").device
    luts, brams = np.array([0, 0, 1]) / device.lut, np.array([0, 1, 0]) / device.bram
    costs = search.fullness(0.75 + luts, used / device.bram + brams, long_wires=True)
    assert least < (costs[1] - costs[0]) / (costs[2] - costs[0]) < most
