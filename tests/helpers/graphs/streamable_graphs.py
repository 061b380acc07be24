"""Random networks of every operator that can be streamed: hypothesis strategies."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nnef_hw.ir import Graph
from nnef_hw.testing import GraphBuilder

MOST_CODES = 120
"""Of an image: accelerators are simulated cycle by cycle."""

FUNCTIONS = ("relu", "tanh", "sigmoid", "abs", "neg", "hard_sigmoid", "softplus")
BORDERS = ("constant", "replicate", "reflect", "reflect-even")


@dataclass(frozen=True)
class RandomNetwork:
    """A float graph and how it is built; ``seed`` is that of its weights."""

    graph: Graph
    seed: int
    scheme: dict[str, Any]
    board: str
    forced: bool

    def __repr__(self):
        ops = [f"{n.op}{n.inputs}->{n.name}{self.graph.tensor(n.name).shape} {n.attrs}"
               for n in self.graph.nodes]  # fmt: skip
        shapes = {name: self.graph.tensor(name).shape for name in self.graph.inputs}
        head = f"{shapes} seed={self.seed} {self.scheme} {self.board} forced={self.forced}"
        return "\n  ".join([head, *ops, f"-> {self.graph.outputs}"])


@st.composite
def random_networks(draw):
    """Networks of 2 to 8 operators, with branches, images of one or two dimensions, formats.

    Of one to three inputs and any number of outputs; windows may step over pixels that none reads,
    and be padded by more on one side than on the other, and by more than they are wide.
    """
    seed = draw(st.integers(0, 1 << 16))
    net = _Network(draw, np.random.default_rng(seed))
    for _ in range(draw(st.integers(2, 8))):
        net.grow()
    scheme = {
        "activation_bits": draw(st.integers(3, 16)), "weight_bits": draw(st.integers(2, 8)),
        "symmetric": draw(st.booleans()), "per_channel": draw(st.booleans()),
        "mult_bits": draw(st.sampled_from([16, 8, 24])), "calibration": "minmax",
        "correct_bias": False, "weight_rounding": "nearest",
    }  # fmt: skip
    board = draw(st.sampled_from(["ecp5", "ice40"]))
    return RandomNetwork(net.finish(), seed, scheme, board, draw(st.booleans()))


class _Network:
    """A graph in the making; ``shapes`` are those of its results."""

    def __init__(self, draw, rng):
        self.draw, self.rng = draw, rng
        self.builder = GraphBuilder()
        self.rank = draw(st.sampled_from([2, 2, 1]))
        shape = self.image()
        self.shapes = {self.builder.input("x", shape): tuple(shape)}
        for name in ("y", "z")[: self.choice(0, 0, 0, 0, 1, 2)]:
            if self.flag():
                shape = self.image()
            self.shapes[self.builder.input(name, shape)] = tuple(shape)
        self.inputs = [*self.shapes]
        self.unread = [*self.shapes]

    def image(self):
        """Draw a shape."""
        most = self.choice(4, 4, 12)
        shape = [1, self.integer(1, most), *(self.integer(1, 8) for _ in range(self.rank))]
        while math.prod(shape) > MOST_CODES:
            shape[shape.index(max(shape))] //= 2
        return shape

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def choice(self, *values):
        return self.draw(st.sampled_from(values))

    def flag(self):
        return self.draw(st.booleans())

    def weights(self, *shape):
        return self.rng.normal(size=shape)

    def grow(self):
        """Add an operator; where it does not fit its operand, a function instead."""
        source = self.unread[-1] if self.flag() else self.choice(*self.shapes)
        recipe = self.choice(*RECIPES)
        if not recipe(self, source):
            self.add(self.choice(*FUNCTIONS), source)

    def add(self, op, *operands, shape=None, **attrs):
        """Add a node if its result is not too large."""
        known = {"shape": list(shape)} if shape is not None else {}
        if shape is not None and math.prod(shape) > MOST_CODES:
            return None
        result = self.builder.op(op, *operands, **known, **attrs)
        return self.note(result, operands)

    def note(self, result, operands):
        """Remember what a node gives, and what it reads."""
        shape = self.builder.build(result).tensor(result).shape
        self.shapes[result] = shape
        read = {name for name in operands if isinstance(name, str)}
        self.unread = [*(name for name in self.unread if name not in read), result]
        return result

    def finish(self):
        """Join what nobody reads, or give it; add a head, and perhaps outputs that are read."""
        if len(self.unread) == 1 or self.flag():
            outputs = [self.join()]
        else:
            for name in [name for name in self.inputs if name in self.unread]:
                self.add(self.choice(*FUNCTIONS), name)
            outputs = self.unread
        computed = [name for name in self.shapes if name not in self.inputs]
        for _ in range(self.choice(0, 0, 1, 2)):
            outputs = [*outputs, self.choice(*computed)]
        return self.builder.build(*outputs)

    def join(self):
        """Join what nobody reads, and add a head."""
        if len(self.unread) > 1:
            axes = list(range(2, 2 + self.rank))
            for name in list(self.unread):
                self.add("mean_reduce", name, axes=axes)
            channels = sum(self.shapes[name][1] for name in self.unread)
            shape = [1, channels, *[1] * self.rank]
            self.note(self.builder.op("concat", *self.unread, axis=1, shape=shape), self.unread)
        [last] = self.unread
        shape = self.shapes[last]
        head = self.choice("none", "none", "softmax", "argmax_reduce", "linear")
        if head == "linear" and math.prod(shape) <= 64:
            flat = self.builder.reshape(last, [1, math.prod(shape)])
            weights = self.weights(self.integer(1, 5), math.prod(shape))
            last = self.builder.op("linear", flat, weights, self.weights(1, len(weights)))
        elif head in {"argmax_reduce", "softmax"} and shape[1] > 1:
            last = self.builder.op(head, last, axes=[1])
        return last


def _window(net, extents, most):
    """Kernel, stride, dilation, padding and border of a window that fits."""
    kernel = [net.integer(1, most) for _ in extents]
    dilation = [net.integer(1, 2) for _ in extents]
    stride = [net.choice(1, 1, 2, 3, 5) for _ in extents]
    border = net.choice("constant", *BORDERS)
    most_padding = [3 if border == "constant" else min(1, n - 1) for n in extents]
    padding = [(net.integer(0, most), net.integer(0, most)) for most in most_padding]
    fits = all(
        (k - 1) * d + 1 <= n + p + q
        for n, k, d, (p, q) in zip(extents, kernel, dilation, padding, strict=True)
    )
    return (kernel, stride, dilation, padding, border) if fits else None


def _conv(net, source):
    _, channels, *extents = net.shapes[source]
    window = _window(net, extents, net.choice(3, 3, 5))
    if window is None:
        return None
    kernel, stride, dilation, padding, border = window
    groups = net.choice(1, 1, channels)
    outputs = groups * net.integer(1, max(1, net.choice(4, 4, 12) // groups))
    result = net.add(
        "conv", source, net.weights(outputs, channels // groups, *kernel),
        net.weights(1, outputs), stride=stride, dilation=dilation, padding=padding,
        border=border, groups=groups,
    )  # fmt: skip
    return net.add("relu", result) if net.flag() else result


def _pool(net, source):
    window = _window(net, net.shapes[source][2:], 3)
    if window is None:
        return None
    kernel, stride, dilation, padding, border = window
    op = net.choice("max_pool", "avg_pool", "box")
    inside = all(max(pair) < (k - 1) * d + 1 for pair, k, d in zip(padding, kernel, dilation,
                                                                  strict=True))  # fmt: skip
    if (op != "avg_pool" or inside) and net.flag():
        border = "ignore"
    return net.add(
        op, source, size=[1, 1, *kernel], stride=[1, 1, *stride], dilation=[1, 1, *dilation],
        padding=[(0, 0), (0, 0), *padding], border=border,
    )  # fmt: skip


def _deconv(net, source):
    _, channels, *extents = net.shapes[source]
    stride, kernel = ([net.integer(1, most) for _ in extents] for most in (4, 3))
    groups = net.choice(1, 1, channels)
    outputs = net.integer(1, 2)
    result = [(n - 1) * s + k for n, s, k in zip(extents, stride, kernel, strict=True)]
    padding = [(net.integer(0, n > 1), net.integer(0, n > 2)) for n in result]
    shape = [1, outputs * groups, *(n - sum(p) for n, p in zip(result, padding, strict=True))]
    return net.add(
        "deconv", source, net.weights(channels, outputs, *kernel),
        net.weights(1, outputs * groups), stride=stride, dilation=[1] * len(extents),
        padding=padding, border="constant", groups=groups, output_shape=[], shape=shape,
    )  # fmt: skip


def _function(net, source):
    return net.add(net.choice(*FUNCTIONS), source)


def _slopes(net, source):
    channels = net.shapes[source][1]
    return net.add("prelu", source, net.rng.uniform(-0.5, 1.5, size=(1, channels)))


def _with_constant(net, source):
    values = net.weights(1, net.choice(1, net.shapes[source][1]))
    operands = (source, values) if net.flag() else (values, source)
    op = net.choice("add", "sub", "mul", "max", "min")
    return net.add(op, *operands, shape=net.shapes[source])


def _with_other(net, source):
    alike = [name for name, shape in net.shapes.items() if shape == net.shapes[source]]
    return net.add(net.choice("add", "sub", "mul", "max", "min"), source, net.choice(*alike))


def _concat(net, source):
    shape = net.shapes[source]
    axis = net.integer(1, len(shape) - 1)
    fitting = [
        name for name, other in net.shapes.items()
        if [n for a, n in enumerate(other) if a != axis]
        == [n for a, n in enumerate(shape) if a != axis]
    ]  # fmt: skip
    other = net.choice(*fitting)
    extent = shape[axis] + net.shapes[other][axis]
    joined = [*shape[:axis], extent, *shape[axis + 1 :]]
    return net.add("concat", other, source, axis=axis, shape=joined)


def _slice(net, source):
    shape = net.shapes[source]
    axis = net.integer(1, len(shape) - 1)
    begin = net.integer(0, shape[axis] - 1)
    end = net.integer(begin + 1, shape[axis])
    stride = net.integer(1, 2) if axis > 1 else 1
    return net.add("slice", source, axes=[axis], begin=[begin], end=[end], stride=[stride])


def _pad(net, source):
    extents = net.shapes[source][2:]
    border = net.choice(*BORDERS)
    padding = [(net.integer(0, min(2, n - 1)), net.integer(0, min(2, n - 1))) for n in extents]
    if net.flag() and border == "constant":
        padding = [(p + 1, q + 1) for p, q in padding]
    shape = [*net.shapes[source][:2],
             *(n + p + q for n, (p, q) in zip(extents, padding, strict=True))]  # fmt: skip
    return net.add("pad", source, padding=[(0, 0), (0, 0), *padding], border=border, value=0.0,
                   shape=shape)  # fmt: skip


def _upsample(net, source):
    _, channels, *extents = net.shapes[source]
    factor = [net.integer(1, 3) for _ in extents]
    shape = [1, channels, *(n * f for n, f in zip(extents, factor, strict=True))]
    if net.flag():
        return net.add("nearest_upsample", source, factor=factor, shape=shape)
    if math.prod(factor) > 4:
        return None
    return net.add(
        "multilinear_upsample", source, factor=factor, shape=shape,
        method=net.choice("symmetric", "asymmetric", "aligned"),
        border=net.choice("constant", "replicate"),
    )  # fmt: skip


def _depth_to_space(net, source):
    channels = net.shapes[source][1]
    factors = [f for f in ([2, 2], [1, 2], [2, 1], [3, 1]) if channels % math.prod(f) == 0]
    if net.rank == 1:
        factors = [[f] for f in (2, 3, 4) if channels % f == 0]
    return net.add("depth_to_space", source, factor=net.choice(*factors)) if factors else None


def _downsample(net, source):
    factor = [net.choice(*(f for f in (1, 2, 3) if n % f == 0)) for n in net.shapes[source][2:]]
    return net.add(net.choice("nearest_downsample", "area_downsample"), source, factor=factor)


def _reduce(net, source):
    op = net.choice("sum_reduce", "mean_reduce", "max_reduce", "min_reduce")
    axes = [axis for axis in range(2, 2 + net.rank) if net.flag()]
    if op in {"sum_reduce", "mean_reduce"} and net.flag():
        axes = [1, *axes]
    return net.add(op, source, axes=axes) if axes else None


RECIPES = (
    _conv, _conv, _conv, _pool, _pool, _deconv, _function, _slopes, _with_constant, _with_other,
    _with_other, _concat, _concat, _slice, _pad, _upsample, _depth_to_space, _downsample, _reduce,
)  # fmt: skip
