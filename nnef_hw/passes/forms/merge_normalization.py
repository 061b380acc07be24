"""Find normalizations that are written out as means, roots, products and sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.forms.normalization_parts import (
    Deviation,
    NormalizationParts,
    Product,
    plus,
    times,
)
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["MergeNormalization"]

Constant = NDArray[np.float64] | float


@dataclass(frozen=True, slots=True)
class MergeNormalization(Pass):
    """Rewrite a normalization that an exporter has written out as one ``normalize``.

    * ``(x - mean) / sqrt(variance + epsilon) * gamma + beta``, in whatever order the factors come,
      and ``x * f + (beta - mean * f)``
    * the variance is the mean of the squared differences, the second result of ``moments``, or
      ``mean(x * x) - mean * mean``
    * the same without mean: ``x * rsqrt(mean(x * x) + epsilon) * gamma``
    * ``batch_normalization`` of such moments

    Scales and offsets that vary along the normalized axes become part of it.
    Left alone: what is not normalized along the channels, the last axis, or all but the batch;
    normalizations of groups and of instances, which a scale for each channel follows; what the
    model's author quantized on the way, or TensorFlow Lite rounds in its own way.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        found = _Finder(graph).found
        if not found:
            return graph
        editor = Editor(graph)
        for node in graph.nodes:
            if node.name in found:
                _emit(editor, node, found[node.name])
            else:
                editor.keep(node)
        return editor.finish()


@dataclass(frozen=True, slots=True, eq=False)
class _Normalization:
    """A deviation's source, normalized, times gamma, plus beta."""

    of: Deviation
    gamma: Constant
    beta: Constant


