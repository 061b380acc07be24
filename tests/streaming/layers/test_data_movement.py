"""Operators that move codes, and what becomes of them: codes and cycles of accelerators."""

import numpy as np
import pytest
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.ir import parse_graph
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 3
SHAPE = [1, 3, 4, 5]


def weights(rng, *shape):
    return rng.normal(size=shape)


def named(network, name):
    network.__name__ = name
    return network


def between_functions(op, shape=None, **attrs):
    """A mover between two tables, so that neither end is the border."""

    def network(rng):
        g = GraphBuilder()
        x = g.op("tanh", g.input("x", shape or SHAPE))
        return g.build(g.op("sigmoid", g.op(op, x, **attrs)))

    return named(network, f"{op}_{'_'.join(str(value) for value in attrs.values())}")


def sliced(axis, begin, end):
    return between_functions("slice", axes=[axis], begin=[begin], end=[end], stride=[1])


def padded(rows, columns, value=0.0):
    padding = [(0, 0), (0, 0), rows, columns]
    return between_functions("pad", padding=padding, border="constant", value=value)


def upsampled(rows, columns):
    return between_functions("nearest_upsample", factor=[rows, columns])


def transposed(*axes, shape=SHAPE):
    return between_functions("transpose", shape=shape, axes=list(axes))


def transposed_borders(rng):
    """Rows and columns change places at the input, and a signal's channels at the output."""
    g = GraphBuilder()
    x = g.op("transpose", g.input("x", [1, 2, 3, 4]), axes=[0, 1, 3, 2])
    y = g.reshape(g.conv(x, weights(rng, 3, 2, 4, 1)), [1, 3, 3])
    return g.build(g.op("transpose", y, axes=[0, 2, 1]))


def flattened_and_back(rng):
    """Elements in the order of the tensor between functions of a flat one: two frame memories."""
    g = GraphBuilder()
    x = g.reshape(g.pool("max_pool", g.input("x", [1, 2, 4, 6]), 2), [1, 12])
    y = g.op("softmax", x, axes=[1])
    y = g.reshape(y, [1, 2, 2, 3])
    return g.build(g.conv(y, weights(rng, 2, 2, 2, 2)))


def order_kept(rng):
    """One channel that becomes rows: the same stream, at the output too."""
    g = GraphBuilder()
    x = g.op("transpose", g.op("tanh", g.input("x", [1, 1, 3, 4])), axes=[0, 3, 2, 1])
    y = g.conv(x, weights(rng, 2, 4, 1, 1))
    y = g.op("tanh", g.conv(y, weights(rng, 1, 2, 1, 1)))
    return g.build(g.op("transpose", y, axes=[0, 3, 2, 1]))


def split_and_joined(axis):
    """Two parts of unequal extents; one is convolved, the other goes past it."""

    def network(rng):
        g = GraphBuilder()
        x = g.input("x", SHAPE)
        extent = SHAPE[axis]
        attrs = {"axes": [axis], "stride": [1]}
        first = g.op("slice", x, begin=[0], end=[2], **attrs)
        second = g.op("slice", x, begin=[2], end=[extent], **attrs)
        channels = 2 if axis == 1 else 3
        y = g.conv(first, weights(rng, channels, channels, 3, 3), padding=1)
        return g.build(g.op("tanh", g.op("concat", second, y, axis=axis, shape=SHAPE)))

    return named(network, f"split_and_joined_along_{axis}")


def strided_slice(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2, 7, 6]))
    x = g.op("slice", x, axes=[1, 2, 3], begin=[1, 1, 0], end=[2, 6, 6], stride=[1, 2, 3])
    return g.build(g.op("tanh", x))


def depth_to_space(rows, columns):
    return between_functions(
        "depth_to_space", [1, 2 * rows * columns, 3, 4], factor=[rows, columns]
    )


