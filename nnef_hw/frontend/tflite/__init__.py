"""TensorFlow Lite models to the one Graph."""

from nnef_hw.frontend.tflite.reader import load_tflite

__all__ = ["load_tflite"]
