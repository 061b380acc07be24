"""The Plan's cycles are the hardware's, exactly; and the hardware gives the reference's codes."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from changed_plans import with_blocks
from sweeps import alternate, few

from nnef_hw.boards import find_board
from nnef_hw.parts.images.runningpool import RunningPool
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.parts.windows.parallel import ParallelLineBuffer
from nnef_hw.streaming.beats.beats import simulate_beats
from nnef_hw.streaming.filters.conv import ConvLayer
from nnef_hw.streaming.filters.systolic import SystolicFolding
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.options import layer_options
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 4


def conv(g, x, channels, kernel, rng, *, padding=None, stride=None):
    """Add a convolution with random weights; kernels, paddings and strides per axis."""
    axes = len(kernel)
    in_channels = g.build(x).tensor(x).shape[1]
    return g.op(
        "conv", x, rng.normal(size=[channels, in_channels, *kernel]),
        rng.normal(size=[1, channels]), border="constant",
        padding=padding or [(0, 0)] * axes, stride=stride or [1] * axes, dilation=[1] * axes,
        groups=1,
    )  # fmt: skip


def linear(g, x, channels, rng):
    in_channels = g.build(x).tensor(x).shape[1]
    weights = rng.normal(size=[channels, in_channels])
    return g.op("linear", x, weights, rng.normal(size=[1, channels]))


def conv_same(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 2, 4, 5]), 5, [3, 3], rng, padding=[(1, 1), (1, 1)])
    return g.build(g.op("relu", x))


def conv_rectangle(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 3, 7, 6])
    return g.build(conv(g, x, 4, [2, 3], rng, padding=[(0, 1), (2, 0)], stride=[2, 3]))


def conv_stride_beyond_kernel(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 3, 7, 7]), 3, [2, 1], rng, stride=[5, 3])
    return g.build(conv(g, x, 4, [1, 1], rng))


def padding_beyond_kernel(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 3, 3])
    return g.build(conv(g, x, 3, [1, 2], rng, padding=[(1, 2), (2, 1)], stride=[1, 2]))


def two_linears(rng):
    g = GraphBuilder()
    x = g.op("relu", linear(g, g.input("x", [1, 12]), 7, rng))
    return g.build(linear(g, x, 3, rng))


def max_pool_overlapping(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 1, 7, 6]), 3, [2, 2], rng)
    return g.build(g.pool("max_pool", x, 3, stride=2, padding=1, border="ignore"))


def max_pool_first(rng):
    g = GraphBuilder()
    x = g.pool("max_pool", g.input("x", [1, 3, 5, 5]), 2)
    return g.build(conv(g, x, 5, [2, 2], rng))


def avg_pool(rng):
    g = GraphBuilder()
    x = g.pool("avg_pool", g.input("x", [1, 3, 5, 5]), 2, stride=1, padding=1)
    return g.build(conv(g, x, 2, [3, 3], rng, stride=[3, 3]))


def tiled_pools(rng):
    g = GraphBuilder()
    x = g.pool("max_pool", conv(g, g.input("x", [1, 1, 11, 9]), 4, [2, 2], rng), 2)
    x = g.pool("avg_pool", x, 2)
    return g.build(conv(g, x, 2, [1, 2], rng))


def avg_pool_without_borders(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 2, 5, 6]), 3, [1, 1], rng)
    return g.build(g.pool("avg_pool", x, 3, stride=2, padding=1, border="ignore"))


def tables(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2, 4, 4]))
    return g.build(g.op("sigmoid", conv(g, x, 4, [2, 2], rng)))


def classifier(rng):
    g = GraphBuilder()
    return g.build(g.op("softmax", linear(g, g.input("x", [1, 9]), 5, rng), axes=[1]))


def winner(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 2, 3, 4]), 6, [2, 2], rng)
    return g.build(g.op("argmax_reduce", x, axes=[1]))


def one_dimensional(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 3, 12]), 4, [5], rng, padding=[(2, 2)], stride=[2])
    x = g.pool("max_pool", g.op("relu", x), 2)
    return g.build(g.op("tanh", x))


def flattened(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 1, 5, 5]), 3, [2, 2], rng, stride=[2, 2])
    return g.build(linear(g, g.reshape(x, [1, 12]), 4, rng))


def one_image_row(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 2, 2, 8]), 3, [1, 3], rng, padding=[(0, 0), (0, 1)], stride=[1, 2])
    return g.build(conv(g, x, 2, [2, 2], rng))


def lenet(rng):
    g = GraphBuilder()
    x = conv(g, g.input("x", [1, 1, 14, 14]), 4, [3, 3], rng, padding=[(1, 1), (1, 1)])
    x = g.pool("max_pool", g.op("relu", x), 2)
    x = g.pool("avg_pool", g.op("relu", conv(g, x, 8, [3, 3], rng)), 2)
    x = g.op("relu", linear(g, g.reshape(x, [1, 32]), 10, rng))
    return g.build(g.op("softmax", linear(g, x, 4, rng), axes=[1]))


NETWORKS = (
    conv_same, conv_rectangle, conv_stride_beyond_kernel, padding_beyond_kernel, two_linears,
    max_pool_overlapping, max_pool_first, avg_pool, avg_pool_without_borders, tables, classifier,
    winner, one_dimensional, flattened,
)  # fmt: skip
EVERY_NETWORK = pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)


@pytest.mark.parametrize("network", alternate(NETWORKS), ids=lambda f: f.__name__)
def test_plan_of_the_solver(network, fix, simulate, rng):
    graph = fix(network(rng))
    plan = schedule(graph, find_board("ice40"))
    simulate(plan, graph).check(FRAMES)


@EVERY_NETWORK
def test_measured_interval(network, fix, rng):
    plan = schedule(fix(network(rng)), find_board("ice40"))
    times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, 12)
    spacings = np.diff(times.last_outputs)[-plan.period * (6 // plan.period) :]
    assert ceil(spacings.mean()) == plan.interval
    assert len(set(spacings.tolist())) <= plan.period


@pytest.mark.parametrize("network", alternate(NETWORKS, start=1), ids=lambda f: f.__name__)
def test_foldings_by_force(network, fix, force, simulate, rng):
    target = find_board("ecp5")
    graph = fix(network(rng))
    plan = force(schedule(graph, target), graph, target)
    simulate(plan, graph).check(FRAMES)


def pointwise(rng):
    g = GraphBuilder()
    return g.build(conv(g, g.input("x", [1, 2, 3, 3]), 6, [1, 1], rng))


@pytest.mark.usefixtures("one_code_per_beat")
@pytest.mark.parametrize("kept_passes", [1, 2])
@pytest.mark.parametrize("group_rows", [1, 3])
def test_sums_that_leave_as_fast_as_they_can(group_rows, kept_passes, fix, simulate, rng):
    graph = fix(pointwise(rng))
    plan = schedule(graph, find_board("ecp5"))
    (block,) = plan.blocks
    folding = SystolicFolding(
        rows=3, lanes=2, group_rows=group_rows, kept_passes=kept_passes, digit_bits=16,
        digit_stages=1, in_dsp=6, weight_style="block", depth=128,
    )  # fmt: skip
    block = replace(block, folding=folding)
    simulate(with_blocks(plan, [block]), graph).check(FRAMES)


PARALLEL = (conv_same, conv_rectangle, flattened, one_image_row)


@pytest.mark.usefixtures("one_code_per_beat")
@pytest.mark.parametrize("network", few(PARALLEL, PARALLEL[1:]), ids=lambda f: f.__name__)
def test_parallel_windows(network, fix, simulate, rng, monkeypatch):
    monkeypatch.setattr("nnef_hw.streaming.filters.systolic.LEAST_UTILIZATION", 0.0)
    target = find_board("ecp5")
    graph = fix(network(rng))
    plan = schedule(graph, target)
    blocks = []
    for layer, block in zip(lower(graph).layers, plan.blocks, strict=True):
        parallel = [
            option
            for option in layer_options(layer, target.device)
            if isinstance(option.buffer, ParallelLineBuffer)
        ]
        blocks.append(parallel[int(rng.integers(len(parallel)))] if parallel else block)
    assert any(isinstance(block.buffer, ParallelLineBuffer) for block in blocks)
    simulate(with_blocks(plan, blocks), graph).check(FRAMES)


@pytest.mark.verilator
@pytest.mark.parametrize("board", few(["ice40", "ecp5"], ["ecp5"]))
def test_lenet_in_verilog(board, fix, simulate, rng):
    graph = fix(lenet(rng))
    plan = schedule(graph, find_board(board))
    simulate(plan, graph, "verilator").check(20)


@pytest.mark.verilator
@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1])
def test_lenet_with_foldings_by_force(seed, fix, force, simulate, rng):
    target = find_board("ecp5")
    graph = fix(lenet(rng))
    plan = force(schedule(graph, target), graph, target)
    simulate(plan, graph, "verilator").check(6)


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("weight_bits", "activation_bits"),
    few([(1, 8), (2, 4), (5, 8), (8, 2), (4, 16)], [(1, 8), (8, 2), (4, 16)]),
)
def test_widths(weight_bits, activation_bits, fix, simulate, rng):
    graph = fix(flattened(rng), weight_bits=weight_bits, activation_bits=activation_bits)
    plan = schedule(graph, find_board("ice40"))
    simulate(plan, graph, "verilator").check(FRAMES)


def test_signs_take_one_bit_but_beside_absent_lanes(fix, rng):
    """Where lanes do not divide the channels, some weights are 0."""
    graph = fix(flattened(rng), weight_bits=1)
    seen = set()
    for layer in lower(graph).layers:
        for block in layer_options(layer, find_board("ice40").device):
            if isinstance(layer, ConvLayer) and not isinstance(block.buffer, ParallelLineBuffer):
                array = block.parts[block.worker]
                has_zeros = layer.in_channels % array.lanes > 0
                assert array.w_bits == 1 + has_zeros
                seen.add(has_zeros)
    assert seen == {False, True}


@pytest.mark.usefixtures("one_code_per_beat")
@pytest.mark.parametrize("single_port", [False, True], ids=["block", "single_port"])
def test_memories_of_running_pools(single_port, fix, simulate, rng):
    graph = fix(tiled_pools(rng))
    plan = schedule(graph, find_board("ice40"))
    pools = [block for block in plan.blocks if isinstance(block.parts[0], RunningPool)]
    assert [block.kind for block in pools] == ["running_max", "running_sum"]
    blocks = tuple(
        block.with_folding(single_port=single_port) if block in pools else block
        for block in plan.blocks
    )
    simulate(with_blocks(plan, blocks), graph).check(FRAMES)


@pytest.mark.parametrize(("board", "memories"), [("ice40", {(1, 0), (0, 1)}), ("ecp5", {(1, 0)})])
def test_where_running_pools_may_keep_their_results(board, memories, fix, rng):
    layers = [n for n in lower(fix(tiled_pools(rng))).layers if "pool" in n.node.op]
    assert len(layers) == 2
    for layer in layers:
        used = [block.resources for block in layer_options(layer, find_board(board).device)]
        assert {(resources.bram, resources.spram) for resources in used} == memories


def test_results_do_not_depend_on_the_number_of_frames(fix, rng):
    plan = schedule(fix(conv_same(rng)), find_board("ice40"))
    times = [simulate_beats(plan.blocks, plan.inputs, plan.outputs, n) for n in (2, 5)]
    assert times[1].first_inputs[:2] == times[0].first_inputs
    assert times[1].last_outputs[:2] == times[0].last_outputs


def test_a_deeper_line_buffer_is_never_slower(fix, rng):
    plan = schedule(fix(max_pool_overlapping(rng)), find_board("ice40"))
    deeper = tuple(
        block.with_folding(depth=4 * block.folding.depth)
        if isinstance(block.buffer, LineBuffer)
        else block
        for block in plan.blocks
    )
    before, after = (
        simulate_beats(blocks, plan.inputs, plan.outputs) for blocks in (plan.blocks, deeper)
    )
    assert after.interval <= before.interval
    assert after.latency <= before.latency
