"""Operators of the domain ``ai.onnx.ml`` that scikit-learn's exporter, skl2onnx, writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.onnx.file.model import FLOAT32, INT64, Constant
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.operators.indexing import gather

__all__: list[str] = []

_ML = "ai.onnx.ml"
_FEATURES = 1


@dataclass(frozen=True, slots=True, eq=False)
class _Probabilities(Value):
    """Numbers of which those of a sample add up to 1."""


@lowers("Scaler", 1, domain=_ML)
def scaler(call: OnnxCall) -> Value:
    """``(x - offset) * scale``, each one number or one for each feature."""
    x = call.required(0)
    offset, scale = (_numbers(call, name) for name in ("offset", "scale"))
    for name, numbers in (("offset", offset), ("scale", scale)):
        if numbers.size not in {1, x.shape[-1] if x.rank else 1}:
            raise call.error(f"{name} has {numbers.size} numbers for {x.shape[-1]} features")
    x = Value(call.convert(x, FLOAT32).tensor, FLOAT32)
    moved = call.spread("sub", x, call.constant(offset, FLOAT32)) if offset.any() else x
    return call.spread("mul", moved, call.constant(scale, FLOAT32))


@lowers("LinearRegressor", 1, domain=_ML)
def linear_regressor(call: OnnxCall) -> Value:
    targets = call.attr("targets")
    return _transformed(call, _scores(call, targets))


@lowers("LinearClassifier", 1, domain=_ML)
def linear_classifier(call: OnnxCall) -> list[Value]:
    """Return the label with the greatest score, and the scores."""
    names, numbers = call.attr("classlabels_strings"), call.attr("classlabels_ints")
    if bool(names) == bool(numbers):
        raise call.error("exactly one of classlabels_ints and classlabels_strings must be given")
    classes = np.arange(len(names)) if names else np.array(numbers)
    scores = _scores(call, len(classes))
    index = call.emit("argmax_reduce", scores, element=INT64, axes=[1])
    index = call.emit("squeeze", index, axes=[1])
    return [_labelled(call, classes, index), _transformed(call, scores)]


@lowers("Normalizer", 1, domain=_ML)
def normalizer(call: OnnxCall) -> Value:
    """``x / norm(x)`` for each sample; probabilities have the norm 1."""
    x, norm = call.required(0), call.attr("norm")
    if norm not in _NORMS:
        raise call.error(f"norm is {norm!r}", f"use one of {', '.join(_NORMS)}")
    if isinstance(x, _Probabilities) and norm == "L1":
        return x
    return call.emit("div", x, _NORMS[norm](call, x, [x.rank - 1]))


def _greatest(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return call.emit("max_reduce", x, axes=axes)


def _sum(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return call.emit("sum_reduce", call.emit("abs", x), axes=axes, normalize=False)


def _length(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    squares = call.emit("sum_reduce", call.emit("sqr", x), axes=axes, normalize=False)
    return call.emit("sqrt", squares)


_NORMS: dict[str, Callable[[OnnxCall, Value, list[int]], Value]] = {
    "L1": _sum, "L2": _length, "MAX": _greatest,
}  # fmt: skip


@lowers("ZipMap", 1, domain=_ML)
def zip_map(call: OnnxCall) -> Value:
    """Give each score the name of its class, which a tensor has not."""
    return call.required(0)


@lowers("ArrayFeatureExtractor", 1, domain=_ML)
def array_feature_extractor(call: OnnxCall) -> Value:
    """Take elements along the last axis; of a list of classes this is their labels."""
    x, index = call.required(0), call.required(1)
    if x.rank == 1 and x.data is not None:
        return _labelled(call, x.data, call.reshaped(index, (1, index.volume)))
    flat = call.reshaped(index, (index.volume,))
    if flat.data is not None and flat.volume == 1:
        # a constant one is a part of the tensor
        part = gather(call.on(x, call.constant(int(flat.data[0]), INT64), axis=-1))
        return call.emit("unsqueeze", part, axes=[part.rank])
    taken: Value = gather(call.on(x, flat, axis=-1))
    return taken


def _labelled(call: OnnxCall, classes: Array, index: Value) -> Value:
    """Return the classes of given positions; their positions, if they are 0, 1, 2..."""
    if np.array_equal(classes, np.arange(len(classes))):
        return index
    element = INT64 if classes.dtype.kind == "i" else FLOAT32
    return call.emit("gather", call.constant(classes, element), index, element=element, axis=0)


def _scores(call: OnnxCall, count: int) -> Value:
    """Return products with the coefficients [count, features], and the intercepts added."""
    x = call.required(0)
    if x.rank != 2:
        raise call.error(f"the input has shape {list(x.shape)}, not [samples, features]")
    coefficients, intercepts = (_numbers(call, n) for n in ("coefficients", "intercepts"))
    features = x.shape[_FEATURES]
    if coefficients.size != count * features:
        raise call.unsupported(
            f"there are {coefficients.size} coefficients for {features} features and {count} "
            "classes",
            _with_features(call, coefficients.size, count),
        )
    if intercepts.size not in {0, count}:
        raise call.error(f"there are {intercepts.size} intercepts, not {count}")
    filters = Constant(coefficients.reshape(count, features), FLOAT32)
    bias = intercepts.reshape(1, -1) if intercepts.size else np.zeros((1, count), np.float32)
    x = call.convert(x, FLOAT32)
    return call.emit("linear", x, call.variable(filters), call.variable(Constant(bias, FLOAT32)))


def _with_features(call: OnnxCall, size: int, count: int) -> str:
    """Return the remedy for coefficients that do not fit the features."""
    features, rest = divmod(size, count)
    if rest or call.required(0).tensor.name not in call.builder.inputs:
        return "export one row of coefficients for each class"
    return f"if the input has {features}: --dim {call.node.inputs[0]}.{_FEATURES}={features}"


def _transformed(call: OnnxCall, scores: Value) -> Value:
    """Return scores behind the function that the node applies to them."""
    name = call.attr("post_transform")
    if name == "SOFTMAX":
        result = call.emit("softmax", scores, axes=[1])
        return _Probabilities(result.tensor, result.type)
    if name not in {"NONE", "LOGISTIC"}:
        raise call.unsupported(
            f"the function {name!r} of the scores is not supported",
            "use NONE, LOGISTIC or SOFTMAX",
        )
    return call.emit("sigmoid", scores) if name == "LOGISTIC" else scores


def _numbers(call: OnnxCall, name: str) -> NDArray[np.float32]:
    """Return an attribute of numbers; none if it is not given."""
    numbers = np.array(call.attr(name) or [], np.float32)
    if not np.isfinite(numbers).all():
        raise call.error(f"{name} has numbers that are not finite")
    return numbers
