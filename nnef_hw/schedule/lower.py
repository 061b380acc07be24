"""A fixed graph as stream layers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import UnsupportedError, raise_all
from nnef_hw.ir import Graph, Node
from nnef_hw.ir.verify import ARITHMETIC_OPS, TABLE_OPS
from nnef_hw.numerics import QType, accumulator_range, fold_zero_point, signed_bits
from nnef_hw.schedule.layers import (
    ArgmaxLayer,
    ConcatLayer,
    ConvLayer,
    DepthToSpaceLayer,
    DepthwiseLayer,
    EltwiseLayer,
    Layer,
    LayerGraph,
    PadLayer,
    PoolLayer,
    SliceLayer,
    SoftmaxLayer,
    TableLayer,
    TransposeLayer,
    UpsampleLayer,
)
from nnef_hw.schedule.plan import Port
from nnef_hw.schedule.support import (
    check_streamable,
    image_shape,
    input_stream,
    is_for_host,
    output_stream,
    stream_reordering,
)
from nnef_hw.tables import lowest_code
from nnef_hw.tflite_numerics import TfliteAddRequant, TfliteAverage, TfliteRequant
from nnef_hw.window import Window

__all__ = ["lower"]

TFLITE_SUM_BITS = 32


def lower(graph: Graph) -> LayerGraph:
    """Turn a fixed graph into layers.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If :func:`check_streamable` finds anything.
    """
    raise_all(check_streamable(graph))
    sources = [input_stream(graph, name) for name in graph.inputs]
    sinks = [output_stream(graph, name) for name in graph.outputs]
    streams = dict(zip((*graph.inputs, *sources), sources * 2, strict=True))
    inputs = _ports("i", graph, graph.inputs, sources, streams)
    layers: list[Layer] = []
    for node in graph.nodes:
        result = node.outputs[0]
        if node.op == "reshape" and (result in streams or is_for_host(graph, result)):
            continue
        if node.op in {"reshape", "transpose"} and stream_reordering(graph, node).is_trivial:
            streams[node.outputs[0]] = streams[node.inputs[0]]
        else:
            streams[node.outputs[0]] = node.outputs[0]
            layers.append(_lower_node(_Call(graph, node, streams)))
    if not layers:
        raise UnsupportedError(f"graph {graph.name!r} has nothing to compute")
    outputs = _ports("o", graph, graph.outputs, sinks, streams)
    return LayerGraph(tuple(layers), inputs, outputs)


def _ports(
    prefix: str,
    graph: Graph,
    names: Sequence[str],
    tensors: Sequence[str],
    streams: Mapping[str, str],
) -> tuple[Port, ...]:
    """Return the ports of inputs or outputs, of which these tensors are streamed."""
    ports: list[Port] = []
    for label, name in zip(_labels(prefix, names), tensors, strict=True):
        tensor = graph.tensor(name)
        image = image_shape(tensor.shape)
        assert image is not None
        assert tensor.qtype is not None
        ports.append(Port(label, streams[name], image, tensor.qtype.bits, tensor.qtype.signed))
    return tuple(ports)


def _labels(prefix: str, names: Sequence[str]) -> list[str]:
    """Return different identifiers, without two underscores in a row: these end a port's name."""
    if len(names) == 1:
        return [prefix]
    labels: list[str] = []
    for name in names:
        label = re.sub(r"[\W_]+", "_", f"{prefix}_{name}", flags=re.ASCII).rstrip("_")
        others = (f"{label}_{n}" for n in count(2))
        labels.append(next(text for text in chain([label], others) if text not in labels))
    return labels


