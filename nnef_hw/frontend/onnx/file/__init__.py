"""ONNX models as plain values: nodes, tensors, symbols, order.

Files of any opset come out in one form. No module here makes a node of ours.
"""