def deconv(kernel, stride, padding, extents=None, *, groups=1, dilation=1):
    """Transposed convolution, batch normalization and ReLU, all in one array."""

    def network(rng):
        g = GraphBuilder()
        channels = 2 * groups
        x = g.input("x", [1, channels, 3, 4])
        y = g.op(
            "deconv", x, weights(rng, channels, 3, *kernel), rng.normal(size=[1, 3 * groups]),
            border="constant", padding=[padding] * 2 if padding else [], stride=[stride] * 2,
            dilation=[dilation] * 2, output_shape=[], groups=groups,
            shape=[1, 3 * groups, *(extents or deconv_extents(kernel, stride, padding, dilation))],
        )  # fmt: skip
        y = g.op("mul", y, rng.uniform(0.5, 2, size=[1, 3 * groups]))
        return g.build(g.op("relu", y))

    return named(network, f"deconv_{kernel}_{stride}_{padding}_{groups}_{dilation}")


def deconv_extents(kernel, stride, padding, dilation):
    return [
        (n - 1) * stride + (k - 1) * dilation + 1 - sum(padding)
        for n, k in zip((3, 4), kernel, strict=True)
    ]


def aligned(rng):
    """Interpolation with weights of each place: transpositions and convolutions between them."""
    g = GraphBuilder()
    factor = {"factor": [2, 3], "method": "aligned", "border": "constant"}
    return g.build(g.op("multilinear_upsample", g.input("x", [1, 2, 3, 2]), **factor))


def interpolated(rng):
    """Borders that continue the image, depthwise convolutions for each phase, depth to space."""
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2, 2, 3]))
    factor = {"factor": [2, 1], "method": "symmetric", "border": "replicate"}
    return g.build(g.op("multilinear_upsample", x, **factor))


def reflected(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 4, 5])
    return g.build(g.conv(x, weights(rng, 3, 2, 3, 3), padding=1, border="reflect"))


def slopes_for_each_channel(rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 3, 4]), weights(rng, 3, 2, 1, 1))
    return g.build(g.op("prelu", x, np.array([[0.2, -0.5, 0.9]])))


def reduced(op, axes):
    def network(rng):
        g = GraphBuilder()
        x = g.op("tanh", g.input("x", [1, 3, 4, 5]))
        return g.build(g.op("tanh", g.op(op, x, axes=axes)))

    return named(network, f"{op}_{axes}")


def sum_pool(rng):
    g = GraphBuilder()
    x = g.pool("box", g.input("x", [1, 3, 5, 5]), 3, stride=2, padding=1, border="ignore")
    return g.build(g.op("tanh", x))


def one_after_itself(rng):
    """Two items wait for the other operand, which is the same stream."""
    g = GraphBuilder()
    x = g.op("neg", g.input("x", [1, 2, 1, 1]))
    return g.build(g.op("tanh", g.op("concat", x, x, axis=2, shape=[1, 2, 2, 1])))


def swapped(op):
    """One code of a fork waits for the next one."""

    def network(rng):
        g = GraphBuilder()
        x = g.op("neg", g.input("x", [1, 2, 1, 1]))
        parts = [g.op("slice", x, axes=[1], begin=[n], end=[n + 1], stride=[1]) for n in (1, 0)]
        attrs = {"axis": 1, "shape": [1, 2, 1, 1]} if op == "concat" else {}
        return g.build(g.op("tanh", g.op(op, *parts, **attrs)))

    return named(network, f"{op}_of_swapped_channels")


def unstacked_and_stacked(axis, new_axis):
    """Queries and keys taken apart along an axis, and joined the other way round along another."""

    def network(rng):
        shape, part = [3, 2, 4, 5], [2, 4, 5]
        shape.insert(axis, shape.pop(0))
        stacked = [*part[:new_axis], 2, *part[new_axis:]]
        return parse_graph(f"""float graph net {{
          input x: scalar{shape}
          f: scalar{shape} = tanh(x)
          q: scalar{part}, k: scalar{part}, v: scalar{part} = unstack(f, axis={axis})
          s: scalar{part} = add(q, k)
          t: scalar{stacked} = stack(v, s, axis={new_axis})
          y: scalar{stacked} = sigmoid(t)
          output y
        }}""")

    return named(network, f"unstacked_{axis}_and_stacked_{new_axis}")


def of_a_signal(rng):
    """Rank 3: all of them along one axis."""
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2, 6]))
    x = g.op("slice", x, axes=[2], begin=[1], end=[5], stride=[1])
    x = g.op("nearest_upsample", x, factor=[3])
    x = g.op("pad", x, padding=[(0, 0), (0, 0), (2, 1)], border="constant", value=0.0)
    x = g.op("nearest_downsample", x, factor=[5])
    return g.build(g.conv(x, weights(rng, 3, 2, 2)))


