"""Write normalizations out as means, functions of them and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from nnef_hw.arithmetic.records import Fields
from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.passes.forms.lower_axes import LowerAxes
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import View, is_image
from nnef_hw.passes.structure.hoist_arithmetic import HoistArithmetic
from nnef_hw.passes.structure.merge_equal import MergeEqual
from nnef_hw.passes.structure.sink_transposes import SinkTransposes

__all__ = ["LowerNormalization"]


@dataclass(frozen=True, slots=True)
class LowerNormalization(Pass):
    """Replace normalizations by the operators that the standard defines them with.

    * ``moments`` -> the mean, and the mean of the squares of what lies beside it
    * ``batch_normalization`` with computed moments -> difference, ``rsqrt``, products, sum
    * ``l1_normalization``, ``l2_normalization`` -> a product with a function of a sum
    * ``normalize`` with a scale or an offset that is computed, or varies along other axes ->
      product and sum
    * ``local_*_normalization`` -> the same of window sums; along channels, these are the columns
      of a view that is the same stream

    Left alone: windows over several of batch, channels and pixels at once; an
    ``l2_normalization`` of codes that TensorFlow Lite computes from their squares alone.
    """

    after: ClassVar[Reasons] = {
        SinkTransposes: (
            "A normalization's arithmetic becomes one function before its transposes are "
            "swapped with single operators."
        ),
    }
    before: ClassVar[Reasons] = {
        LowerAxes: (
            "Scales along other axes leave a normalization before its channels change places."
        ),
        MergeEqual: "Two normalizations of one tensor share the operators that they consist of.",
        HoistArithmetic: (
            "HoistArithmetic moves the reductions and the arithmetic that a normalization "
            "consists of."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            lower = _LOWERED.get(node.op)
            if lower is None or not lower(_Emitter(editor, node)):
                editor.keep(node)
        return editor.finish()


class _Emitter:
    """Emits what a node is written out as."""

    def __init__(self, editor: Editor, node: Node) -> None:
        self.editor = editor
        self.node = node

    def __call__(self, op: str, *operands: str | float, to: str | None = None, **attrs: Any) -> str:
        """Emit an operator on activations and numbers; return its result's name, or ``to``."""
        editor, node = self.editor, self.node
        names = tuple(
            item
            if isinstance(item, str)
            else editor.constant(f"{node.name}_{op}_operand", np.array(item))
            for item in operands
        )
        shapes = [editor.shape(name) for name in names]
        if to is None:
            shape = max(shapes, key=np.prod)
            if "axes" in attrs:
                shape = tuple(1 if axis in attrs["axes"] else n for axis, n in enumerate(shape))
            to = editor.activation(f"{node.name}_{op}", shape, self.like(names[0]))
        editor.emit(Node(op, names, (to,), attrs, node.location))
        return to

    @property
    def keeps_codes(self) -> bool:
        """Whether the result's codes are those of a kernel of TensorFlow Lite."""
        is_quantized = self.editor.tensors[self.node.name].quant is not None
        return is_quantized and self.editor.graph.rounding == "tflite"

    def like(self, name: str) -> Tensor:
        """Return a tensor as a model for others, without what its author said of its codes."""
        tensor = self.editor.tensors[self.editor.resolve(name)]
        return replace(tensor, quant=None, data=None)

    @property
    def has_a_window(self) -> bool:
        """Whether windows of the node's ``size`` are of an image's channels, or of its pixels."""
        axes = [axis for axis, n in enumerate(self.node.attrs["size"]) if n > 1]
        is_of_one_sort = axes in ([], [1]) or min(axes) > 1
        return is_of_one_sort and is_image(self.editor.shape(self.node.inputs[0]))

    def mean(self, source: str) -> str:
        """Emit the mean of the window around every element."""
        editor, node = self.editor, self.node
        shape, size = editor.shape(source), node.attrs["size"]
        attrs: Fields = {
            "border": "constant", "padding": [], "stride": [], "dilation": [], "normalize": True,
        }  # fmt: skip
        if size[1] == 1:
            return self("box", source, size=size, **attrs)
        # [1, C, H, W] -> [1, 1, H * W, C], which is the order of the stream
        pixels = int(np.prod(shape[2:]))
        view = View((0, *range(2, len(shape)), 1), (1, 1, pixels, shape[1]))
        image = view.enter(editor, node, source, f"{node.name}_rows")
        mean = self("box", image, size=[1, 1, 1, size[1]], **attrs)
        result = editor.activation(f"{node.name}_mean", shape, self.like(source))
        view.leave(editor, node, mean, result)
        return result


