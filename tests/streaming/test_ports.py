"""Networks with several inputs and outputs: codes, and cycles to the beat."""

import numpy as np
import pytest
from sweeps import alternate, few

from nnef_hw.boards import find_board
from nnef_hw.errors import UnsupportedError
from nnef_hw.streaming.beats.beats import DeadlockError, simulate_beats
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.support import check_streamable
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 3
SHAPE = [1, 2, 6, 5]


def conv(g, rng, x, outputs, inputs, kernel=3, **options):
    options = {"padding": kernel // 2, **options}
    return g.conv(x, rng.normal(size=[outputs, inputs, kernel, kernel]), **options)


def two_images_added(g, rng):
    """The second has to wait for rows of the first."""
    x, y = g.input("x", SHAPE), g.input("y", SHAPE)
    return [g.op("add", conv(g, rng, x, 2, 2), y)]


def images_of_different_sizes(g, rng):
    x, y = g.input("large", [1, 2, 8, 8]), g.input("small", [1, 3, 4, 4])
    x = conv(g, rng, x, 3, 2, kernel=2, stride=2, padding=0)
    return [g.op("concat", x, y, axis=1, shape=[1, 6, 4, 4])]


def slow_and_fast(g, rng):
    """What is fast comes to nothing by running ahead."""
    x, y = g.input("x", [1, 8, 6, 6]), g.input("y", [1, 2, 6, 6])
    slow = conv(g, rng, conv(g, rng, x, 8, 8), 2, 8)
    return [g.op("max", slow, g.op("tanh", y))]


def crossed(g, rng):
    """Each input waits for the other one: without FIFOs nothing would move."""
    x, y = g.input("x", SHAPE), g.input("y", SHAPE)
    first = g.op("add", conv(g, rng, x, 2, 2), y)
    return [first, g.op("sub", x, conv(g, rng, y, 2, 2))]


def gates(g, rng):
    """A recurrent cell, unrolled once."""
    x, h, c = g.input("x", [1, 5]), g.input("h", [1, 3]), g.input("c", [1, 3])
    opened = []
    for function in ("sigmoid", "sigmoid", "tanh", "sigmoid"):
        parts = [
            g.op("linear", v, rng.normal(size=[3, n]) / 2, rng.normal(size=[1, 3]))
            for v, n in ((x, 5), (h, 3))
        ]
        opened.append(g.op(function, g.op("add", *parts)))
    forget, enter, value, leave = opened
    c = g.op("add", g.op("mul", forget, c), g.op("mul", enter, value), name="c_next")
    return [g.op("mul", leave, g.op("tanh", c), name="h_next"), c]


def two_heads(g, rng):
    x = g.op("relu", conv(g, rng, g.input("x", SHAPE), 4, 2))
    flat = g.reshape(x, [1, 120])
    scores = g.op("linear", flat, rng.normal(size=[3, 120]) / 9, rng.normal(size=[1, 3]))
    return [g.op("softmax", scores, axes=[1]), conv(g, rng, x, 1, 4)]


def inner_tensor(g, rng):
    """An output that is read on, and twice at that."""
    x = conv(g, rng, g.input("x", SHAPE), 2, 2)
    return [x, g.op("add", g.op("tanh", x), x)]


def same_twice(g, rng):
    x = conv(g, rng, g.input("x", SHAPE), 2, 2)
    return [x, x]


def input_as_output(g, rng):
    x = g.input("x", [1, 6])
    return [g.op("linear", x, rng.normal(size=[4, 6]), 0.0), g.reshape(x, [1, 6, 1])]


def nothing_in_common(g, rng):
    """Two networks side by side, one much faster."""
    x, y = g.input("x", [1, 6, 5, 5]), g.input("y", [1, 3])
    return [conv(g, rng, x, 6, 6), g.op("tanh", y)]


def reshaped_at_the_borders(g, rng):
    x, y = g.input("x", [1, 12]), g.input("y", [1, 1, 12])
    sums = g.op("add", g.reshape(x, [1, 1, 3, 4]), g.reshape(y, [1, 1, 3, 4]))
    result = conv(g, rng, sums, 1, 1)
    return [g.reshape(result, [1, 1, 12]), g.op("neg", result)]


def output_read_in_another_order(g, rng):
    """The host reshapes its copy, a layer the one that is read on."""
    x = g.op("tanh", g.input("x", [1, 2, 2, 3]))
    flat = g.reshape(x, [1, 12])
    return [flat, g.op("neg", flat)]


NETWORKS = (
    two_images_added, images_of_different_sizes, slow_and_fast, crossed, gates, two_heads,
    inner_tensor, same_twice, input_as_output, nothing_in_common, reshaped_at_the_borders,
    output_read_in_another_order,
)  # fmt: skip


@pytest.fixture
def make(fix, rng):
    """Return ``make(network)``: it, quantized."""

    def make(network):
        g = GraphBuilder()
        return fix(g.build(*network(g, rng)))

    return make


@pytest.mark.parametrize("network", alternate(NETWORKS), ids=lambda f: f.__name__)
def test_plan_of_the_solver(network, make, simulate):
    graph = make(network)
    simulate(schedule(graph, find_board("ecp5")), graph).check(FRAMES)


# Crossed inputs run in test_verilog_gives_the_same.
@pytest.mark.parametrize(
    "network", few(NETWORKS, set(NETWORKS[1::2]) - {crossed}), ids=lambda f: f.__name__
)
def test_foldings_by_force(network, make, force, simulate):
    graph, target = make(network), find_board("ecp5")
    plan = force(schedule(graph, target), graph, target)
    simulate(plan, graph).check(FRAMES)


@pytest.mark.verilator
def test_verilog_gives_the_same(make, simulate):
    graph = make(crossed)
    simulate(schedule(graph, find_board("ecp5")), graph, "verilator").check(FRAMES)


def test_a_lone_port_has_no_more_than_a_letter(make):
    plan = schedule(make(inner_tensor), find_board("ecp5"))
    assert [port.name for port in plan.inputs] == ["i"]
    plan = schedule(make(two_images_added), find_board("ecp5"))
    assert [port.name for port in (*plan.inputs, *plan.outputs)] == ["i_x", "i_y", "o"]


def test_ports_are_named_after_the_graphs_tensors(fix, rng):
    g = GraphBuilder()
    inputs = [g.input(name, [1, 3]) for name in ("a/b", "a__b", "é", "ö")]
    outputs = [g.op("add", inputs[n], inputs[n + 1]) for n in (0, 2)]
    network = lower(fix(g.build(*outputs)))
    assert [port.name for port in network.inputs] == ["i_a_b", "i_a_b_2", "i", "i_2"]


@pytest.mark.parametrize(("board", "least"), [("icebreaker", 0), ("ecp5", 2)])
def test_an_input_that_can_wait_needs_no_fifo(board, least, make):
    """However far it might come ahead; where wires are long, two registers stop them."""
    # what joins them is a sum, a maximum, and a concatenation, which takes one after the other
    networks = (two_images_added, least), (slow_and_fast, least), (images_of_different_sizes, 0)
    for network, depth in networks:
        plan = schedule(make(network), find_board(board))
        assert {source.depth for source in plan.blocks[-1].sources} == {depth}


@pytest.mark.parametrize(("depth", "is_enough"), [(60, True), (5, False)])
def test_fifos_do_not_grow_with_the_frames(depth, is_enough, make):
    """Rows of the convolution, of less than a frame; in block RAM, what one of them holds."""
    plan = schedule(make(crossed), find_board("ecp5"))
    depths = [source.depth for block in plan.blocks for source in block.sources if source.depth]
    assert depths == [2, 514, 514, 2]
    blocks = [
        block.with_fifos([min(depth, before) for before in block.fifos]) for block in plan.blocks
    ]
    if is_enough:
        times = simulate_beats(blocks, plan.inputs, plan.outputs)
        assert (times.interval, times.latency) == (plan.interval, plan.latency)
    else:
        with pytest.raises(DeadlockError):
            simulate_beats(blocks, plan.inputs, plan.outputs)


def test_interval_is_that_of_the_slowest_output(make):
    plan = schedule(make(nothing_in_common), find_board("ecp5"))
    times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, 6)
    assert plan.interval == max(block.cycles for block in plan.blocks)
    assert set(np.diff(times.last_outputs)) == {plan.interval}


def unread_input():
    g = GraphBuilder()
    x, _ = g.input("x", [1, 3]), g.input("spare", [1, 3])
    return g.build(g.op("tanh", x))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (unread_input, r"input 'spare' is never read; remove it from the model"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_remains_impossible_is_refused(network, message):
    error, *_ = check_streamable(network())
    with pytest.raises(UnsupportedError, match=message):
        raise error
