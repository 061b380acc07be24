"""Shapes of all operators but the sliding windows; attributes are made explicit on the way."""

from __future__ import annotations

import math
from collections.abc import Callable

from nnef_hw.frontend.shapes.call import Call
from nnef_hw.frontend.shapes.common import (
    Shape,
    broadcast,
    check_axes,
    check_axis,
    check_choice,
    elementwise,
    reduced,
    same,
    spreads,
)

__all__ = ["STANDARD_RULES"]

_SAME = (
    "copy", "neg", "rcp", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin",
    "acos", "atan", "asinh", "acosh", "atanh", "abs", "sign", "floor", "ceil", "round", "sqr",
    "sqrt", "rsqr", "rsqrt", "log2", "relu", "sigmoid", "softplus", "gelu", "silu", "not", "elu",
    "selu", "leaky_relu", "cast",
)  # fmt: skip
_ELEMENTWISE = (
    "add", "sub", "mul", "div", "pow", "min", "max", "lt", "gt", "le", "ge", "eq", "ne", "and",
    "or", "select", "clamp",
)  # fmt: skip
_ONTO_INPUT = (
    "prelu", "batch_normalization", "min_max_linear_quantize", "zero_point_linear_quantize",
    "linear_quantize", "logarithmic_quantize",
)  # fmt: skip
_OVER_AXES = (
    "softmax", "l1_normalization", "l2_normalization",
)  # fmt: skip
_OVER_WINDOW = (
    "local_response_normalization", "local_mean_normalization", "local_variance_normalization",
    "local_contrast_normalization",
)  # fmt: skip
_REDUCE = (
    "sum_reduce", "mean_reduce", "max_reduce", "min_reduce", "argmax_reduce", "argmin_reduce",
    "any_reduce", "all_reduce", "moments",
)  # fmt: skip


def _onto_input(call: Call) -> list[Shape]:
    """Operands that must fit into the first one's shape: batch_normalization, prelu, quantize."""
    result = call.inputs[0].shape
    for tensor in call.inputs[1:]:
        if not spreads(tensor.shape, result):
            raise call.error(
                f"{tensor.name!r} of shape {list(tensor.shape)} does not fit the input "
                f"{call.inputs[0].name!r} of shape {list(result)}",
                f"give it shape [1, {result[1]}]" if len(result) > 1 else "give it one number",
            )
    return [result]


def _over_axes(call: Call) -> list[Shape]:
    check_axes(call, len(call.inputs[0].shape))
    return same(call)


def _over_window(call: Call) -> list[Shape]:
    size, rank = call.attrs["size"], len(call.inputs[0].shape)
    if len(size) != rank or any(extent < 1 for extent in size):
        raise call.error(f"size {size} must have {rank} positive items", at="size")
    return same(call)


def _reshape(call: Call) -> list[Shape]:
    source = call.inputs[0].shape
    start, count, wanted = (call.attrs[key] for key in ("axis_start", "axis_count", "shape"))
    if not 0 <= start <= len(source):
        raise call.error(f"axis_start {start} must be in 0..{len(source)}", at="axis_start")
    count = len(source) - start if count == -1 else count
    if count < 0 or start + count > len(source):
        raise call.error(
            f"axis_count {count} does not fit rank {len(source)} from axis {start}", at="axis_count"
        )
    replaced = source[start : start + count]
    result: list[int] = []
    for index, extent in enumerate(wanted):
        if extent == 0 and index >= len(replaced):
            raise call.error(
                f"shape {wanted} copies dimension {start + index}, which is not reshaped",
                at="shape",
            )
        result.append(replaced[index] if extent == 0 else extent)
    volume = math.prod(replaced)
    if any(extent < -1 for extent in result) or result.count(-1) > 1:
        raise call.error(f"shape {wanted} must be positive, 0, or -1 once", at="shape")
    if -1 in result:
        product = math.prod(extent for extent in result if extent != -1)
        result[result.index(-1)] = volume // product
    if math.prod(result) != volume:
        raise call.error(
            f"shape {wanted} does not have the {volume} elements of {list(replaced)}",
            f"the input {call.inputs[0].name!r} has shape {list(source)}",
            at="shape",
        )
    call.attrs.update(shape=result, axis_start=start, axis_count=count)
    return [(*source[:start], *result, *source[start + count :])]


