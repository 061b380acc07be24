"""TensorFlow Lite files as plain values.

The schema's classes are used here alone. What an operator means stands in ``operators``.
"""
