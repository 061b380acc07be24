"""Integer operators of PULP's exporters, quantlib and Deeploy: requantization and arithmetic."""

from __future__ import annotations

from nnef_hw.frontend.onnx.file.declarations import PULP
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.lowering.requantization import (
    EXACT,
    as_integers,
    integers_in,
    requantized,
)
from nnef_hw.frontend.onnx.quantization.pulp_arguments import integers, levels, number

__all__: list[str] = []

_HALF = 0.5
"""Half a unit of a numerator keeps whole quotients from being rounded below themselves."""


@lowers("RequantShift", 1, domain=PULP)
def requant_shift(call: OnnxCall) -> Value:
    """``clip(floor((x * mul + add) / div + 1/2))`` to a number of levels, from 0 or around 0.

    Exact halves go up, as quantlib's module and the kernels of Deeploy round them.
    """
    x = call.required(0)
    mul, add = integers(call, 1, "the multiplier"), integers(call, 2, "the addend")
    old, new = call.attr("n_levels"), call.attr("n_levels_out")
    if (old is None) == (new is None):
        raise call.error(
            "exactly one of the attributes 'n_levels' and 'n_levels_out' must be given"
        )
    div, signed = number(call, "div"), number(call, "signed")
    if div < 1 or signed not in {0, 1}:
        raise call.error(f"div is {div:g} and signed is {signed:g}", "use 1 or more, and 0 or 1")
    count = levels(call, "n_levels" if new is None else "n_levels_out")
    lowest = -count // 2 if signed else 0
    limits = (lowest, lowest + count - 1)
    return requantized(call, x, mul, add + div // 2, div, limits)


@lowers("TrueIntegerDiv", 1, domain=PULP)
def true_integer_div(call: OnnxCall) -> Value:
    """``x * floor(Delta * eta / (y * eta + eps))``, with a constant y: a product.

    So Deeploy merges it into the requantization behind it, and so are the activations that it
    publishes of networks; quantlib's module rounds the quotient of each x instead.
    """
    x, y = call.required(0), call.attr("y")
    dividend, divisor = _scaled(call, float(y))
    return call.spread("mul", x, call.constant(float(dividend // divisor), EXACT))


@lowers("IntegerDiv", 1, domain=PULP)
def integer_div(call: OnnxCall) -> Value:
    """``floor(x * Delta * eta / (y * eta + eps) + 1/2)``, with a constant y.

    Exact halves go up, as in quantlib's module; a kernel of Deeploy takes negative ones down.
    """
    x = call.required(0)
    y = call.input(1)
    if y is None or y.data is None:
        raise call.unsupported(
            "what it divides by is computed when the network runs", "divide by a constant"
        )
    divisors = integers(call, 1, "the divisor")
    if not divisors.size:
        raise call.error("the divisor has no elements")
    dividend, _ = _scaled(call, float(divisors.min()))
    divisor = divisors * call.attr("eta") + call.attr("eps")
    doubled = call.spread("mul", x, call.constant(2.0 * dividend, EXACT))
    moved = call.spread("add", doubled, call.constant(divisor + _HALF, EXACT))
    return call.emit("floor", call.spread("div", moved, call.constant(2 * divisor, EXACT)))


def _scaled(call: OnnxCall, y: float) -> tuple[int, float]:
    """Return the factor of x, and the divisor of the least y, which is 1 or more."""
    delta, eta, eps = (call.attr(name) for name in ("Delta", "eta", "eps"))
    divisor = y * eta + eps
    if divisor < 1 or delta < 1 or eta < 1:
        raise call.error(
            f"Delta is {delta}, eta {eta}, eps {eps}, and the divisor y * eta + eps {divisor:g}",
            "all but eps must be 1 or more",
        )
    return delta * eta, divisor


@lowers("IntegerMean", 1, domain=PULP)
def integer_mean(call: OnnxCall) -> Value:
    """``floor(mean + 1/2)`` over axes, in the format of what is averaged."""
    x = call.required(0)
    axes = call.axes(call.attr("axes"), x.rank)
    if call.attr("keepdims") not in {0, 1}:
        raise call.error(f"keepdims is {call.attr('keepdims')}", "use 0 or 1")
    limits = integers_in(call.builder, x.tensor)
    if limits is None:
        raise call.unsupported(
            "the range of the integers that it averages is not known",
            "put a RequantShift in front of it",
        )
    mean = as_integers(call, call.emit("mean_reduce", x, axes=axes), limits)
    kept = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
    return mean if call.attr("keepdims") else call.reshaped(mean, kept)