@dataclass(frozen=True, slots=True)
class _Call:
    """A node and what is known around it."""

    graph: Graph
    node: Node
    streams: dict[str, str]

    @property
    def sources(self) -> tuple[str, ...]:
        """Streams of the operands that are computed."""
        return tuple(self.streams[name] for name in self.node.inputs if name in self.streams)

    def format(self, name: str) -> QType:
        qtype = self.graph.tensor(name).qtype
        assert qtype is not None
        return qtype

    @property
    def source(self) -> QType:
        return self.format(self.node.inputs[0])

    @property
    def target(self) -> QType:
        return self.format(self.node.outputs[0])

    def image(self, name: str) -> tuple[int, int, int]:
        shape = image_shape(self.graph.tensor(name).shape)
        assert shape is not None
        return shape

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self.node.attrs

    @property
    def extents(self) -> dict[str, Any]:
        """Pixels and channels of the result, or of the operand if they differ."""
        height, width, channels = self.image(
            next(name for name in self.node.inputs if name in self.streams)
        )
        return {"pixels": height * width, "channels": channels}

    @property
    def names(self) -> dict[str, Any]:
        """Fields that all layers have."""
        return {"name": self.node.name, "node": self.node, "sources": self.sources}


def _product_bits(first: QType, second: QType) -> int:
    """Width of every product of differences of codes of two formats."""
    corners = [
        (a - first.zero_point) * (b - second.zero_point)
        for a in (first.lo, first.hi)
        for b in (second.lo, second.hi)
    ]
    return signed_bits(min(corners), max(corners))


def _lower_node(call: _Call) -> Layer:
    op = call.node.op
    if op in TABLE_OPS:
        return TableLayer(
            **call.names, **call.extents, entries=call.attrs["table"], source=call.source,
            target=call.target,
        )  # fmt: skip
    return _LOWERINGS[op](call)


def _lower_softmax(call: _Call) -> SoftmaxLayer:
    return SoftmaxLayer(
        **call.names, **call.extents, table=call.attrs["table"], source=call.source,
        target=call.target,
    )  # fmt: skip


def _lower_argmax(call: _Call) -> ArgmaxLayer:
    return ArgmaxLayer(**call.names, **call.extents, source=call.source, target=call.target)


def _lower_eltwise(call: _Call) -> EltwiseLayer:
    first, second = call.node.inputs
    requant = call.attrs.get("requant")
    if first not in call.streams:
        first, second = second, first
        if isinstance(requant, TfliteAddRequant):
            requant = requant.swapped
        elif call.node.op in {"add", "sub"}:
            assert requant is not None
            requant = replace(requant, mult=requant.mult[::-1])
    formats = call.format(first), call.format(second)
    constant: tuple[int, ...] = ()
    if second not in call.streams:
        constant = tuple(call.graph.constant(second).reshape(-1).tolist())
    layer = EltwiseLayer(
        **call.names, **call.extents, formats=formats, target=call.target, requant=requant,
        constant=constant, acc_bits=_product_bits(*formats),
    )  # fmt: skip
    if isinstance(requant, TfliteAddRequant):
        tables = tuple(
            requant.scale_operand(
                n, lowest_code(qtype) + np.arange(1 << qtype.bits) - qtype.zero_point
            )
            for n, qtype in enumerate(formats)
        )
        limits = (sum(int(table.min()) for table in tables),
                  sum(int(table.max()) for table in tables))  # fmt: skip
        layer = replace(layer, requant=requant.of_sum, tables=tables, acc_bits=signed_bits(*limits))
    return layer


def _lower_concat(call: _Call) -> ConcatLayer:
    images = [call.image(name) for name in call.node.inputs]
    # What an image gives in a turn: the channels of a pixel, a row, or all of it.
    inner = {1: slice(2, 3), 3: slice(1, 3), 2: slice(0, 3)}[call.attrs["axis"]]
    height, width, channels = call.image(call.node.outputs[0])
    return ConcatLayer(
        **call.names, pixels=height * width, channels=channels,
        runs=tuple(int(np.prod(image[inner])) for image in images), source=call.source,
        target=call.target,
    )  # fmt: skip


