"""Parts of normalizations: products, sums, means, and inverse deviations, in any form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.function_body import scalar_value

__all__ = ["Deviation", "NormalizationParts", "Product", "plus", "times"]

FloatArray = NDArray[np.float64]
Constant = FloatArray | float

_MOST_FACTORS = 8
"""Factors of a product, or terms of a sum, beyond which there is nothing to find."""

_NEAR = 1e-5
"""How far the reciprocal of a number of elements may be from a constant, which float32 rounds."""


@dataclass(slots=True)
class Product:
    """Activations and their divisors, times constants of the shape of the result or less."""

    factors: list[str] = field(default_factory=list)
    divisors: list[str] = field(default_factory=list)
    constant: Constant = 1.0

    def __len__(self) -> int:
        return len(self.factors) + len(self.divisors)


@dataclass(frozen=True, slots=True)
class Deviation:
    """A root of ``factor * mean((x - m)^2) + epsilon``, with m the mean of x or 0, or its inverse.

    Attributes
    ----------
    source
        The tensor x.
    axes
        Axes of the mean, without those of one element.
    is_inverse
        Whether it is one divided by the root.
    """

    source: str
    axes: tuple[int, ...]
    epsilon: float
    factor: float
    centered: bool
    is_inverse: bool


class NormalizationParts:
    """The tensors of a graph, read as parts of normalizations.

    What the model's author quantized on the way is no part of anything larger.

    Attributes
    ----------
    deviations : dict
        Deviations by the tensors that hold them.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._ends: set[str] = set()
        self.deviations: dict[str, Deviation] = {}
        for node in graph.nodes:
            found = self._deviation(node)
            if found is not None:
                self.deviations[node.name] = found
        self._ends = {*self.deviations, *(each.source for each in self.deviations.values())}

    def end_at(self, name: str) -> None:
        """Take a tensor as a factor or a term from now on, whatever it is made of."""
        self._ends.add(name)

    def product(self, node: Node) -> Product | None:
        """Return the factors of a ``mul`` or ``div``; None for others and for many."""
        found = Product()
        if node.op not in {"mul", "div"}:
            return None
        for name, divides in self._operands(node):
            self._multiply(found, name, divides)
        return found if len(found) <= _MOST_FACTORS else None

    def terms(self, node: Node) -> tuple[list[Product], Constant] | None:
        """Return the products that a sum or difference adds, and its constant."""
        if node.op not in {"add", "sub"}:
            return None
        terms: list[Product] = []
        offset = self._collect(terms, node, 1.0)
        return (terms, offset) if len(terms) <= _MOST_FACTORS else None

    def is_centered(self, name: str, of: Deviation) -> bool:
        """Whether a tensor is the source of a deviation less its mean."""
        node = self._producer(name)
        if node is None or node.op != "sub" or node.inputs[0] != of.source:
            return False
        return self.is_mean(node.inputs[1], of)

    def is_mean(self, name: str, of: Deviation) -> bool:
        """Whether a tensor is the mean of the source of a deviation."""
        return self._mean(name) == (of.source, of.axes, 1.0)

    def _producer(self, name: str) -> Node | None:
        node = self._graph.producer(name)
        return None if node is None or self._graph.tensor(name).quant is not None else node

    def constant(self, name: str) -> FloatArray | None:
        """Return a constant with as many axes as there may be; None for activations."""
        data = self._graph.tensor(name).data
        return None if data is None else np.asarray(data, np.float64)

    @staticmethod
    def _operands(node: Node) -> Iterator[tuple[str, bool]]:
        first, second = node.inputs
        yield first, False
        yield second, node.op == "div"

    def _multiply(self, found: Product, name: str, divides: bool) -> None:
        data, node = self.constant(name), self._producer(name)
        if data is not None:
            with np.errstate(divide="ignore"):
                found.constant = times(found.constant, 1.0 / data if divides else data)
        elif len(found) > _MOST_FACTORS or name in self._ends or node is None:
            (found.divisors if divides else found.factors).append(name)
        elif node.op in {"mul", "div"}:
            for operand, inner in self._operands(node):
                self._multiply(found, operand, divides != inner)
        elif node.op in {"neg", "rcp"}:
            if node.op == "neg":
                found.constant = times(found.constant, -1.0)
            self._multiply(found, node.inputs[0], divides != (node.op == "rcp"))
        else:
            (found.divisors if divides else found.factors).append(name)

    def _collect(self, terms: list[Product], node: Node, sign: float) -> Constant:
        """Append the products of a sum; return what it adds besides."""
        offset: Constant = 0.0
        for place, name in enumerate(node.inputs):
            factor = -sign if place and node.op == "sub" else sign
            data, inner = self.constant(name), self._producer(name)
            if data is not None:
                offset = plus(offset, factor * data)
            elif (
                inner is not None
                and inner.op in {"add", "sub"}
                and name not in self._ends
                and len(terms) <= _MOST_FACTORS
            ):
                offset = plus(offset, self._collect(terms, inner, factor))
            else:
                found = Product(constant=factor)
                self._multiply(found, name, False)
                terms.append(found)
        return offset

    def _deviation(self, node: Node) -> Deviation | None:
        root = _root(self._graph, node)
        if root is None or len(node.outputs) > 1:
            return None
        radicand = node.inputs[0]
        inner = self._producer(radicand)
        if node.op == "rcp":
            if inner is None or _root(self._graph, inner) is not False:
                return None
            radicand = inner.inputs[0]
            inner = self._producer(radicand)
        if inner is None:
            return None
        name, epsilon = radicand, 0.0
        if inner.op == "add":
            for first, second in (inner.inputs, inner.inputs[::-1]):
                value = scalar_value(self._graph.tensor(second))
                if value is not None:
                    name, epsilon = first, float(value)
        found = self.variance(name, epsilon)
        return None if found is None else replace(found, is_inverse=root)

    def variance(self, name: str, epsilon: float = 0.0) -> Deviation | None:
        """Return the deviation whose square a tensor and an epsilon add up to."""
        found = self._variance(name)
        return None if found is None or epsilon < 0 else replace(found, epsilon=epsilon)

    def _variance(self, name: str) -> Deviation | None:
        node = self._producer(name)
        if node is None:
            return None
        if node.op == "moments" and name == node.outputs[1]:
            axes = self._axes(node)
            return Deviation(node.inputs[0], axes, 0.0, 1.0, centered=True, is_inverse=False)
        if node.op == "sub":
            return self._difference_of_squares(node)
        mean = self._mean(name)
        if mean is None:
            return None
        base = self._square(mean[0])
        if base is None:
            return None
        source, axes, factor = base, mean[1], mean[2]
        beside = self._producer(base)
        found = Deviation(source, axes, 0.0, factor, centered=False, is_inverse=False)
        if beside is not None and beside.op == "sub":
            around = replace(found, source=beside.inputs[0], centered=True)
            return around if self.is_centered(base, around) else found
        return found

    def _difference_of_squares(self, node: Node) -> Deviation | None:
        """Read ``mean(x^2) - mean(x)^2``."""
        mean, root = self._mean(node.inputs[0]), self._square(node.inputs[1])
        source = None if mean is None or mean[2] != 1.0 else self._square(mean[0])
        if mean is None or source is None or root is None:
            return None
        found = Deviation(source, mean[1], 0.0, 1.0, centered=True, is_inverse=False)
        return found if self.is_mean(root, found) else None

    def _mean(self, name: str) -> tuple[str, tuple[int, ...], float] | None:
        """Return of what a tensor is the mean, over which axes, and times what number."""
        node = self._producer(name)
        if node is None:
            return None
        if node.op == "moments" and name == node.outputs[0]:
            return node.inputs[0], self._axes(node), 1.0
        if node.op in {"mul", "div"}:
            found = Product()
            for operand, divides in self._operands(node):
                self._multiply(found, operand, divides)
            if len(found.factors) != 1 or found.divisors or np.size(found.constant) != 1:
                return None
            inner = self._producer(found.factors[0])
            if inner is None or inner.op not in {"mean_reduce", "sum_reduce"}:
                return None
            mean = self._mean(found.factors[0])
            factor = float(np.reshape(found.constant, ()))
            return None if mean is None else (mean[0], mean[1], _near_one(mean[2] * factor))
        if node.op not in {"mean_reduce", "sum_reduce"}:
            return None
        axes, count = self._axes(node), 1.0
        if node.op == "sum_reduce" and not node.attrs.get("normalize", False):
            shape = self._graph.tensor(node.inputs[0]).shape
            count = float(prod(shape[axis] for axis in axes))
        return node.inputs[0], axes, count

    def _axes(self, node: Node) -> tuple[int, ...]:
        shape = self._graph.tensor(node.inputs[0]).shape
        return tuple(sorted(axis for axis in node.attrs["axes"] if shape[axis] > 1))

    def _square(self, name: str) -> str | None:
        """Return the tensor whose square a tensor is."""
        node = self._producer(name)
        if node is None:
            return None
        if node.op == "sqr" or (node.op == "pow" and self._exponent(node) == 2.0):
            return node.inputs[0]
        if node.op != "mul":
            return None
        first, second = node.inputs
        return first if first == second or self._are_same(first, second) else None

    def _are_same(self, first: str, second: str) -> bool:
        """Whether two differences have the same operands."""
        nodes = self._producer(first), self._producer(second)
        if nodes[0] is None or nodes[1] is None or {node.op for node in nodes if node} != {"sub"}:
            return False
        (a, b), (c, d) = nodes[0].inputs, nodes[1].inputs
        return a == c and (b == d or (self._mean(b) is not None and self._mean(b) == self._mean(d)))

    def _exponent(self, node: Node) -> float | None:
        return scalar_value(self._graph.tensor(node.inputs[1]))


def _root(graph: Graph, node: Node) -> bool | None:
    """Return whether a node gives the inverse of a root; None if it gives none at all."""
    if node.op in {"rsqrt", "rcp"}:
        return True
    if node.op == "sqrt":
        return False
    if node.op == "pow":
        exponent = scalar_value(graph.tensor(node.inputs[1]))
        return {0.5: False, -0.5: True}.get(exponent) if exponent is not None else None
    return None


def _near_one(value: float) -> float:
    return 1.0 if abs(value - 1.0) < _NEAR else value


def times(first: Constant, second: Constant) -> Constant:
    """Return the product of two constants, which NNEF broadcasts from the left."""
    return np.asarray(np.multiply(*_aligned(first, second)))


def plus(first: Constant, second: Constant) -> Constant:
    """Return the sum of two constants, which NNEF broadcasts from the left."""
    return np.asarray(np.add(*_aligned(first, second)))


def _aligned(first: Constant, second: Constant) -> tuple[FloatArray, FloatArray]:
    """Return both with the axes of the one that has more."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    rank = max(a.ndim, b.ndim)
    return (
        a.reshape(a.shape + (1,) * (rank - a.ndim)),
        b.reshape(b.shape + (1,) * (rank - b.ndim)),
    )
