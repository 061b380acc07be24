"""The operators of TensorFlow Lite: importing this registers how each is lowered."""

from nnef_hw.frontend.tflite.operators import (
    blocks,
    control,
    elementwise,
    matrix,
    quantization,
    recurrent,
    reductions,
    resize,
    shapes,
    slicing,
    states,
    windows,
)

__all__ = [
    "blocks",
    "control",
    "elementwise",
    "matrix",
    "quantization",
    "reductions",
    "recurrent",
    "resize",
    "shapes",
    "slicing",
    "states",
    "windows",
]