def _lower_slice(call: _Call) -> SliceLayer:
    """Lower a part along one axis, whose inner axes it takes as they are."""
    image = call.image(call.node.inputs[0])
    [axis], [begin], [end] = (call.attrs[key] for key in ("axes", "begin", "end"))
    place = {1: 2, 2: 0, 3: 1}[axis]
    inner = math.prod(image[place + 1 :])
    height, width, channels = call.image(call.node.outputs[0])
    return SliceLayer(
        **call.names, pixels=height * width, channels=channels,
        runs=(begin * inner, (end - begin) * inner, (image[place] - end) * inner),
        turns=math.prod(image[:place]), source=call.source, target=call.target,
    )  # fmt: skip


def _lower_pad(call: _Call) -> PadLayer:
    padding = (*(tuple(pair) for pair in call.attrs["padding"][2:]), (0, 0))[:2]
    window = Window(*call.image(call.node.inputs[0]), padding=(padding[0], padding[1]))
    return PadLayer(
        **call.names, window=window, source=call.source, target=call.target,
        pad_code=int(call.source.quantize(call.attrs["value"])),
    )  # fmt: skip


def _lower_transpose(call: _Call) -> TransposeLayer:
    """Lower a ``transpose`` or ``reshape`` that changes the order of the stream."""
    reordering = stream_reordering(call.graph, call.node)
    return TransposeLayer(
        **call.names, window=Window(*reordering.extents), order=reordering.order,
        channels=call.image(call.node.outputs[0])[2], source=call.source, target=call.target,
    )  # fmt: skip


def _lower_factors(call: _Call) -> DepthToSpaceLayer | UpsampleLayer:
    rows, columns = (*call.attrs["factor"], 1)[:2]
    kind = UpsampleLayer if call.node.op == "nearest_upsample" else DepthToSpaceLayer
    return kind(
        **call.names, window=Window(*call.image(call.node.inputs[0])), factors=(rows, columns),
        source=call.source, target=call.target,
    )  # fmt: skip


def _lower_pool(call: _Call) -> PoolLayer:
    height, width, channels = call.image(call.node.inputs[0])
    attrs, source = call.attrs, call.source

    def spatial(key: str) -> tuple[int, int]:
        vertical, horizontal = (*attrs[key][2:], 1)[:2]
        return vertical, horizontal

    padding = (*(tuple(pair) for pair in attrs["padding"][2:]), (0, 0))[:2]
    window = Window(
        height, width, channels,
        kernel=spatial("size"), stride=spatial("stride"), dilation=spatial("dilation"),
        padding=(padding[0], padding[1]), passes=channels, by_channel=True,
    )  # fmt: skip
    known = {**call.names, "window": window, "source": source, "target": call.target}
    if call.node.op == "max_pool":
        pad_code = source.lo if attrs["border"] == "ignore" else source.zero_point
        return PoolLayer(**known, pad_code=pad_code, requant=None)
    lowest, highest = source.lo * window.taps, source.hi * window.taps
    requant, bias, pad_code = attrs["requant"], -source.zero_point * window.taps, source.zero_point
    counts: list[int] = []
    positions = None
    if attrs["border"] == "ignore":
        counts = np.unique(window.inside).tolist()
        positions = np.searchsorted(counts, window.inside)
    if isinstance(requant, TfliteAverage):
        requant, bias = requant.as_requant(counts), 0
        pad_code = 0 if counts else pad_code
    limits = (min(lowest, lowest + bias), max(highest, highest + bias))
    return PoolLayer(
        **known, pad_code=pad_code, requant=requant, bias=bias, acc_bits=signed_bits(*limits),
        positions=positions,
    )  # fmt: skip


