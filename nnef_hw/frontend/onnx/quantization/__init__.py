"""Lowering of ONNX operators on codes, of the standard and of other tools.

QONNX, PULP, onnxruntime and the standard each have a file. Importing this package fills the table.
"""

from nnef_hw.frontend.onnx.quantization import contrib, pulp, pulp_functions, qonnx, quantization

__all__ = ["contrib", "pulp", "pulp_functions", "qonnx", "quantization"]
