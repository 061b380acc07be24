"""Shapes of the operators that dialects and ONNX need beyond the standard."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations

from nnef_hw.frontend.shapes.audio import AUDIO_RULES
from nnef_hw.frontend.shapes.call import Call
from nnef_hw.frontend.shapes.common import (
    Shape,
    check_axes,
    check_axis,
    check_choice,
    elementwise,
    reduced,
    same,
    spreads,
)
from nnef_hw.ir.operators import ContractionAttributes

__all__ = ["DEFAULTS", "EXTENDED_RULES"]

Rule = Callable[[Call], list[Shape]]

REDUCTIONS = ("none", "add", "mul", "min", "max")
COORDINATES = (
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
)  # fmt: skip
PLACES = ("half_pixel", "asymmetric", "align_corners")
ORDERS = tuple(map("".join, permutations("mkn")))
INTERPOLATIONS = ("nearest", "linear", "cubic")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


DEFAULTS: dict[str, dict[str, object]] = {
    "is_inf": {"positive": True, "negative": True},
    "mod": {"fmod": False},
    "gather_nd": {"batch_dims": 0},
    "scatter_elements": {"reduction": "none"},
    "scatter_nd": {"reduction": "none"},
    "resize": {
        "coordinates": "half_pixel",
        "interpolation": "nearest",
        "rounding": "round_prefer_floor",
        "cubic_coefficient": -0.75,
        "exclude_outside": False,
        "antialias": False,
    },
    "contraction": {
        "sets": 1,
        "matrices": 1,
        "repeats": 1,
        "order": "mkn",
        "scale": 1.0,
        "offset": 0.0,
    },
    "interpolate": {"coordinates": "half_pixel"},
    "log_bands": {"border": "constant", "power": 2},
    "log_mel": {"border": "constant", "floor": 0.0, "power": 2},
    "normalize": {"centered": True},
    "rescale": {"offset": 0.5},
    "integer_normalize": {"centered": True},
    "integer_softmax": {"levels": 256},
    "topk": {"largest": True},
    "trilu": {"k": 0, "upper": True},
    "cumsum": {"exclusive": False, "reverse": False},
}
"""Attributes that callers may leave out."""


def _completed(op: str, rule: Rule) -> Rule:
    """Complete the attributes before the rule sees them."""

    def completed(call: Call) -> list[Shape]:
        call.attrs.update({**DEFAULTS[op], **call.attrs})
        return rule(call)

    return completed if op in DEFAULTS else rule


def _einsum(call: Call) -> list[Shape]:
    expr = call.attrs["expr"].replace(" ", "")
    left, arrow, right = expr.partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(call.inputs):
        raise call.error(
            f"expr {expr!r} must have {len(call.inputs)} terms and a '->'",
            "write one letter for each dimension, as 'mk,kn->mn'",
            at="expr",
        )
    extents: dict[str, int] = {}
    for term, tensor in zip(terms, call.inputs, strict=True):
        letters = (term.isascii() and term.isalpha()) or not term
        if not letters or len(term) != len(tensor.shape):
            raise call.error(
                f"the term {term!r} must have {len(tensor.shape)} letters like the rank of "
                f"{tensor.name!r}",
                at="expr",
            )
        for letter, extent in zip(term, tensor.shape, strict=True):
            previous = extents.setdefault(letter, extent)
            if previous != extent and 1 not in {previous, extent}:
                raise call.error(
                    f"{letter!r} of {expr!r} is {previous} and, for {tensor.name!r}, {extent}",
                    at="expr",
                )
            extents[letter] = max(previous, extent)
    if len(set(right)) != len(right) or not extents.keys() >= set(right):
        raise call.error(
            f"the result {right!r} of {expr!r} must be made of different letters of the terms",
            at="expr",
        )
    call.attrs["expr"] = expr
    return [tuple(extents[letter] for letter in right)]


def _broadcast_to(call: Call) -> list[Shape]:
    source, shape = call.inputs[0].shape, tuple(call.attrs["shape"])
    fits = len(source) == len(shape)
    if not fits or any(a not in {1, b} for a, b in zip(source, shape, strict=True)):
        raise call.error(
            f"the shape {list(source)} of {call.inputs[0].name!r} does not extend to {list(shape)}",
            "unsqueeze it; only extents of 1 grow",
            at="shape",
        )
    return [shape]


def _gather_elements(call: Call) -> list[Shape]:
    source, indices = call.inputs[0].shape, call.inputs[1].shape
    axis = check_axis(call, len(source))
    fits = len(source) == len(indices) and all(
        b <= a or i == axis for i, (a, b) in enumerate(zip(source, indices, strict=True))
    )
    if not fits:
        raise call.error(
            f"the indices {call.inputs[1].name!r} of shape {list(indices)} do not fit into the "
            f"shape {list(source)} outside dimension {axis}",
            at="indices",
        )
    return [indices]


def _nd_depth(call: Call, batch_dims: int) -> int:
    """Return how many dimensions of the input an index of gather_nd or scatter_nd names."""
    source, indices = call.inputs[0].shape, call.inputs[1].shape
    if not 0 <= batch_dims < min(len(indices), len(source) + 1):
        raise call.error(
            f"batch_dims {batch_dims} do not fit ranks {len(source)} and {len(indices)}",
            at="batch_dims",
        )
    if source[:batch_dims] != indices[:batch_dims]:
        raise call.error(
            f"shapes {list(source)} and {list(indices)} differ in the first {batch_dims} "
            "dimensions",
            at="indices",
        )
    depth = indices[-1]
    if batch_dims + depth > len(source):
        raise call.error(
            f"the indices {call.inputs[1].name!r} name {depth} dimensions behind {batch_dims}, "
            f"but {call.inputs[0].name!r} has rank {len(source)}",
            at="indices",
        )
    return depth


def _gather_nd(call: Call) -> list[Shape]:
    source, indices = call.inputs[0].shape, call.inputs[1].shape
    batch_dims: int = call.attrs["batch_dims"]
    depth = _nd_depth(call, batch_dims)
    return [(*indices[:-1], *source[batch_dims + depth :])]


def _check_updates(call: Call, expected: Shape) -> None:
    check_choice(call, "reduction", REDUCTIONS)
    if call.inputs[2].shape != expected:
        raise call.error(
            f"the updates {call.inputs[2].name!r} have shape {list(call.inputs[2].shape)}, "
            f"but must have {list(expected)}",
            at="updates",
        )


def _scatter_elements(call: Call) -> list[Shape]:
    _check_updates(call, _gather_elements(call)[0])
    return [call.inputs[0].shape]


def _scatter_nd(call: Call) -> list[Shape]:
    source, indices = call.inputs[0].shape, call.inputs[1].shape
    _check_updates(call, (*indices[:-1], *source[_nd_depth(call, 0) :]))
    return [source]


def _resize(call: Call) -> list[Shape]:
    rank = len(call.inputs[0].shape)
    for name in ("size", "scale"):
        values = call.attrs[name]
        if len(values) != rank or any(value <= 0 for value in values):
            raise call.error(f"{name} {list(values)} must have {rank} positive items", at=name)
    check_choice(call, "coordinates", COORDINATES)
    check_choice(call, "interpolation", INTERPOLATIONS)
    check_choice(call, "rounding", ROUNDINGS)
    return [tuple(call.attrs["size"])]


def _interpolate(call: Call) -> list[Shape]:
    source, size = call.inputs[0].shape, call.attrs["size"]
    if len(source) != 4:
        raise call.error(f"the input has shape {list(source)}, not of four dimensions")
    if len(size) != 2 or any(value <= 0 for value in size):
        raise call.error(f"size {list(size)} must have 2 positive items", at="size")
    check_choice(call, "coordinates", PLACES)
    return [(*source[:2], *size)]


def _normalize(call: Call) -> list[Shape]:
    source, *constants = call.inputs
    if not check_axes(call, len(source.shape)):
        raise call.error("axes [] name no dimension to normalize", at="axes")
    for tensor in constants:
        if not spreads(tensor.shape, source.shape):
            raise call.error(
                f"{tensor.name!r} of shape {list(tensor.shape)} does not spread over the shape "
                f"{list(source.shape)} of {source.name!r}"
            )
    return same(call)


def _contraction(call: Call) -> list[Shape]:
    x, y = (tensor.shape for tensor in call.inputs)
    for shape in (x, y):
        if len(shape) < 2 or shape[0] != x[0]:
            raise call.error(
                f"operands of shapes {list(x)} and {list(y)} are not images of a batch"
            )
    check_choice(call, "order", ORDERS)
    for name in ("sets", "matrices", "repeats"):
        if call.attrs[name] < 1:
            raise call.error(f"{name} = {call.attrs[name]} must be positive", at=name)
    try:
        sizes = ContractionAttributes.parse(call.attrs).sizes(x, y)
    except ValueError as error:
        raise call.error(str(error)) from error
    return [(x[0], sizes.columns, *x[2:])]


def _lookup(call: Call) -> list[Shape]:
    table, index = (tensor.shape for tensor in call.inputs)
    if len(table) != 2:
        raise call.error(f"the table of shape {list(table)} has no rows", "use [rows, channels]")
    if index[:2] != (1, 1):
        raise call.error(f"integers of shape {list(index)} are no image", "use [1, 1, ...]")
    return [(1, table[1], *index[2:])]


def _causal_mask(call: Call) -> list[Shape]:
    axes = check_axes(call, len(call.inputs[0].shape))
    if len(axes) != 1:
        raise call.error(f"axes {axes} are not one dimension", at="axes")
    _check_place(call)
    return same(call)


def _write_row(call: Call) -> list[Shape]:
    cache, row = (tensor.shape for tensor in call.inputs[:2])
    if len(cache) != 3 or row != cache[:2]:
        raise call.error(
            f"a row of shape {list(row)} does not fit a cache of shape {list(cache)}",
            "use [1, C] and [1, C, T]",
        )
    _check_place(call)
    return same(call)


def _check_place(call: Call) -> None:
    """Refuse a place that is not one integer."""
    place = call.inputs[-1]
    if math.prod(place.shape) != 1:
        raise call.error(f"{place.name!r} of shape {list(place.shape)} is not one number")


def _integer_normalize(call: Call) -> list[Shape]:
    shapes = _normalize(call)
    for tensor in call.inputs[1:]:
        along = [axis for axis, extent in enumerate(tensor.shape) if extent > 1]
        if not set(along) <= set(call.attrs["axes"]):
            raise call.error(
                f"{tensor.name!r} of shape {list(tensor.shape)} varies along other axes than "
                f"{call.attrs['axes']}",
                "give one number, or one for each that is normalized",
            )
    return shapes


def _integer_softmax(call: Call) -> list[Shape]:
    source, exponentials = call.inputs
    check_axes(call, len(source.shape))
    if len(exponentials.shape) != 2 or exponentials.shape[0] != 1:
        raise call.error(
            f"{exponentials.name!r} of shape {list(exponentials.shape)} is no row of exponentials",
            "give them the shape [1, N]",
        )
    return same(call)


def _topk(call: Call) -> list[Shape]:
    source, k = call.inputs[0].shape, call.attrs["k"]
    axis = check_axis(call, len(source))
    if not 1 <= k <= source[axis]:
        raise call.error(
            f"k = {k} must be in 1..{source[axis]}, the extent of dimension {axis}", at="k"
        )
    return [(*source[:axis], k, *source[axis + 1 :])] * 2


def _depth_to_space(call: Call) -> list[Shape]:
    """Spread channels [y, x, C] over ``factor`` rows and columns each."""
    source, factor = call.inputs[0].shape, call.attrs["factor"]
    if len(source) != len(factor) + 2 or min(factor, default=0) < 1:
        raise call.error(
            f"factor {list(factor)} must have a positive item for each dimension of "
            f"{list(source)} behind the second",
            at="factor",
        )
    if source[1] % math.prod(factor):
        raise call.error(
            f"factor {list(factor)} does not divide the {source[1]} channels", at="factor"
        )
    extents = (n * f for n, f in zip(source[2:], factor, strict=True))
    return [(source[0], source[1] // math.prod(factor), *extents)]


def _one_hot(call: Call) -> list[Shape]:
    indices, *values = call.inputs
    for tensor in values:
        if math.prod(tensor.shape) != 1:
            raise call.error(f"{tensor.name!r} of shape {list(tensor.shape)} is not one number")
    if call.attrs["depth"] < 1:
        raise call.error(f"depth {call.attrs['depth']} must be positive", at="depth")
    axis = check_axis(call, len(indices.shape) + 1)
    return [(*indices.shape[:axis], call.attrs["depth"], *indices.shape[axis:])]


def _trilu(call: Call) -> list[Shape]:
    if len(call.inputs[0].shape) < 2:
        raise call.error(f"{call.inputs[0].name!r} is not a matrix", at="input")
    return same(call)


def _cumsum(call: Call) -> list[Shape]:
    check_axis(call, len(call.inputs[0].shape))
    return same(call)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("erf", "hard_swish", "round_even", "is_nan", "is_inf", "bit_not"), same),
    **dict.fromkeys(
        (
            "xor",
            "mod",
            "bit_and",
            "bit_or",
            "bit_xor",
            "shift_left",
            "shift_right",
            "quotient",
        ),
        elementwise,
    ),
    **dict.fromkeys(("product_reduce", "argmax_reduce_last", "argmin_reduce_last"), reduced),
    "einsum": _einsum,
    "broadcast": _broadcast_to,
    "depth_to_space": _depth_to_space,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "resize": _resize,
    "interpolate": _interpolate,
    "contraction": _contraction,
    "normalize": _normalize,
    "lookup": _lookup,
    "causal_mask": _causal_mask,
    "write_row": _write_row,
    "rescale": same,
    "integer_normalize": _integer_normalize,
    "integer_softmax": _integer_softmax,
    **AUDIO_RULES,
    "topk": _topk,
    "one_hot": _one_hot,
    "trilu": _trilu,
    "cumsum": _cumsum,
}
EXTENDED_RULES = {op: _completed(op, rule) for op, rule in _RULES.items()}
