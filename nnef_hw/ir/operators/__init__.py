"""The operators of the canonical and the fixed stage, and what is known of them."""

from nnef_hw.ir.operators.attributes import Attributes
from nnef_hw.ir.operators.audio import (
    FrontAttributes,
    LogBandsAttributes,
    LogMelAttributes,
    LogSpectrumAttributes,
    MicroFrontendAttributes,
)
from nnef_hw.ir.operators.contraction import Contraction, ContractionAttributes
from nnef_hw.ir.operators.data_movement import FactorAttributes, PadAttributes, SliceAttributes
from nnef_hw.ir.operators.operator import CanonicalOperator, Operator, Trait
from nnef_hw.ir.operators.registry import PerOperator, canonical_operators, operator
from nnef_hw.ir.operators.resampling import InterpolateAttributes
from nnef_hw.ir.operators.window import (
    ConvAttributes,
    PoolAttributes,
    WeightsAttributes,
    WindowAttributes,
)

__all__ = [
    "Attributes",
    "CanonicalOperator",
    "Contraction",
    "ContractionAttributes",
    "ConvAttributes",
    "FactorAttributes",
    "FrontAttributes",
    "InterpolateAttributes",
    "LogBandsAttributes",
    "LogMelAttributes",
    "LogSpectrumAttributes",
    "MicroFrontendAttributes",
    "Operator",
    "PadAttributes",
    "PerOperator",
    "PoolAttributes",
    "SliceAttributes",
    "Trait",
    "WeightsAttributes",
    "WindowAttributes",
    "canonical_operators",
    "operator",
]
