"""The operators of the canonical and the fixed stage, and what is known of them."""

from nnef_hw.ir.operators.operator import CanonicalOperator, Operator, Trait
from nnef_hw.ir.operators.registry import PerOperator, canonical_operators, operator

__all__ = [
    "CanonicalOperator",
    "Operator",
    "PerOperator",
    "Trait",
    "canonical_operators",
    "operator",
]
