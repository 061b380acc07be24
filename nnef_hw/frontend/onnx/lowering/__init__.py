"""ONNX nodes to nodes of the Graph: the machinery of all operators.

Calls, constants, quantized values and loops are here; protobuf is read in one module. Operators
themselves are in ``operators`` and ``quantization``.
"""