def _transpose(call: Call) -> list[Shape]:
    source, axes = call.inputs[0].shape, call.attrs["axes"]
    if sorted(axes) != list(range(len(axes))) or len(axes) > len(source):
        raise call.error(
            f"axes {axes} must be a permutation of the first dimensions of rank {len(source)}",
            at="axes",
        )
    axes = [*axes, *range(len(axes), len(source))]
    call.attrs["axes"] = axes
    return [tuple(source[axis] for axis in axes)]


def _squeeze(call: Call) -> list[Shape]:
    source = call.inputs[0].shape
    axes = check_axes(call, len(source))
    for axis in axes:
        if source[axis] != 1:
            raise call.error(f"dimension {axis} is {source[axis]}, not 1", at="axes")
    return [tuple(extent for axis, extent in enumerate(source) if axis not in axes)]


def _unsqueeze(call: Call) -> list[Shape]:
    source = call.inputs[0].shape
    rank = len(source) + len(call.attrs["axes"])
    axes = check_axes(call, rank)
    extents = iter(source)
    return [tuple(1 if axis in axes else next(extents) for axis in range(rank))]


def _joined(call: Call) -> list[Shape]:
    if not call.inputs:
        raise call.error("there are no values", at="values")
    return [tensor.shape for tensor in call.inputs]


def _concat(call: Call) -> list[Shape]:
    shapes = _joined(call)
    first = shapes[0]
    axis = check_axis(call, len(first))
    for shape, tensor in zip(shapes, call.inputs, strict=True):
        if (*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) or len(
            shape
        ) != len(first):
            raise call.error(
                f"{tensor.name!r} of shape {list(shape)} differs from {list(first)} "
                f"in more than dimension {axis}",
                at="values",
            )
    return [(*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])]


def _stack(call: Call) -> list[Shape]:
    shapes = _joined(call)
    if len(set(shapes)) > 1:
        raise call.error("the values have different shapes", at="values")
    axis = check_axis(call, len(shapes[0]) + 1)
    return [(*shapes[0][:axis], len(shapes), *shapes[0][axis:])]


def _split(call: Call) -> list[Shape]:
    source, ratios = call.inputs[0].shape, call.attrs["ratios"]
    axis = check_axis(call, len(source))
    if not ratios or any(ratio < 1 for ratio in ratios) or source[axis] % sum(ratios):
        raise call.error(
            f"ratios {ratios} do not divide the {source[axis]} elements of dimension {axis}",
            at="ratios",
        )
    unit = source[axis] // sum(ratios)
    return [(*source[:axis], unit * ratio, *source[axis + 1 :]) for ratio in ratios]


def _unstack(call: Call) -> list[Shape]:
    source = call.inputs[0].shape
    axis = check_axis(call, len(source))
    return [(*source[:axis], *source[axis + 1 :])] * source[axis]


def _copy_n(call: Call) -> list[Shape]:
    if call.attrs["times"] < 1:
        raise call.error("times must be positive", at="times")
    return [call.inputs[0].shape] * int(call.attrs["times"])


