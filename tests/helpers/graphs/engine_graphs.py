"""Random small networks that the shared engine runs, and its plans for them."""

from dataclasses import replace

import numpy as np

from nnef_hw.boards import find_board
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.program.design import Design
from nnef_hw.errors import NnefHwError
from nnef_hw.testing import GraphBuilder

BOARD = find_board("ulx3s_85f")


def board_with(dsp):
    """Return the board with so many DSP blocks; a multiplier makes two products if they are few."""
    return replace(BOARD, device=replace(BOARD.device, dsp=dsp))


def planned(graph, rows=4, lanes=4, ring_words=0, board=BOARD, results=1, **options):
    """Return the plan of a graph on an array of some size."""
    network, shape = lower(graph, board.device), Shape(rows, lanes, results=results)
    design = Design(network, shape, board.device, ring_words, **options)
    return EnginePlan.of(design, board, None)


def grown(rng, operators, products=()):
    """Return a float graph of random operators: as many, or a number between two."""
    network = EngineNetwork(rng, products)
    for _ in range(operators if isinstance(operators, int) else int(rng.integers(*operators))):
        network.grow()
    return network.finish()


def first_that_fits(attempt):
    """Return the result of the first attempt that is not refused and has one."""
    while True:
        try:
            if (found := attempt()) is not None:
                return found
        except NnefHwError:
            pass