def _lower_conv(call: _Call) -> ConvLayer | DepthwiseLayer:
    """Lower ``conv`` and ``linear``."""
    node, source = call.node, call.source
    channels = call.image(node.inputs[0])[2]
    groups = int(call.attrs.get("groups", 1))
    qtype = call.format(node.inputs[1])
    codes = call.graph.constant(node.inputs[1]).astype(np.int64)
    codes = codes.reshape(*codes.shape[:2], -1).transpose(0, 2, 1) - qtype.zero_point
    depthwise = groups == channels == len(codes) > 1
    weights = codes if depthwise else _ungrouped(codes, channels, groups)
    bias = fold_zero_point(call.graph.constant(node.inputs[2]), weights, source.zero_point)
    acc_bits = signed_bits(*accumulator_range(weights, bias, source.lo, source.hi))
    if isinstance(call.attrs["requant"], TfliteRequant) and acc_bits > TFLITE_SUM_BITS:
        raise UnsupportedError(
            f"{node.op} {node.name!r}: sums of {acc_bits} bits exceed the {TFLITE_SUM_BITS} of "
            "TensorFlow Lite",
            remedy="use activations of at most 8 bits, or rounding = 'half_up'",
            location=node.location,
        )
    known = {
        **call.names, "bias": bias, "requant": call.attrs["requant"], "source": source,
        "target": call.target, "weight_bits": _stored_bits(weights, qtype),
        "acc_bits": acc_bits,
    }  # fmt: skip
    window = _conv_window(call, by_channel=depthwise)
    if depthwise:
        return DepthwiseLayer(**known, window=window, weights=weights[:, :, 0])
    return ConvLayer(**known, window=window, weights=weights, groups=groups)


def _stored_bits(weights: NDArray[np.int64], qtype: QType) -> int:
    """Bits of a weight in memory: one if all are +1 or -1."""
    if (np.abs(weights) == 1).all():
        return 1
    bits = max(signed_bits(int(weights.min()), int(weights.max())), 2)
    return bits if bits > 8 else max(bits, qtype.bits)


def _ungrouped(codes: NDArray[np.int64], channels: int, groups: int) -> NDArray[np.int64]:
    """Weights [out channels, taps, channels], with 0 for the channels of other groups."""
    if groups == 1:
        return codes
    outputs, taps, inputs = codes.shape
    weights = np.zeros((outputs, taps, channels), np.int64)
    for n, rows in enumerate(np.split(codes, groups)):
        of_group = slice(n * len(rows), (n + 1) * len(rows))
        weights[of_group, :, n * inputs : (n + 1) * inputs] = rows
    return weights


def _conv_window(call: _Call, *, by_channel: bool) -> Window:
    height, width, channels = call.image(call.node.inputs[0])
    if call.node.op == "linear":
        return Window(height, width, channels)
    attrs = call.attrs
    kernel = (*call.graph.tensor(call.node.inputs[1]).shape[2:], 1)[:2]
    stride = (*attrs["stride"], 1)[:2]
    dilation = (*attrs["dilation"], 1)[:2]
    padding = (*(tuple(pair) for pair in attrs["padding"]), (0, 0))[:2]
    return Window(
        height, width, channels,
        kernel=(kernel[0], kernel[1]), stride=(stride[0], stride[1]),
        dilation=(dilation[0], dilation[1]), padding=(padding[0], padding[1]),
        passes=channels if by_channel else 1, by_channel=by_channel,
    )  # fmt: skip


_LOWERINGS: dict[str, Callable[[_Call], Layer]] = {
    **dict.fromkeys(ARITHMETIC_OPS, _lower_eltwise),
    "argmax_reduce": _lower_argmax,
    "avg_pool": _lower_pool,
    "box": _lower_pool,
    "concat": _lower_concat,
    "conv": _lower_conv,
    "depth_to_space": _lower_factors,
    "linear": _lower_conv,
    "max_pool": _lower_pool,
    "nearest_upsample": _lower_factors,
    "pad": _lower_pad,
    "reshape": _lower_transpose,
    "slice": _lower_slice,
    "softmax": _lower_softmax,
    "transpose": _lower_transpose,
}