def encoder_and_decoder(rng):
    """A small U-Net: down, up, and what went past it."""
    g = GraphBuilder()
    x = g.op("relu", g.conv(g.input("x", [1, 2, 6, 6]), weights(rng, 3, 2, 3, 3), padding=1))
    y = g.conv(g.pool("max_pool", x, 2), weights(rng, 4, 3, 3, 3), padding=1)
    y = g.op("nearest_upsample", g.op("relu", y), factor=[2, 2])
    joined = g.op("concat", x, y, axis=1, shape=[1, 7, 6, 6])
    return g.build(g.conv(joined, weights(rng, 2, 7, 1, 1)))


def padded_first(rng):
    """A border ahead of every image that nothing but an average may look at."""
    g = GraphBuilder()
    padding = [(0, 0), (0, 0), (2, 1), (1, 3)]
    x = g.op("pad", g.input("x", [1, 1, 3, 3]), padding=padding, border="constant", value=0.0)
    y = g.op("nearest_upsample", x, factor=[1, 2])
    return g.build(g.op("mul", y, y))


UPWARDS = deconv((1, 2), 4, (0, 0))
SLOW = {UPWARDS, encoder_and_decoder}
"""Of these networks every part is in another one that is small."""
NETWORKS = (
    sliced(1, 1, 2), sliced(2, 1, 3), sliced(3, 2, 5), strided_slice,
    padded((1, 1), (1, 1)), padded((0, 2), (0, 0), -0.7), upsampled(2, 2), upsampled(1, 3),
    transposed(0, 2, 3, 1), transposed(0, 2, 1, shape=[1, 4, 5]),
    transposed_borders, flattened_and_back, order_kept,
    split_and_joined(1), split_and_joined(2), depth_to_space(2, 2), depth_to_space(3, 1),
    UPWARDS, deconv((2, 2), 2, None, (6, 8), groups=2), deconv((3, 3), 2, (1, 1), dilation=2),
    aligned, interpolated, reflected, slopes_for_each_channel, sum_pool,
    reduced("min_reduce", [2, 3]), reduced("mean_reduce", [1, 3]),
    one_after_itself, swapped("concat"), swapped("sub"), encoder_and_decoder, padded_first,
    unstacked_and_stacked(0, 1), unstacked_and_stacked(3, 3),
)  # fmt: skip
# The same parts at other extents.
MORE_NETWORKS = (
    sliced(1, 0, 1), sliced(1, 2, 3), sliced(3, 0, 4), padded((0, 0), (3, 0)), upsampled(3, 1),
    transposed(0, 3, 1, 2), split_and_joined(3), depth_to_space(1, 2),
    deconv((3, 3), 2, (1, 0)), deconv((4, 4), 2, (1, 1)), deconv((2, 2), 2, (0, 0)),
    deconv((3, 2), 1, (0, 0)), deconv((5, 4), 3, (2, 1)), reduced("sum_reduce", [2, 3]),
    unstacked_and_stacked(1, 2), unstacked_and_stacked(2, 0),
)  # fmt: skip
CASES = [("ecp5", network) for network in NETWORKS] + [("ice40", of_a_signal)]
MORE_CASES = [("ecp5", network) for network in (*MORE_NETWORKS, of_a_signal)]
MORE_CASES += [("ice40", network) for network in (strided_slice, upsampled(2, 2))]


