"""Integers of TensorFlow Lite's kernels that follow from a model's formats.

Tables and arithmetic of its operators are made here. Their roundings are in ``arithmetic.tflite``.
"""
