"""Parts that compute functions of codes: tables, softmax, normalization, quotients, operators.

Their components are in ``rtl.functions``. Sums over windows are elsewhere.
"""
