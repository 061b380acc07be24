"""Components that compute functions of codes.

Tables, softmax, normalization, quotients and operators of two streams are here.
``parts.functions`` has their facts.
"""
