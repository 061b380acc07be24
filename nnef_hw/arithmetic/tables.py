"""Functions of one activation code as tables: of every code, or of knots with lines between them.

Design section 4. A code of at most :data:`TABLE_BITS` bits has an entry of its own, which makes
the function exact. Of a wider one the upper bits choose a knot, and the others where between it
and the next one the result lies: that is part of the numerics, and what the hardware computes,
unless the table has all codes of that, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import FloatArray, IntArray, QType

__all__ = ["TABLE_BITS", "look_up", "lowest_code", "table_size", "unary_table"]

TABLE_BITS = 8
"""Bits of a code that choose an entry."""


def table_size(bits: int) -> int:
    """Entries for codes of that width: ``2**bits``, or 257 knots for more than 8 bits."""
    return 1 << bits if bits <= TABLE_BITS else (1 << TABLE_BITS) + 1


def unary_table(
    function: Callable[[FloatArray], FloatArray], source: QType, target: QType
) -> IntArray:
    """Codes of ``function`` at every code of ``source``, or at every knot, lowest code first.

    With ``f = source.bits - 8``, knot i is at ``lowest code + i * 2**f``. The last one lies one
    step above the highest code; where the function is NaN there, it has the highest code's result.

    NaN and -inf give the lowest code of ``target``, +inf the highest.

    Returns
    -------
    :func:`table_size` codes of ``target``.
    """
    low_bits = max(source.bits - TABLE_BITS, 0)
    codes = lowest_code(source) + (np.arange(table_size(source.bits)) << low_bits)
    with np.errstate(all="ignore"):
        real = np.asarray(function(source.dequantize(codes)), np.float64)
        if low_bits and np.isnan(real[-1]):
            real[-1:] = function(source.dequantize(codes[-1:] - 1))
    finite = np.isfinite(real)
    result = target.quantize(np.where(finite, real, 0.0))
    result[np.isposinf(real)] = target.hi
    result[np.isnan(real) | np.isneginf(real)] = target.lo
    return result


def look_up(table: ArrayLike, codes: ArrayLike, source: QType) -> IntArray:
    """Return the results of codes of ``source`` by a :func:`unary_table`.

    With ``u = code - lowest code``: ``table[u]``; beyond 8 bits, with ``f = source.bits - 8``,
    ``i = u >> f`` and ``r = u & (2**f - 1)``,
    ``table[i] + (((table[i+1] - table[i]) * r + 2**(f-1)) >> f)``, which is never outside of the
    two knots. A table that has every code needs no knots.
    """
    entries = np.asarray(table, np.int64)
    places = np.asarray(codes, np.int64) - lowest_code(source)
    low_bits = source.bits - TABLE_BITS
    if low_bits <= 0 or len(entries) == 1 << source.bits:
        return entries[places]
    index, rest = places >> low_bits, places & ((1 << low_bits) - 1)
    rise = (entries[index + 1] - entries[index]) * rest
    result: IntArray = entries[index] + ((rise + (1 << (low_bits - 1))) >> low_bits)
    return result


def lowest_code(source: QType) -> int:
    """Code of all bits 0, or of the sign bit alone: a narrow format does not use it."""
    return -(1 << (source.bits - 1)) if source.signed else 0
