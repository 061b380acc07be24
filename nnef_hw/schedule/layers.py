"""A fixed graph as a chain of stream layers: what has to be built, before any folding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import UnsupportedError, raise_all
from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.ir.verify import TABLE_OPS
from nnef_hw.numerics import QType, Requant, accumulator_range, fold_zero_point, signed_bits
from nnef_hw.schedule.support import check_streamable, image_shape
from nnef_hw.window import Window

__all__ = [
    "ArgmaxLayer",
    "Chain",
    "ConvLayer",
    "Layer",
    "PoolLayer",
    "SoftmaxLayer",
    "TableLayer",
    "lower",
]


@dataclass(frozen=True, slots=True, eq=False)
class ConvLayer:
    """A convolution or linear layer.

    ``window`` has one channel block per channel and one pass; folding changes both. ``weights``
    is [out channels, taps, in channels] in window order, ``bias`` has the zero point folded in.
    """

    name: str
    node: Node
    window: Window
    weights: NDArray[np.int64]
    bias: NDArray[np.int64]
    requant: Requant
    source: QType
    target: QType
    weight_bits: int
    acc_bits: int

    @property
    def in_channels(self) -> int:
        """Input channels."""
        return int(self.weights.shape[2])

    @property
    def out_channels(self) -> int:
        """Output channels."""
        return int(self.weights.shape[0])

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame, padding taps included."""
        return self.window.out_pixels * int(self.weights.size)


@dataclass(frozen=True, slots=True, eq=False)
class PoolLayer:
    """Maximum or average over windows, channel by channel."""

    name: str
    node: Node
    window: Window
    source: QType
    target: QType
    pad_code: int
    requant: Requant | None
    bias: int = 0
    acc_bits: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class TableLayer:
    """A function of one activation."""

    name: str
    node: Node
    entries: NDArray[np.int64]
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxLayer:
    """Softmax over channels."""

    name: str
    node: Node
    channels: int
    table: NDArray[np.int64]
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class ArgmaxLayer:
    """Index of the largest channel."""

    name: str
    node: Node
    channels: int
    source: QType
    target: QType


Layer = ConvLayer | PoolLayer | TableLayer | SoftmaxLayer | ArgmaxLayer


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """All layers in stream order, and the images that enter and leave.

    ``input_image`` and ``output_image`` are (height, width, channels); reshapes at the borders of
    the graph are left to the host.
    """

    layers: tuple[Layer, ...]
    input_tensor: Tensor
    output_tensor: Tensor
    input_image: tuple[int, int, int]
    output_image: tuple[int, int, int]


def lower(graph: Graph) -> Chain:
    """Turn a fixed graph into layers.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If :func:`check_streamable` finds anything.
    """
    raise_all(check_streamable(graph))
    nodes = list(graph.nodes)
    first, final = graph.inputs[0], graph.outputs[0]
    while nodes and nodes[0].op == "reshape":
        first = nodes.pop(0).outputs[0]
    while nodes and nodes[-1].op == "reshape":
        final = nodes.pop().inputs[0]
    if not nodes:
        raise UnsupportedError(f"graph {graph.name!r} has nothing to compute")
    input_image = image_shape(graph.tensor(first).shape)
    output_image = image_shape(graph.tensor(final).shape)
    assert input_image is not None
    assert output_image is not None
    layers = [_lower_node(graph, node) for node in nodes if node.op != "reshape"]
    return Chain(tuple(layers), graph.tensor(first), graph.tensor(final), input_image, output_image)


def _lower_node(graph: Graph, node: Node) -> Layer:
    source, target = (graph.tensor(name).qtype for name in (node.inputs[0], node.outputs[0]))
    image = image_shape(graph.tensor(node.inputs[0]).shape)
    assert source is not None
    assert target is not None
    assert image is not None
    height, width, channels = image
    if node.op in TABLE_OPS:
        return TableLayer(node.name, node, node.attrs["table"], source, target)
    if node.op == "softmax":
        return SoftmaxLayer(node.name, node, channels, node.attrs["table"], source, target)
    if node.op == "argmax_reduce":
        return ArgmaxLayer(node.name, node, channels, source, target)
    if node.op in {"conv", "linear"}:
        return _lower_conv(graph, node, image, source, target)

    def spatial(key: str) -> tuple[int, int]:
        vertical, horizontal = (*node.attrs[key][2:], 1)[:2]
        return vertical, horizontal

    padding = (*(tuple(pair) for pair in node.attrs["padding"][2:]), (0, 0))[:2]
    window = Window(
        height, width, channels,
        kernel=spatial("size"), stride=spatial("stride"), dilation=spatial("dilation"),
        padding=(padding[0], padding[1]), passes=channels, by_channel=True,
    )  # fmt: skip
    if node.op == "max_pool":
        pad_code = source.lo if node.attrs["border"] == "ignore" else source.zero_point
        return PoolLayer(node.name, node, window, source, target, pad_code, None)
    lowest, highest = source.lo * window.taps, source.hi * window.taps
    bias = -source.zero_point * window.taps
    limits = (min(lowest, lowest + bias), max(highest, highest + bias))
    return PoolLayer(
        node.name, node, window, source, target, source.zero_point, node.attrs["requant"],
        bias=bias, acc_bits=signed_bits(*limits),
    )  # fmt: skip


def _lower_conv(
    graph: Graph, node: Node, image: tuple[int, int, int], source: QType, target: QType
) -> ConvLayer:
    height, width, channels = image
    filter_tensor = graph.tensor(node.inputs[1])
    assert filter_tensor.qtype is not None
    weights = graph.constant(node.inputs[1]).astype(np.int64)
    if node.op == "linear":
        window = Window(height, width, channels)
    else:
        kernel = (*weights.shape[2:], 1)[:2]
        stride = (*node.attrs["stride"], 1)[:2]
        dilation = (*node.attrs["dilation"], 1)[:2]
        padding = (*(tuple(pair) for pair in node.attrs["padding"]), (0, 0))[:2]
        window = Window(
            height, width, channels,
            kernel=(kernel[0], kernel[1]), stride=(stride[0], stride[1]),
            dilation=(dilation[0], dilation[1]), padding=(padding[0], padding[1]),
        )  # fmt: skip
    zero = filter_tensor.qtype.zero_point
    weights = weights.reshape(*weights.shape[:2], -1).transpose(0, 2, 1) - zero
    bias = fold_zero_point(graph.constant(node.inputs[2]), weights, source.zero_point)
    bits = max(signed_bits(int(weights.min()), int(weights.max())), 2)
    return ConvLayer(
        node.name, node, window, weights, bias, node.attrs["requant"], source, target,
        weight_bits=bits if bits > 8 else max(bits, filter_tensor.qtype.bits),
        acc_bits=signed_bits(*accumulator_range(weights, bias, source.lo, source.hi)),
    )  # fmt: skip
