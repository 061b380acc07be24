"""tract's names of item types: ``f32``, ``i64``, ``TDim``, ``QU8(Z:3 S:0.5)``."""

from __future__ import annotations

import re

from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.ir import Quantization

__all__ = ["datum_type"]

_DTYPES = {
    **dict.fromkeys(("f16", "f32", "f64"), "scalar"),
    **dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "tdim"), "integer"),
    "bool": "logical",
}
_QUANTIZED = re.compile(r"q([iu])(8|32)\(z:(-?\d+) s:([^)]+)\)", re.IGNORECASE)


def datum_type(call: Invoked, parameter: str) -> tuple[str, Quantization | None]:
    """Return NNEF's data-type for a name, and the quantization it contains.

    Raises
    ------
    UnsupportedError
        If NNEF has no such type: complex numbers, strings.
    """
    name: str = call.values[parameter]
    quantized = _QUANTIZED.fullmatch(name)
    if quantized:
        args = {
            "zero_point": int(quantized[3]),
            "scale": float(quantized[4]),
            "bits": int(quantized[2]),
            "signed": quantized[1].lower() == "i",
            "symmetric": False,
        }
        return "scalar", Quantization("zero_point_linear_quantize", args)
    if name.lower() not in _DTYPES:
        raise UnsupportedError(
            f"{call.op} {call.name!r}: tensors of {name!r} are not supported",
            remedy=f"the types are {', '.join(_DTYPES)}",
            location=call.places.get(parameter, call.location),
        )
    return _DTYPES[name.lower()], None