def _slice(call: Call) -> list[Shape]:
    source = call.inputs[0].shape
    axes = check_axes(call, len(source))
    call.attrs["stride"] = call.attrs["stride"] or [1] * len(axes)
    call.attrs.update(begin=[*call.attrs["begin"]], end=[*call.attrs["end"]])
    for name in ("begin", "end", "stride"):
        if len(call.attrs[name]) != len(axes):
            raise call.error(f"{name} must have {len(axes)} items like axes", at=name)
    to_end = all(stride == 1 for stride in call.attrs["stride"])
    result = list(source)
    for index, axis in enumerate(axes):
        extent, stride = source[axis], call.attrs["stride"][index]
        begin, end = call.attrs["begin"][index], call.attrs["end"][index]
        if stride == 0:
            raise call.error("stride must not be 0", at="stride")
        end = extent if to_end and end == 0 else end
        backwards = int(stride < 0)
        begin, end = (
            min(max(bound + extent if bound < 0 else bound, -backwards), extent - backwards)
            for bound in (begin, end)
        )
        result[axis] = -((begin - end) // stride)
        if result[axis] < 1:
            raise call.error(f"nothing is left of dimension {axis} of {list(source)}", at="end")
        if not backwards:
            call.attrs["begin"][index], call.attrs["end"][index] = begin, end
    return [tuple(result)]


def _tile(call: Call) -> list[Shape]:
    source, repeats = call.inputs[0].shape, call.attrs["repeats"]
    if len(repeats) != len(source) or any(repeat < 1 for repeat in repeats):
        raise call.error(f"repeats must have {len(source)} positive items", at="repeats")
    return [tuple(extent * repeat for extent, repeat in zip(source, repeats, strict=True))]


def _pad(call: Call) -> list[Shape]:
    source, padding = call.inputs[0].shape, call.attrs["padding"]
    check_choice(call, "border", ("constant", "replicate", "reflect", "reflect-even"))
    if len(padding) != len(source):
        raise call.error(
            f"padding must have {len(source)} items like the rank of the input, not {len(padding)}",
            at="padding",
        )
    result = tuple(p + extent + q for extent, (p, q) in zip(source, padding, strict=True))
    if any(extent < 1 for extent in result):
        raise call.error(f"padding {padding} leaves nothing of {list(source)}", at="padding")
    return [result]


def _gather(call: Call) -> list[Shape]:
    source, indices = call.inputs[0].shape, call.inputs[1].shape
    axis = check_axis(call, len(source))
    return [(*source[:axis], *indices, *source[axis + 1 :])]


def _product(
    call: Call, left: Shape, right: Shape, *, transpose_left: bool, transpose_right: bool
) -> Shape:
    if len(left) != len(right) or len(left) < 2:
        raise call.error(
            f"{call.inputs[0].name!r} has rank {len(left)} and {call.inputs[1].name!r} has rank "
            f"{len(right)}, but both must have the same rank of at least 2",
            "reshape or unsqueeze one of them",
        )
    rows, inner = left[-2:][::-1] if transpose_left else left[-2:]
    other, columns = right[-2:][::-1] if transpose_right else right[-2:]
    if inner != other:
        raise call.error(
            f"{call.inputs[0].name!r} of shape {list(left)} and {call.inputs[1].name!r} of shape "
            f"{list(right)} do not multiply: {inner} is not {other}"
        )
    return (*broadcast(call, [left[:-2], right[:-2]]), rows, columns)


def _matmul(call: Call) -> list[Shape]:
    left, right = (tensor.shape for tensor in call.inputs)
    flags = (call.attrs["transposeA"], call.attrs["transposeB"])
    return [_product(call, left, right, transpose_left=flags[0], transpose_right=flags[1])]


def _linear(call: Call) -> list[Shape]:
    source, kernel, bias = (tensor.shape for tensor in call.inputs)
    result = _product(call, source, kernel, transpose_left=False, transpose_right=True)
    if not spreads(bias, result):
        raise call.error(
            f"the bias {call.inputs[2].name!r} has shape {list(bias)}, but the result "
            f"{list(result)}",
            f"give it shape [1, {result[-1]}]",
            at="bias",
        )
    return [result]


STANDARD_RULES: dict[str, Callable[[Call], list[Shape]]] = {
    **dict.fromkeys(_SAME, same),
    **dict.fromkeys(_ELEMENTWISE, elementwise),
    **dict.fromkeys(_ONTO_INPUT, _onto_input),
    **dict.fromkeys(_OVER_AXES, _over_axes),
    **dict.fromkeys(_OVER_WINDOW, _over_window),
    **dict.fromkeys(_REDUCE, reduced),
    "reshape": _reshape,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "concat": _concat,
    "stack": _stack,
    "split": _split,
    "unstack": _unstack,
    "slice": _slice,
    "tile": _tile,
    "pad": _pad,
    "gather": _gather,
    "copy_n": _copy_n,
    "add_n": elementwise,
    "matmul": _matmul,
    "linear": _linear,
}
