"""ONNX models to the one Graph."""

from nnef_hw.frontend.onnx.reader import load_onnx, onnx_shapes

__all__ = ["load_onnx", "onnx_shapes"]