class _Finder:
    """The normalizations of a graph.

    Attributes
    ----------
    found : dict
        Those that can be one operator, by the tensors that hold their results.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._parts = NormalizationParts(graph)
        self.found: dict[str, _Normalization] = {}
        for node in graph.nodes:
            if len(node.outputs) > 1 or self._keeps_codes(node.name):
                continue
            core = self._core(node)
            if core is None or not self._is_along_axes(core, node.name):
                continue
            last, whole = self._extended(node, core)
            if not self._is_of_groups(last, core.of) and not self._keeps_codes(last):
                self.found.setdefault(last, whole)
                self._parts.end_at(last)

    def _keeps_codes(self, name: str) -> bool:
        """Whether a result's codes are those of a kernel of TensorFlow Lite."""
        graph = self._graph
        return graph.rounding == "tflite" and graph.tensor(name).quant is not None

    def _core(self, node: Node) -> _Normalization | None:
        """Return the normalization that a node completes, perhaps with gamma and beta."""
        parts = self._parts
        if node.op == "batch_normalization":
            return self._of_batch(node)
        product = parts.product(node)
        if product is not None:
            return self._of_product(product)
        terms = parts.terms(node)
        return None if terms is None else self._of_terms(*terms)

    def _of_product(self, product: Product) -> _Normalization | None:
        split = self._split(product)
        if split is None:
            return None
        of, rest = split
        if rest == of.source if not of.centered else self._parts.is_centered(rest, of):
            return _Normalization(of, times(product.constant, of.factor**-0.5), 0.0)
        return None

    def _of_terms(self, terms: list[Product], offset: Constant) -> _Normalization | None:
        """Read ``x * f - mean * f + beta``."""
        if len(terms) != 2:
            return None
        for taken, less in (terms, terms[::-1]):
            first, second = self._split(taken), self._split(less)
            if first is None or second is None or first[0] != second[0]:
                continue
            of = first[0]
            opposite = np.array_equal(
                np.squeeze(np.asarray(taken.constant)), np.squeeze(-np.asarray(less.constant))
            )
            is_whole = first[1] == of.source and self._parts.is_mean(second[1], of)
            if of.centered and opposite and is_whole:
                return _Normalization(of, times(taken.constant, of.factor**-0.5), offset)
        return None

    def _of_batch(self, node: Node) -> _Normalization | None:
        source, mean, variance, offset, scale = node.inputs
        of = self._parts.variance(variance, float(node.attrs["epsilon"]))
        beta, gamma = self._parts.constant(offset), self._parts.constant(scale)
        if of is None or beta is None or gamma is None or not of.centered:
            return None
        if source != of.source or not self._parts.is_mean(mean, of):
            return None
        return _Normalization(of, times(gamma, of.factor**-0.5), beta)

    def _split(self, product: Product) -> tuple[Deviation, str] | None:
        """Return the deviation that a product divides by, and its only other factor."""
        known = self._parts.deviations
        inverse = [name for name in product.factors if name in known and known[name].is_inverse]
        roots = [name for name in product.divisors if name in known and not known[name].is_inverse]
        others = [name for name in product.factors if name not in inverse]
        if len(inverse) + len(roots) != 1 or len(others) != 1 or len(product) != 2:
            return None
        return known[(inverse + roots)[0]], others[0]

    def _is_along_axes(self, core: _Normalization, name: str) -> bool:
        shape, axes = self._graph.tensor(core.of.source).shape, core.of.axes
        if shape != self._graph.tensor(name).shape or not axes or axes[0] == 0:
            return False
        last = max(axis for axis, n in enumerate(shape) if n > 1)
        everything = tuple(axis for axis, n in enumerate(shape) if axis and n > 1)
        is_along = axes in {(1,), (last,), everything} or self._varies_along(core, axes)
        return is_along and all(self._fits(value, axes) for value in (core.gamma, core.beta))

    def _varies_along(self, core: _Normalization, axes: tuple[int, ...]) -> bool:
        """Whether gamma has a number of its own for each place on the axes."""
        shape = self._graph.tensor(core.of.source).shape
        extents = np.shape(core.gamma)
        return all(axis < len(extents) and extents[axis] == shape[axis] for axis in axes)

    @staticmethod
    def _fits(value: Constant, axes: tuple[int, ...]) -> bool:
        """Whether constants vary along the axes alone."""
        extents = np.shape(value)
        return all(n == 1 or axis in axes for axis, n in enumerate(extents))

    def _extended(self, node: Node, core: _Normalization) -> tuple[str, _Normalization]:
        """Take in the scales and offsets that follow."""
        graph, gamma, beta = self._graph, core.gamma, core.beta
        name = node.name
        while (reader := self._only_reader(name)) is not None:
            operands = self._constants(reader)
            if len(operands) != 1 or graph.tensor(reader.name).shape != graph.tensor(name).shape:
                break
            value = operands[0]
            is_first = reader.inputs[0] == name
            if not self._fits(value, core.of.axes):
                break
            if reader.op in {"add", "sub"}:
                sign = -1.0 if reader.op == "sub" and not is_first else 1.0
                added = -value if reader.op == "sub" and is_first else value
                gamma, beta = times(sign, gamma), plus(times(sign, beta), added)
            elif reader.op == "mul" or (reader.op == "div" and is_first):
                with np.errstate(divide="ignore"):
                    factor = 1.0 / value if reader.op == "div" else value
                gamma, beta = times(gamma, factor), times(beta, factor)
            else:
                break
            name = reader.name
        return name, _Normalization(core.of, gamma, beta)

    def _constants(self, node: Node) -> list[NDArray[np.float64]]:
        found = map(self._parts.constant, node.inputs)
        return [data for data in found if data is not None]

    def _only_reader(self, name: str) -> Node | None:
        graph = self._graph
        readers = graph.consumers(name)
        if graph.tensor(name).quant is not None or name in graph.outputs or len(readers) != 1:
            return None
        return readers[0]

    def _is_of_groups(self, name: str, of: Deviation) -> bool:
        """Whether constants for other axes follow, which a normalization of groups has."""
        shape = self._graph.tensor(name).shape
        if of.axes == (1,):
            return False
        while (reader := self._only_reader(name)) is not None:
            constants = self._constants(reader)
            if reader.op == "batch_normalization" or (
                reader.has(Trait.ARITHMETIC) and any(data.size > 1 for data in constants)
            ):
                moved = self._graph.tensor(reader.name).shape != shape
                return moved or not all(self._fits(data, of.axes) for data in constants)
            if not reader.has(Trait.RESHAPES):
                return False
            name = reader.name
        return False


def _emit(editor: Editor, node: Node, found: _Normalization) -> None:
    rank = len(editor.shape(found.of.source))
    constants = (
        editor.constant(f"{node.name}_{name}", _of_rank(value, rank))
        for name, value in (("scale", found.gamma), ("offset", found.beta))
    )
    attrs = {
        "axes": list(found.of.axes),
        "epsilon": found.of.epsilon / found.of.factor,
        "centered": found.of.centered,
    }
    inputs = (found.of.source, *constants)
    editor.emit(Node("normalize", inputs, (node.name,), attrs, node.location))


def _of_rank(value: Constant, rank: int) -> NDArray[np.float64]:
    """Return a constant with all axes of a tensor, and one number if all are equal."""
    data = np.asarray(value, np.float64) + 0.0  # no -0
    if (data == data.flat[0]).all():
        data = data.reshape(-1)[0]
    return data.reshape(data.shape + (1,) * (rank - data.ndim))