class EngineNetwork:
    """A float graph in the making, of random operators; ``rng`` chooses.

    ``products`` are other operators of two tensors than sums.
    """

    def __init__(self, rng, products=()):
        self.rng = rng
        self.products = products
        self.builder = GraphBuilder("net")
        self.shape = (int(rng.integers(1, 7)), int(rng.integers(2, 9)), int(rng.integers(1, 9)))
        self.name = self.builder.input("x", (1, *self.shape))
        self.kept = []
        if rng.random() < 0.3:
            self.kept.append((self.builder.input("y", (1, *self.shape)), self.shape))
            self._sum()

    def grow(self):
        """Add an operator, and remember its result for sums to come."""
        kinds = [
            self._conv, self._conv, self._depthwise, self._pool, self._sum, self._function,
            self._move, self._move,
        ]  # fmt: skip
        kinds[self.rng.integers(len(kinds))]()
        self.kept.append((self.name, self.shape))

    def finish(self):
        """Return the graph, with a linear layer and perhaps an argmax or a softmax at the end."""
        if self.rng.random() < 0.5:
            channels = int(np.prod(self.shape))
            flat = self.builder.reshape(self.name, [1, channels])
            outputs = int(self.rng.integers(1, 12))
            weights = self.rng.normal(size=(outputs, channels))
            bias = self.rng.normal(size=(1, outputs))
            self.name = self.builder.op("linear", flat, weights, bias)
            ends = [None, "softmax", "argmax_reduce"]
            end = ends[self.rng.integers(len(ends))]
            if end is not None and outputs > 1:
                self.name = self.builder.op(end, self.name, axes=[1])
        others = []
        if self.kept and self.rng.random() < 0.4:
            inputs = [name for name, _ in self.kept if name not in "xy"]
            others = inputs[: int(self.rng.integers(1, 3))]
        return self.builder.build(self.name, *(x for x in others if x != self.name))

    def _window(self):
        """Kernel, stride, dilation and padding, per axis, that fit the image."""
        axes = []
        for extent in self.shape[1:]:
            size = int(self.rng.integers(1, 5))
            dilation = int(self.rng.integers(1, 3)) if self.rng.random() < 0.3 else 1
            padding = [int(self.rng.integers(0, size + 1)) for _ in range(2)]
            reach = (size - 1) * dilation + 1
            if reach > extent + sum(padding):
                padding[1] += reach - extent - sum(padding)
            stride = int(self.rng.integers(1, 4))
            count = (extent + sum(padding) - reach) // stride + 1
            axes.append((size, stride, dilation, tuple(padding), count))
        return [list(values) for values in zip(*axes, strict=True)]

    def _filter(self, outputs, channels, groups):
        sizes, strides, dilations, paddings, counts = self._window()
        weights = self.rng.normal(size=(outputs, channels, *sizes))
        self.name = self.builder.op(
            "conv", self.name, weights, self.rng.normal(size=(1, outputs)), border="constant",
            padding=paddings, stride=strides, dilation=dilations, groups=groups,
        )  # fmt: skip
        self.shape = (outputs, *counts)
        if self.rng.random() < 0.5:
            self.name = self.builder.op("relu", self.name)

    def _conv(self):
        self._filter(int(self.rng.integers(1, 12)), self.shape[0], 1)

    def _depthwise(self):
        self._filter(self.shape[0], 1, self.shape[0])

    def _pool(self):
        sizes, strides, dilations, paddings, counts = self._window()
        op = ["max_pool", "max_pool", "avg_pool", "box"][self.rng.integers(4)]
        border = "ignore" if op == "max_pool" and self.rng.random() < 0.5 else "constant"
        self.name = self.builder.op(
            op, self.name, size=[1, 1, *sizes], border=border,
            padding=[(0, 0), (0, 0), *paddings], stride=[1, 1, *strides],
            dilation=[1, 1, *dilations],
        )  # fmt: skip
        self.shape = (self.shape[0], *counts)

    def _function(self):
        functions = ["tanh", "sigmoid", "abs", "neg"]
        self.name = self.builder.op(functions[self.rng.integers(4)], self.name)

    def _move(self):
        """Take a part, repeat pixels, spread channels, put a border around, or join two tensors."""
        op = ["slice", "nearest_upsample", "depth_to_space", "pad", "concat", "transpose"][
            self.rng.integers(6)
        ]
        channels, *image = self.shape
        attrs = {}
        if op == "slice":
            axis = int(self.rng.integers(1, 4))
            begin = int(self.rng.integers(self.shape[axis - 1]))
            end = int(self.rng.integers(begin, self.shape[axis - 1])) + 1
            attrs = {"axes": [axis], "begin": [begin], "end": [end], "stride": [1]}
            image = [channels, *image]
            image[axis - 1] = end - begin
            channels, *image = image
        elif op == "concat":
            self._filter(4 * int(self.rng.integers(1, 3)), channels, 1)
            axis = int(self.rng.integers(1, 4))
            extents = list(self.shape)
            extents[axis - 1] *= 2
            other = self.builder.op("tanh", self.name)
            self.name = self.builder.op(op, self.name, other, axis=axis, shape=[1, *extents])
            self.shape = tuple(extents)
            return
        elif op == "pad":
            padding = [tuple(map(int, self.rng.integers(0, 3, 2))) for _ in range(2)]
            attrs = {"padding": [(0, 0), (0, 0), *padding], "border": "constant", "value": 0.0}
            image = [n + sum(pad) for n, pad in zip(image, padding, strict=True)]
        elif op == "transpose":
            attrs = {"axes": [0, 3, 2, 1]}
            (channels, *image) = image[1], image[0], channels
        else:
            factors = [int(x) for x in self.rng.integers(1, 4, 2)]
            image = [n * f for n, f in zip(image, factors, strict=True)]
            if op == "depth_to_space":
                own = int(self.rng.integers(1, 4))
                self._filter(own * factors[0] * factors[1], channels, 1)
                image = [n * f for n, f in zip(self.shape[1:], factors, strict=True)]
                channels = own
            attrs = {"factor": factors}
        self.name = self.builder.op(op, self.name, **attrs)
        self.shape = (channels, *image)

    def _sum(self):
        others = [name for name, shape in self.kept if shape == self.shape and name != self.name]
        if not others:
            self._filter(self.shape[0], self.shape[0], 1)
            return
        op = ["add", "sub", *self.products][self.rng.integers(2 + len(self.products))]
        operands = [self.name, others[self.rng.integers(len(others))]]
        if self.rng.random() < 0.5:
            operands.reverse()
        self.name = self.builder.op(op, *operands)
        if self.rng.random() < 0.5:
            self.name = self.builder.op("relu", self.name)
