"""Turn transposed convolutions into convolutions and depth to space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Quantization
from nnef_hw.ir.activation import activation_attrs
from nnef_hw.passes.fusing.fold_affine import FoldAffine
from nnef_hw.passes.rewriting.editor import Editor, slice_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["LowerDeconv"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LowerDeconv(Pass):
    """Rewrite ``deconv`` of stride s as ``conv``, ``depth_to_space`` and ``slice``.

    The results at every s-th row are a convolution of the input with every s-th row of the filter.
    So all of them are the channels of one convolution of stride 1, which ``depth_to_space`` spreads
    over rows and columns: no weight meets the zeros between the pixels of the input. Of
    ``groups``, there is a convolution for each of these phases, and a ``concat``.

    Scales and zero points of a filter that is quantized, one for all or one per output channel,
    are those of every phase.
    Left alone: borders that continue the image, computed filters and biases, other quantizations,
    and scales per channel of a filter with groups.
    """

    after: ClassVar[Reasons] = {
        FoldAffine: (
            "A scale behind a deconv goes into its filter; behind a depth_to_space it stays a "
            "layer."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op == "deconv" and _can_lower(editor, node):
                _lower(editor, node)
            else:
                editor.keep(node)
        return editor.finish()


def _can_lower(editor: Editor, node: Node) -> bool:
    filter_name, bias_name = node.inputs[1:]
    bias = editor.data(bias_name)
    return (
        editor.data(filter_name) is not None
        and bias is not None
        and bias.size in {1, editor.shape(node.name)[1]}
        and all(_can_repeat(editor, node, name) for name in node.inputs[1:])
        and node.attrs.get("border", "constant") in {"constant", "ignore"}
    )


def _can_repeat(editor: Editor, node: Node, name: str) -> bool:
    """Whether a constant has no quantization, or scales that each phase may have, too."""
    tensor = editor.tensors[editor.resolve(name)]
    if tensor.quant is None:
        return True
    arrays = [value for value in tensor.quant.args.values() if np.size(value) > 1]
    channels = editor.shape(node.name)[1]
    is_linear = tensor.quant.op == "zero_point_linear_quantize"
    per_channel = all(np.shape(x)[:2] == (1, channels) and np.size(x) == channels for x in arrays)
    return is_linear and per_channel and (not arrays or node.attrs.get("groups", 1) == 1)


def _repeated(quant: Quantization | None, count: int, *, of_filter: bool) -> Quantization | None:
    """Return the quantization [outC, ...] of all phases of a filter, or [1, outC] of its bias."""
    if quant is None:
        return None
    args = dict(quant.args)
    for key, value in args.items():
        if np.size(value) > 1:
            rows = np.tile(np.reshape(value, -1), count)
            rank = max(np.ndim(value), 2)
            args[key] = rows.reshape(-1, *[1] * (rank - 1)) if of_filter else rows.reshape(1, -1)
    return Quantization(quant.op, args)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Decomposition of one axis.

    Parameters
    ----------
    stride, crop
        Results per position of the convolution; results that its first position has too many.
    taps
        (phase, tap of the filter, tap of the convolution).
    kernel, positions, padding
        Kernel, output positions and padding of the convolution.
    """

    stride: int
    crop: int
    taps: tuple[tuple[int, int, int], ...]
    kernel: int
    positions: int
    padding: tuple[int, int]

    @classmethod
    def of(
        cls, extent: int, result: int, kernel: int, stride: int, dilation: int, padding: int
    ) -> _Axis:
        """Choose the crop that makes the least of taps times positions."""
        choices = []
        for crop in range(stride):
            # Result q * stride + phase - crop is the sum of the input's pixels q + offset.
            offsets = [
                (phase, tap, (phase - crop + padding - tap * dilation) // stride)
                for phase in range(stride)
                for tap in range(kernel)
                if (phase - crop + padding - tap * dilation) % stride == 0
            ]
            first = min(0, *(offset for *_, offset in offsets))
            last = max(offset for *_, offset in offsets)
            wanted = -(-(result + crop) // stride)
            behind = max(0, wanted + last - extent)
            size = max(last, first) - first + 1
            taps = tuple((phase, tap, offset - first) for phase, tap, offset in offsets)
            positions = extent - first + behind - size + 1
            choices.append(cls(stride, crop, taps, size, positions, (-first, behind)))
        return min(choices, key=lambda axis: axis.kernel * axis.positions)


def _axes(editor: Editor, node: Node) -> list[_Axis]:
    extents, kernel = (editor.shape(name)[2:] for name in node.inputs[:2])
    results = editor.shape(node.name)[2:]
    ones = [1] * len(extents)
    stride, dilation = (node.attrs.get(key) or ones for key in ("stride", "dilation"))
    padding = [int(p) for p, _ in node.attrs.get("padding") or ()]
    if not padding:
        padding = [
            max((n - 1) * s + (k - 1) * d + 1 - m, 0) // 2
            for n, s, k, d, m in zip(extents, stride, kernel, dilation, results, strict=True)
        ]
    return [
        _Axis.of(*extent)
        for extent in zip(extents, results, kernel, stride, dilation, padding, strict=True)
    ]


def _lower(editor: Editor, node: Node) -> None:
    axes, like = _axes(editor, node), editor.tensors[node.name]
    channels = like.shape[1]
    factor = [axis.stride for axis in axes]
    groups = node.attrs.get("groups", 1) or editor.shape(node.inputs[0])[1]
    phases = _phase_filters(editor, node, axes, groups)
    image = tuple(axis.positions for axis in axes)
    deep = (1, prod(factor) * channels, *image)
    if groups == 1:
        weights = np.concatenate(phases)
        source = _emit_conv(editor, node, axes, weights, f"{node.name}_phases", deep)
    else:
        names = [
            _emit_conv(
                editor, node, axes, weights, f"{node.name}_phase{n}", (1, channels, *image), groups
            )
            for n, weights in enumerate(phases)
        ]
        source = editor.activation(f"{node.name}_phases", deep, like)
        editor.emit(Node("concat", tuple(names), (source,), {"axis": 1}, node.location))
    shape = [1, channels, *(n * s for n, s in zip(image, factor, strict=True))]
    cropped = [n for n, extent in enumerate(like.shape) if n > 1 and shape[n] != extent]
    names = [node.name]
    for axis in reversed(cropped):
        inner = [*like.shape[:axis], *shape[axis:]]
        names.append(editor.activation(f"{node.name}_axis{axis}", tuple(inner), like))
    result = names.pop()
    editor.emit(Node("depth_to_space", (source,), (result,), {"factor": factor}, node.location))
    for axis in cropped:
        begin, source, result = axes[axis - 2].crop, result, names.pop()
        editor.emit(slice_node(source, result, axis, begin, begin + like.shape[axis], node))


def _phase_filters(
    editor: Editor, node: Node, axes: Sequence[_Axis], groups: int
) -> list[FloatArray]:
    """Return the filter [outC, inC/groups, ...] of every phase, the last axis' the fastest."""
    data = editor.data(node.inputs[1])
    assert data is not None
    inputs, outputs = len(data) // groups, data.shape[1]
    # [outC, inC/groups, ...] of the filter [inC, outC/groups, ...]
    filters = data.astype(np.float64).reshape(groups, inputs, outputs, *data.shape[2:])
    filters = filters.swapaxes(1, 2).reshape(groups * outputs, inputs, *data.shape[2:])
    strides = [axis.stride for axis in axes]
    kernel = [axis.kernel for axis in axes]
    phases = np.zeros((*strides, groups * outputs, inputs, *kernel))
    for taps in product(*(axis.taps for axis in axes)):
        phase, tap, target = zip(*taps, strict=True)
        phases[(*phase, ..., *target)] = filters[(..., *tap)]
    return list(phases.reshape(-1, *phases.shape[len(axes) :]))


def _emit_conv(
    editor: Editor, node: Node, axes: Sequence[_Axis], weights: FloatArray, name: str,
    shape: tuple[int, ...], groups: int = 1,
) -> str:  # fmt: skip
    """Emit one convolution and return its result's name."""
    filter_like, bias_like = (editor.tensors[editor.resolve(n)] for n in node.inputs[1:])
    result = editor.activation(name, shape, editor.tensors[node.name])
    assert bias_like.data is not None
    bias = bias_like.data.astype(np.float64).reshape(1, -1)
    bias = np.tile(np.broadcast_to(bias, (1, editor.shape(node.name)[1])),
                   len(weights) // editor.shape(node.name)[1])  # fmt: skip
    attrs = {
        "border": "constant",
        "padding": [axis.padding for axis in axes],
        "stride": [1] * len(axes),
        "dilation": [1] * len(axes),
        "groups": groups,
        **activation_attrs(node),
    }
    if node.attrs.get("is_interpolation"):
        attrs["is_interpolation"] = True
    phases = len(weights) // editor.shape(node.name)[1]
    inputs = [node.inputs[0]]
    for kind, data, like in (("filter", weights, filter_like), ("bias", bias, bias_like)):
        constant = editor.constant(f"{result}_{kind}", data, like)
        quant = _repeated(like.quant, phases, of_filter=kind == "filter")
        editor.tensors[constant] = replace(editor.tensors[constant], quant=quant)
        inputs.append(constant)
    editor.emit(Node("conv", tuple(inputs), (result,), attrs, node.location))
    return result
