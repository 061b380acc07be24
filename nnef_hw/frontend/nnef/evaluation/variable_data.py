"""Sources of the data of variables, and numbers of the document as arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.shapes import Call
from nnef_hw.ir import Tensor

__all__ = ["NoData", "VariableData", "literal_data"]

_DTYPES = {"scalar": np.float32, "integer": np.int64, "logical": np.bool_}


class VariableData(Protocol):
    """Sources of the data of variables."""

    def read(self, call: Call, tensor: Tensor) -> Tensor:
        """Return the tensor with its data and label; raise ModelError if there are none."""


class NoData:
    """Every variable is zero: for checks of a document without its data."""

    def read(self, call: Call, tensor: Tensor) -> Tensor:
        """Return the tensor with zeros that take no memory."""
        zero: Array = np.zeros((), _DTYPES[tensor.dtype])
        data = np.broadcast_to(zero, tensor.shape)
        return replace(tensor, data=data, label=call.attrs["label"])


def literal_data(values: Any, dtype: str, location: Location) -> Array:
    """Return numbers of the document as an array.

    Raises
    ------
    ModelError
        If a number is too large for the float32 that scalars are kept in.
    """
    with np.errstate(over="ignore"):
        data: Array = np.asarray(values, _DTYPES[dtype])
    if dtype == "scalar" and np.isinf(data).any() and np.isfinite(values).all():
        raise ModelError(
            "a number is too large for 32-bit floats", remedy="scale it down", location=location
        )
    return data
