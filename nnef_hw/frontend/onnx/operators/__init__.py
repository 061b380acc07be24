"""How each ONNX operator is said in NNEF; importing this fills the table."""

from nnef_hw.frontend.onnx.operators import (
    casts,
    constants,
    control,
    elementwise,
    indexing,
    matrix,
    normalization,
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
    "control",
    "elementwise",
    "indexing",
    "matrix",
    "normalization",
    "recurrent",
    "reductions",
    "resize",
    "shapes",
    "slicing",
    "windows",
]
