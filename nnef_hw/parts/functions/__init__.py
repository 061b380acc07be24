"""Parts that compute functions of codes: tables, softmax, quotients, operators of two streams.

Their components are in ``rtl.functions``. Sums over windows are elsewhere.
"""
