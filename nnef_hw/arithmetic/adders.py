"""Products with constant matrices as graphs of adders.

A product with a constant is a sum of shifted values, one for each non-zero signed digit of the
constant. All sums of a matrix are one graph: what several have in common is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.arithmetic.subexpressions import Row, share, signed_digits

__all__ = ["Adder", "AdderGraph", "multiply_matrix"]


class Adder(NamedTuple):
    """``first + sign * (second << shift)``, of values by their number.

    Without a ``first`` value there is a ``constant`` in its place.
    """

    first: int | None
    second: int
    shift: int
    sign: int
    constant: int = 0


class _Term(NamedTuple):
    """A shifted value in a sum; None is a constant, which is not shifted."""

    level: int
    shift: int
    value: int | None
    sign: int
    constant: int = 0


@dataclass(frozen=True, kw_only=True)
class AdderGraph:
    """Adders, each behind those whose values it takes.

    Parameters
    ----------
    inputs, bits, signed
        Number and format of the values that come; they are values 0, 1 ...
    adders
        Those that follow.
    results
        The value that each result is; None if it is a constant.
    constants
        What each of these is.
    """

    inputs: int
    bits: int
    signed: bool
    adders: tuple[Adder, ...]
    results: tuple[int | None, ...]
    constants: tuple[int, ...]

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Adders of the longest path from the inputs to each value, its own included."""
        levels = [0] * self.inputs
        for adder in self.adders:
            before = 0 if adder.first is None else levels[adder.first]
            levels.append(1 + max(before, levels[adder.second]))
        return tuple(levels)

    @cached_property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The lowest and the highest that each value can be."""
        lo, hi = (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if self.signed else (
            0, (1 << self.bits) - 1
        )  # fmt: skip
        factors = np.zeros((len(self.levels), self.inputs), np.int64)
        factors[: self.inputs] = np.eye(self.inputs, dtype=np.int64)
        offsets = [0] * len(self.levels)
        for number, adder in enumerate(self.adders, self.inputs):
            factors[number] = adder.sign * (factors[adder.second] << adder.shift)
            offsets[number] = adder.constant + (adder.sign * offsets[adder.second] << adder.shift)
            if adder.first is not None:
                factors[number] += factors[adder.first]
                offsets[number] += offsets[adder.first]
        up, down = factors.clip(0).sum(axis=1).tolist(), factors.clip(None, 0).sum(axis=1).tolist()
        return tuple(
            (offset + lo * plus + hi * minus, offset + hi * plus + lo * minus)
            for offset, plus, minus in zip(offsets, up, down, strict=True)
        )

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Bits of each value; one that is never negative has no sign."""
        return tuple(signed_bits(lo, hi) - (lo >= 0) for lo, hi in self.ranges)

    @cached_property
    def adder_bits(self) -> tuple[int, ...]:
        """Bits that each adder adds: those below its second operand pass by."""
        bits = []
        for number, adder in enumerate(self.adders, self.inputs):
            apart = (
                adder.first is not None and adder.sign > 0 and self.ranges[adder.first][0] >= 0
                and self.widths[adder.first] <= adder.shift
            )  # fmt: skip
            bits.append(0 if apart else self.widths[number] - adder.shift)
        return tuple(bits)

    @property
    def depth(self) -> int:
        """Adders of the longest path to a result."""
        return max((self.levels[value] for value in self.results if value is not None), default=0)

    def apply(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the results [..., results] of values [..., inputs]."""
        found = list(np.moveaxis(values, -1, 0))
        for adder in self.adders:
            second = adder.sign * (found[adder.second] << adder.shift)
            found.append(second + (adder.constant if adder.first is None else found[adder.first]))
        results = [
            np.full(values.shape[:-1], constant) if value is None else found[value]
            for value, constant in zip(self.results, self.constants, strict=True)
        ]
        return np.stack(results, axis=-1)


def multiply_matrix(
    matrix: NDArray[np.int64],
    *,
    factors: Sequence[int],
    offsets: Sequence[int],
    bits: int,
    signed: bool,
) -> AdderGraph:
    """Return the adders of ``factors[n] * sum(matrix[n] * inputs) + offsets[n]`` for every row n.

    Parameters
    ----------
    matrix
        [results, inputs].
    factors, offsets
        Of every result; factors are positive.
    bits, signed
        Format of the inputs.
    """
    rows: list[Row] = [
        {(n, shift): sign for n, weight in enumerate(row) for shift, sign in signed_digits(weight)}
        for row in matrix.tolist()
    ]
    inputs = matrix.shape[1]
    patterns, rows = share(rows, inputs)
    builder = _Builder(inputs)
    for pattern in patterns:
        builder.add(Adder(pattern.first, pattern.second, pattern.shift, pattern.sign))
    results: list[int | None] = []
    constants: list[int] = []
    for row, factor, offset in zip(rows, factors, offsets, strict=True):
        if not row:
            results.append(None)
            constants.append(offset)
            continue
        total = builder.sum([
            _Term(builder.levels[value], shift, value, sign) for (value, shift), sign in row.items()
        ])
        terms = [
            total._replace(shift=total.shift + shift, sign=total.sign * sign)
            for shift, sign in signed_digits(factor)
        ]
        # The constant makes a positive value of what is left.
        product = builder.sum([*terms, _Term(0, 0, None, 1, offset)])
        results.append(product.value)
        constants.append(0)
    return AdderGraph(
        inputs=inputs, bits=bits, signed=signed, adders=tuple(builder.adders),
        results=tuple(results), constants=tuple(constants),
    )  # fmt: skip


class _Builder:
    """Adds adders, and knows their levels."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.adders: list[Adder] = []
        self.levels = [0] * inputs

    def add(self, adder: Adder) -> int:
        """Add an adder; return the number of its value."""
        before = 0 if adder.first is None else self.levels[adder.first]
        self.levels.append(1 + max(before, self.levels[adder.second]))
        self.adders.append(adder)
        return len(self.levels) - 1

    def sum(self, terms: Sequence[_Term]) -> _Term:
        """Add terms up, those first that are there first; return what their sum is."""
        heap = [(term.level, term.shift, n, term) for n, term in enumerate(terms)]
        heapify(heap)
        number = len(heap)
        while len(heap) > 1:
            total = self._pair(heappop(heap)[-1], heappop(heap)[-1])
            heappush(heap, (total.level, total.shift, number, total))
            number += 1
        return heap[0][-1]

    def _pair(self, low: _Term, high: _Term) -> _Term:
        """Add two terms; what they have in common of shift and sign is left to their sum."""
        if high.value is None or (low.value is not None and high.shift < low.shift):
            low, high = high, low
        assert high.value is not None
        if low.value is None:
            adder = Adder(None, high.value, high.shift, high.sign, low.constant)
            value = self.add(adder)
            return _Term(self.levels[value], 0, value, 1)
        adder = Adder(low.value, high.value, high.shift - low.shift, low.sign * high.sign)
        value = self.add(adder)
        return _Term(self.levels[value], low.shift, value, low.sign)
