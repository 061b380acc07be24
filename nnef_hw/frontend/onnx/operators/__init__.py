"""Lowering of each ONNX operator to NNEF; importing this fills the table."""

from nnef_hw.frontend.onnx.operators import (
    casts,
    constants,
    contrib,
    control,
    elementwise,
    indexing,
    matrix,
    normalization,
    quantization,
    recurrent,
    reductions,
    resize,
    shapes,
    slicing,
    windows,
)

__all__ = [
    "casts",
    "constants",
    "contrib",
    "control",
    "elementwise",
    "indexing",
    "matrix",
    "normalization",
    "quantization",
    "recurrent",
    "reductions",
    "resize",
    "shapes",
    "slicing",
    "windows",
]
