"""What is proved of each component of ``rtl/``: claims by its class, and by a name of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prover import Claim

from claims.arrays import ARRAYS
from claims.functions import FUNCTIONS
from claims.movement import MOVEMENT
from claims.operators import OPERATORS
from claims.windows import WINDOWS

__all__ = ["CLAIMS"]

CLAIMS: Mapping[str, Mapping[str, Callable[[], Claim]]] = {
    **MOVEMENT, **WINDOWS, **OPERATORS, **FUNCTIONS, **ARRAYS,
}  # fmt: skip