@pytest.mark.parametrize(
    ("board", "network"),
    few([*CASES, *MORE_CASES], [case for case in CASES if case[1] not in SLOW]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_codes_and_cycles(board, network, fix, simulate, rng):
    graph = fix(network(rng))
    plan = schedule(graph, find_board(board))
    simulate(plan, graph).check(FRAMES)


def test_a_transposition_that_keeps_the_order_is_no_hardware(fix, rng):
    plan = schedule(fix(order_kept(rng)), find_board("ecp5"))
    assert [block.kind for block in plan.blocks] == ["table", "conv", "conv", "table"]


@pytest.mark.usefixtures("one_code_per_beat")
@pytest.mark.parametrize("board", ["icebreaker", "ulx3s_85f"])
@pytest.mark.parametrize(
    ("network", "bits"),
    [(padded((1, 1), (1, 1)), 8), (sliced(2, 1, 3), 8), (upsampled(2, 2), 51)],
    ids=["pad", "slice", "upsample"],
)
def test_registers_are_the_counters(network, bits, board, fix, rng):
    moves = {"pad", "slice", "upsample"}
    [block] = (b for b in schedule(fix(network(rng)), find_board(board)).blocks if b.kind in moves)
    assert (block.resources.ff, block.resources.bram) == (bits, bool(block.parts[0].memories))


def wide_moves(rng):
    """A U-Net of 8 channels: upsampled, joined, taken apart and padded between convolutions."""
    g = GraphBuilder()
    x = g.op("relu", g.conv(g.input("x", [1, 4, 6, 6]), weights(rng, 8, 4, 1, 1)))
    y = g.op("relu", g.conv(g.pool("max_pool", x, 2), weights(rng, 8, 8, 1, 1)))
    y = g.op("nearest_upsample", y, factor=[2, 2])
    joined = g.op("concat", x, y, axis=1, shape=[1, 16, 6, 6])
    part = g.op("slice", joined, axes=[1], begin=[4], end=[12], stride=[1])
    part = g.op("slice", part, axes=[2], begin=[1], end=[6], stride=[1])
    padding = [(0, 0), (0, 0), (1, 0), (0, 1)]
    part = g.op("pad", part, padding=padding, border="constant", value=0.5)
    return g.build(g.conv(g.op("tanh", part), weights(rng, 2, 8, 1, 1)))


def wide_ends(rng):
    """Constants of every kind, pixels of a pixel's channels, axes that change places, an index."""
    g = GraphBuilder()
    x = g.op("relu", g.conv(g.input("x", [1, 4, 6, 4]), weights(rng, 24, 4, 1, 1)))
    x = g.op("tanh", g.op("add", x, weights(rng, 1, 24, 6, 4)))
    x = g.op("transpose", g.op("max", x, weights(rng, 1, 24, 1, 1)), axes=[0, 1, 3, 2])
    x = g.op("depth_to_space", x, factor=[2, 1])
    return g.build(g.op("argmax_reduce", x, axes=[1]))


def wide_state(rng):
    """A state of 16 channels that is added to what comes, and begins with unequal values."""
    g = GraphBuilder()
    state = g.state("h", weights(rng, 1, 16, 6, 6) / 4)
    x = g.op("relu", g.conv(g.input("x", [1, 4, 6, 6]), weights(rng, 16, 4, 1, 1)))
    total = g.op("tanh", g.op("add", x, state))
    g.update("h", total)
    return g.build(g.conv(total, weights(rng, 2, 16, 1, 1)))


ENDS = {"add", "max", "depth_to_space", "transpose", "argmax_reduce"}


@pytest.mark.parametrize(
    ("network", "cycles", "lanes", "moves"),
    few(
        [
            (wide_moves, 420, 2, {"nearest_upsample", "concat", "slice", "pad"}),
            (wide_moves, 280, 4, {"nearest_upsample", "concat", "slice", "pad"}),
            (wide_ends, 420, 2, ENDS),
            (wide_ends, 280, 3, ENDS),
            (wide_state, 420, 2, {"add", "update"}),
            (wide_state, 280, 4, {"add", "update"}),
        ],
        [
            (wide_moves, 420, 2, {"nearest_upsample", "concat", "slice", "pad"}),
            (wide_ends, 280, 3, ENDS),
            (wide_state, 280, 4, {"add", "update"}),
        ],
    ),
)
def test_moves_of_several_codes_per_beat(network, cycles, lanes, moves, fix, simulate, rng):
    """576 codes of an image within fewer cycles."""
    target = find_board("ecp5")
    graph = fix(network(rng))
    plan = schedule(graph, target, target_fps=target.clock_mhz * 1e6 / cycles)
    blocks = [block for block in plan.blocks if block.op in moves]
    assert moves == {block.op for block in blocks}
    assert all(block.layer.operand_lanes >= lanes for block in blocks)
    assert plan.interval <= cycles
    simulate(plan, graph).check(FRAMES, stall=0.3)
