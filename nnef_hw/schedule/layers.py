"""A fixed graph as a chain of stream layers: what has to be built, before any folding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import NnefHwError, UnsupportedError, raise_all
from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.ir.verify import TABLE_OPS
from nnef_hw.numerics import QType, Requant, accumulator_range, fold_zero_point, signed_bits
from nnef_hw.window import Window

__all__ = [
    "ArgmaxLayer",
    "Chain",
    "ConvLayer",
    "Layer",
    "PoolLayer",
    "SoftmaxLayer",
    "TableLayer",
    "check_streamable",
    "image_shape",
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


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(height, width, channels) of a tensor [1, C], [1, C, L] or [1, C, H, W]; None for others."""
    if not shape or shape[0] != 1 or not 2 <= len(shape) <= 4:
        return None
    channels, *extents = shape[1:]
    height, width = (*extents, 1, 1)[:2]
    return height, width, channels


def check_streamable(graph: Graph) -> list[NnefHwError]:
    """List why a canonical or fixed graph cannot be streamed, one error per cause."""
    errors: list[NnefHwError] = []

    def refuse(reason: str, remedy: str, node: Node | None = None) -> None:
        location = node.location if node else None
        errors.append(UnsupportedError(reason, remedy=remedy, location=location))

    for what, names in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        if len(names) != 1:
            refuse(
                f"graph {graph.name!r} has {len(names)} {what}; streaming takes one",
                "split the model",
            )
    for name in (*graph.inputs, *(out for node in graph.nodes for out in node.outputs)):
        readers = graph.consumers(name)
        uses = len(readers) + (name in graph.outputs)
        if uses > 1:
            refuse(
                f"tensor {name!r} is read {uses} times; branches are not streamed yet",
                "use a network whose layers form a chain",
                readers[0] if readers else None,
            )
    for node in graph.nodes:
        for name in (node.inputs[0], node.outputs[0]):
            if image_shape(graph.tensor(name).shape) is None and node.op != "reshape":
                shape = list(graph.tensor(name).shape)
                refuse(
                    f"{node.op} {node.name!r}: tensor {name!r} of shape {shape} cannot be streamed",
                    "use shapes [1, C], [1, C, L] or [1, C, H, W]",
                    node,
                )
        reason = _unsupported_attribute(graph, node)
        if reason:
            refuse(f"{node.op} {node.name!r}: {reason[0]}", reason[1], node)
    return errors


def _unsupported_attribute(graph: Graph, node: Node) -> tuple[str, str] | None:
    attrs = node.attrs
    if node.op == "conv":
        if attrs["groups"] != 1:
            return f"groups = {attrs['groups']} are not streamed yet", "use groups = 1"
        if attrs["border"] != "constant" and any(map(any, attrs["padding"])):
            return f"border {attrs['border']!r} is not streamed yet", "use border = 'constant'"
    if node.op in {"max_pool", "avg_pool"}:
        padded = any(map(any, attrs["padding"]))
        if padded and attrs["border"] not in {"constant", "ignore"}:
            return f"border {attrs['border']!r} is not streamed yet", "use 'constant' or 'ignore'"
        if padded and node.op == "avg_pool" and attrs["border"] == "ignore":
            return "border 'ignore' with padding is not streamed yet", "use border = 'constant'"
    if node.op in {"softmax", "argmax_reduce"} and list(attrs["axes"]) != [1]:
        return f"axes = {list(attrs['axes'])} are not streamed", "use axes = [1]"
    if node.op == "reshape" and not (_is_border(graph, node) or _keeps_stream(graph, node)):
        return "this reshape reorders the stream", "put it first, last, or before a linear"
    return None


def _is_border(graph: Graph, node: Node) -> bool:
    """Only reshapes stand between this one and the graph's input or output."""
    before: Node | None = node
    while before is not None and before.op == "reshape":
        before = graph.producer(before.inputs[0])
    if before is None:
        return True
    after = node
    while after.outputs[0] not in graph.outputs:
        readers = graph.consumers(after.outputs[0])
        if len(readers) != 1 or readers[0].op != "reshape":
            return False
        after = readers[0]
    return True


def _keeps_stream(graph: Graph, node: Node) -> bool:
    source = image_shape(graph.tensor(node.inputs[0]).shape)
    target = image_shape(graph.tensor(node.outputs[0]).shape)
    if source is None or target is None:
        return False
    return source == target or (source[2] == target[2] and 1 in source[:2] and 1 in target[:2])


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
