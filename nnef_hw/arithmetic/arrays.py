"""Types of NumPy arrays, by what their elements are."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "FloatArray", "IntArray"]

Array: TypeAlias = NDArray[Any]
"""Elements of any type: real numbers, integers, truth values."""
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
