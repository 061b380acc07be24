"""Linear layers and products of matrices."""

from __future__ import annotations

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.frontend.tflite.operators.bias import bias_of

__all__: list[str] = []


@lowers("FULLY_CONNECTED", newest=14)
def fully_connected(call: TfliteCall) -> Value:
    """Multiply rows with a filter [outC, C]; rows of a tensor of higher rank are flattened."""
    x, weights = call.required(0), call.required(1)
    if call.option("WeightsFormat"):
        raise call.unsupported("the weights are shuffled", "convert the model for a CPU")
    if weights.rank != 2:
        raise call.error(f"the filter has shape {list(weights.shape)}, not of two dimensions")
    outputs, inputs = weights.shape
    if not inputs or x.volume % inputs:
        raise call.error(f"a filter of {inputs} inputs does not fit the shape {list(x.shape)}")
    rows = call.reshaped(x, (x.volume // inputs, inputs))
    if weights.data is None:
        y = call.emit("matmul", rows, call.plain(weights), transposeA=False, transposeB=True)
        if call.input(2) is not None:
            y = call.emit("add", y, bias_of(call, 2, 0))
    else:
        y = call.emit("linear", rows, call.plain(weights), bias_of(call, 2, 0))
    y = call.activated(y)
    if call.option("KeepNumDims") and x.rank > 1:
        y = call.reshaped(y, (*x.shape[:-1], outputs))
    return y


@lowers("BATCH_MATMUL", newest=4)
def batch_matmul(call: TfliteCall) -> Value:
    a, b = (call.plain(call.required(index)) for index in (0, 1))
    rank = max(a.rank, b.rank)
    if min(a.rank, b.rank) < 2:
        raise call.error(f"the shapes {list(a.shape)} and {list(b.shape)} are no matrices")
    a, b = (call.reshaped(x, (1,) * (rank - x.rank) + x.shape) for x in (a, b))
    return call.emit(
        "matmul",
        a,
        b,
        transposeA=bool(call.option("AdjX")),
        transposeB=bool(call.option("AdjY")),
    )


@lowers("L2_NORMALIZATION", newest=2)
def l2_normalization(call: TfliteCall) -> Value:
    """Divide by the norm of the last axis; the square of a norm is at least 1e-6."""
    x = call.required(0)
    axis = x.stored_axis(x.rank - 1)
    return call.activated(call.emit("l2_normalization", x, axes=[axis], bias=0.0, epsilon=1e-3))


@lowers("CUMSUM", newest=1)
def cumsum(call: TfliteCall) -> Value:
    x = call.required(0)
    [axis] = call.integers(1, "the axis")
    return call.emit(
        "cumsum",
        x,
        axis=x.stored_axis(call.axis(axis, x.rank)),
        exclusive=bool(call.option("Exclusive")),
        reverse=bool(call.option("Reverse")),
    )
