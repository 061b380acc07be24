"""ONNX models to the one Graph."""

from nnef_hw.frontend.onnx.reader import load_onnx

__all__ = ["load_onnx"]
