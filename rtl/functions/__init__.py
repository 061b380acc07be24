"""Components that compute functions of codes.

Tables, softmax, quotients and operators of two streams are here. ``parts.functions`` has their
facts.
"""
