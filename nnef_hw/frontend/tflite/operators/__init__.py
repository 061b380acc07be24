"""The operators of TensorFlow Lite: importing this registers how each is lowered."""

from nnef_hw.frontend.tflite.operators import (
    elementwise,
    matrix,
    quantization,
    reductions,
    resize,
    shapes,
    slicing,
    windows,
)

__all__ = [
    "elementwise",
    "matrix",
    "quantization",
    "reductions",
    "resize",
    "shapes",
    "slicing",
    "windows",
]
