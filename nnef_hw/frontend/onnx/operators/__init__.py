"""Lowering of each ONNX operator to NNEF; importing this fills the table."""

from nnef_hw.frontend.onnx.operators import (
    casts,
    channels_last,
    classical,
    constants,
    control,
    elementwise,
    fused,
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
    "channels_last",
    "classical",
    "constants",
    "control",
    "elementwise",
    "fused",
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