def _moments(emit: _Emitter) -> bool:
    (source,), (mean, variance) = emit.node.inputs, emit.node.outputs
    axes = emit.node.attrs["axes"]
    emit("mean_reduce", source, to=mean, axes=axes)
    beside = emit("sub", source, mean)
    emit("mean_reduce", emit("sqr", beside), to=variance, axes=axes)
    return True


def _normalize(emit: _Emitter) -> bool:
    """Take out scales and offsets that are no constants along the normalized axes."""
    editor, node = emit.editor, emit.node
    source, scale, offset = node.inputs
    if all(_is_along(editor, name, node.attrs["axes"]) for name in (scale, offset)):
        return False
    core, scaled = (
        editor.activation(f"{node.name}_{what}", editor.shape(source), emit.like(source))
        for what in ("normal", "scaled")
    )
    emit("normalize", source, 1.0, 0.0, to=core, **node.attrs)
    emit("mul", core, scale, to=scaled)
    emit("add", scaled, offset, to=node.name)
    return True


def _is_along(editor: Editor, name: str, axes: Sequence[int]) -> bool:
    data = editor.data(name)
    return data is not None and all(n == 1 or axis in axes for axis, n in enumerate(data.shape))


def _batch(emit: _Emitter) -> bool:
    """Write out a normalization whose mean or variance is computed."""
    editor, node = emit.editor, emit.node
    source, mean, variance, offset, scale = node.inputs
    if editor.data(source) is not None or all(
        editor.data(name) is not None for name in (mean, variance)
    ):
        return False
    factor = emit("rsqrt", emit("add", variance, float(node.attrs["epsilon"])))
    steps = [("sub", mean), ("mul", factor), ("mul", scale), ("add", offset)]
    for n, (op, operand) in enumerate(steps, 1):
        source = emit(op, source, operand, to=node.name if n == len(steps) else None)
    return True


def _power(source: str, exponent: float, emit: _Emitter) -> str:
    return emit("rsqrt", source) if exponent == -0.5 else emit("pow", source, exponent)


def _local_response(emit: _Emitter) -> bool:
    """Write out ``x / (bias + alpha * mean(x^2)) ^ beta``."""
    attrs, (source,) = emit.node.attrs, emit.node.inputs
    if not emit.has_a_window:
        return False
    mean = emit.mean(emit("sqr", source))
    sigma = emit("add", emit("mul", mean, float(attrs["alpha"])), float(attrs["bias"]))
    emit("mul", source, _power(sigma, -float(attrs["beta"]), emit), to=emit.node.name)
    return True


def _divided(emit: _Emitter, source: str, norm: str) -> bool:
    """Emit the product with ``1 / max(norm + bias, epsilon)``."""
    attrs = emit.node.attrs
    divisor = emit("add", norm, float(attrs["bias"])) if attrs["bias"] else norm
    divisor = emit("max", divisor, float(attrs["epsilon"]))
    emit("mul", source, emit("rcp", divisor), to=emit.node.name)
    return True


def _l1(emit: _Emitter) -> bool:
    (source,), axes = emit.node.inputs, emit.node.attrs["axes"]
    return _divided(
        emit, source, emit("sum_reduce", emit("abs", source), axes=axes, normalize=False)
    )


def _l2(emit: _Emitter) -> bool:
    (source,), axes = emit.node.inputs, emit.node.attrs["axes"]
    if emit.keeps_codes:
        return False
    total = emit("sum_reduce", emit("sqr", source), axes=axes, normalize=False)
    return _divided(emit, source, emit("sqrt", total))


def _local_mean(emit: _Emitter) -> bool:
    (source,) = emit.node.inputs
    if not emit.has_a_window:
        return False
    emit("sub", source, emit.mean(source), to=emit.node.name)
    return True


def _local_variance(emit: _Emitter) -> bool:
    (source,) = emit.node.inputs
    if not emit.has_a_window:
        return False
    return _divided(emit, source, emit("sqrt", emit.mean(emit("sqr", source))))


def _local_contrast(emit: _Emitter) -> bool:
    (source,) = emit.node.inputs
    if not emit.has_a_window:
        return False
    beside = emit("sub", source, emit.mean(source))
    return _divided(emit, beside, emit("sqrt", emit.mean(emit("sqr", beside))))


_LOWERED: dict[str, Callable[[_Emitter], bool]] = {
    "batch_normalization": _batch,
    "l1_normalization": _l1,
    "l2_normalization": _l2,
    "local_contrast_normalization": _local_contrast,
    "local_mean_normalization": _local_mean,
    "local_response_normalization": _local_response,
    "local_variance_normalization": _local_variance,
    "moments": _moments,
    "normalize": _normalize,
}
