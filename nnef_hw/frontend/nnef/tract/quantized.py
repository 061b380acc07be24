"""Products of integer codes with explicit zero points and scales: real numbers in the graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.evaluation.scope import Names
from nnef_hw.frontend.nnef.tract.datum import datum_type
from nnef_hw.frontend.nnef.tract.products import legacy_expression
from nnef_hw.frontend.nnef.tract.values import cast, number
from nnef_hw.ir import Tensor

__all__ = ["QUANTIZED"]

_INTEGER = re.compile(r"([iu])(8|16|32|64)", re.IGNORECASE)


def _real(call: Invoked, value: object, parameter: str, side: str) -> Tensor:
    """Return codes as the numbers they stand for; tensors with a quantization are numbers."""
    tensor = call.evaluator.tensor(value, f"{call.name}_{parameter}", call.location)
    if tensor.quant is not None:
        return tensor
    zero, scale = (float(number(call, f"{side}{key}")) for key in ("0", "_scale"))
    if tensor.data is not None:
        data = (tensor.data - zero) * scale
        return call.evaluator.builder.constant(f"{tensor.name}_real", data, location=call.location)
    shifted = call.call("sub", cast(call, tensor, "scalar"), zero)
    result: Tensor = call.call("mul", shifted, scale)
    return result


def _bias(call: Invoked) -> Tensor:
    """Return the bias: its steps are those of the product."""
    bias = call.tensor("bias")
    if bias.dtype == "scalar":
        return bias
    step = float(number(call, "a_scale") * number(call, "b_scale"))
    result: Tensor = call.call("mul", cast(call, bias, "scalar"), step)
    return result


def _typed(call: Invoked, parameter: str, make: Callable[[Names], Tensor]) -> Tensor:
    """Return a result, made under these names, in its type.

    Real numbers have the quantization that the type contains; of an integer type are codes.
    """
    name = call.values[parameter]
    dtype, quant = datum_type(call, parameter) if name else ("scalar", None)
    if dtype != "integer":
        result = make(call.names)
        return result if quant is None else call.evaluator.builder.add(replace(result, quant=quant))
    real = make(None)
    steps = call.call("round_even", call.call("div", real, float(number(call, "c_scale"))))
    codes = call.call("add", steps, float(number(call, "c0")))
    match = _INTEGER.fullmatch(name)
    if match:
        bits = int(match[2])
        low = -(2.0 ** (bits - 1)) if match[1].lower() == "i" else 0.0
        codes = call.call("clamp", codes, low, low + 2.0**bits - 1)
    return cast(call, codes, "integer", call.name)


def _matmul(call: Invoked) -> Tensor:
    left = _real(call, call.values["A"], "A", "a")
    right = _real(call, call.values["B"], "B", "b")
    expression = legacy_expression(call, len(left.shape))
    product = call.call("einsum", [left, right], expr=expression)
    bias = _bias(call)
    return _typed(call, "output_type", lambda names: call.call("add", product, bias, names=names))


def _einsum(call: Invoked) -> Tensor:
    """Multiply; behind the factors' terms the expression has those of bias and six numbers."""
    terms, _, out = call.values["expr"].replace(" ", "").partition("->")
    factors = terms.split(",")
    if len(call.values["inputs"]) != 2 or len(factors) < 2:
        raise call.error("it multiplies two tensors", at="expr")
    left, right = (
        _real(call, value, "inputs", side)
        for value, side in zip(call.values["inputs"], "ab", strict=True)
    )
    product = call.call("einsum", [left, right], expr=f"{factors[0]},{factors[1]}->{out}")
    bias = _bias(call)
    letters = factors[2] if len(factors) > 2 else ""
    if letters:
        bias = call.call("transpose", bias, axes=[letters.index(x) for x in out if x in letters])
        bias = call.call(
            "unsqueeze", bias, axes=[axis for axis, x in enumerate(out) if x not in letters]
        )
    return _typed(call, "output", lambda names: call.call("add", product, bias, names=names))


def _conv(call: Invoked) -> Tensor:
    values = call.values
    attrs = {key: values[key] for key in ("dilation", "stride", "padding", "border")}
    source = _real(call, values["input"], "input", "a")
    kernel = _real(call, values["filter"], "filter", "b")
    groups = values["group"] if values["group"] != 1 else values["groups"]
    bias = _bias(call)
    return _typed(
        call,
        "output_dt",
        lambda names: call.call("conv", source, kernel, bias, groups=groups, names=names, **attrs),
    )


QUANTIZED: Mapping[str, Callable[[Invoked], object]] = {
    "tract_core_qmatmul": _matmul,
    "tract_core_einsum_q": _einsum,
    "tract_core_qconv": _conv,
}
"""Lowerings by operator."""
