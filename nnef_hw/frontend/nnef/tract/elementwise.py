"""Element-wise operators of tract: integers, logicals and scalars meet in the widest type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.tract.values import cast, promote
from nnef_hw.ir import Tensor

__all__ = ["ELEMENTWISE"]

_ARITHMETIC = ("add", "sub", "mul", "div", "pow", "min", "max")
_COMPARISONS = ("lt", "gt", "le", "ge", "eq", "ne")
_SHIFTS = {"tract_shl": "shift_left", "tract_shr": "shift_right"}
_BITWISE = {"tract_core_bitand": "and", "tract_core_bitor": "or", "tract_core_bitxor": "xor"}


def _arithmetic(call: Invoked) -> object:
    if promote(call, "x", "y") == "logical":
        for parameter in ("x", "y"):
            call.values[parameter] = cast(call, call.tensor(parameter), "integer")
    call.dtype = call.tensor("x").dtype
    return call.node()


def _comparison(call: Invoked) -> object:
    promote(call, "x", "y")
    return call.node()


def _select(call: Invoked) -> object:
    call.dtype = promote(call, "true_value", "false_value")
    call.values["condition"] = cast(call, call.tensor("condition"), "logical")
    return call.node()


def _concat(call: Invoked) -> object:
    parts = {f"values_{index}": value for index, value in enumerate(call.values["values"])}
    call.values |= parts
    call.dtype = promote(call, *parts)
    call.values["values"] = [call.values.pop(part) for part in parts]
    return call.node()


def _bitwise(call: Invoked) -> object:
    op, dtype = _BITWISE[call.op], promote(call, "x", "y")
    _check_bits(call, dtype)
    name = op if dtype == "logical" else f"bit_{op}"
    return call.call(name, call.tensor("x"), call.tensor("y"), names=call.names)


def _bitwise_not(call: Invoked) -> object:
    x: Tensor = call.tensor("x")
    _check_bits(call, x.dtype)
    return call.call("not" if x.dtype == "logical" else "bit_not", x, names=call.names)


def _shift(call: Invoked) -> object:
    _check_bits(call, promote(call, "x", "y"))
    x, y = (cast(call, call.tensor(parameter), "integer") for parameter in ("x", "y"))
    return call.call(_SHIFTS[call.op], x, y, names=call.names)


def _check_bits(call: Invoked, dtype: str) -> None:
    if dtype == "scalar":
        raise call.error("scalars have no bits", "cast them: tract_core_cast(x, to = 'i64')")


ELEMENTWISE: Mapping[str, Callable[[Invoked], object]] = {
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_BITWISE, _bitwise),
    "tract_core_bitnot": _bitwise_not,
    **dict.fromkeys(_SHIFTS, _shift),
    "select": _select,
    "concat": _concat,
}
"""Lowerings by operator."""
