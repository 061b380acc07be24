"""Which values of a tensor can be told apart by what is computed from it.

A softmax gives the weight 0 to everything far below the greatest number, a sigmoid is 1 for all
large numbers, a ``max_pool`` never shows what is less than all of its results. Numbers beyond what
readers can tell, such as the -1e9 or the minus infinity of an attention mask, need no codes of
their own: the nearest number within gives the same results.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.activation import activation_limits
from nnef_hw.ir.operators import CanonicalOperator, PerOperator
from nnef_hw.reference.real.functions import unary_function

__all__ = [
    "EVERYTHING",
    "Interval",
    "are_masked",
    "comparable",
    "hidden_infinities",
    "visible_intervals",
]

FloatArray = NDArray[np.float64]

SOFTMAX_DEPTH = math.log(2 * 65535)
"""What is so far below the greatest number that its entry in a softmax's table is 0."""

_STEPS = 256
"""Codes that a softmax reads."""

_NEGLIGIBLE = 2.0**-17
"""Half a step of the finest format, as a share of a function's range."""

_MAGNITUDES = np.exp2(np.append(np.arange(-6, 60, 0.125), 130.0))
_PROBES = np.concatenate([-_MAGNITUDES[::-1], [0.0], _MAGNITUDES])


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers from ``lo`` to ``hi``, which may be infinite."""

    lo: float
    hi: float

    def with_all(self, other: Interval) -> Interval:
        """Return the interval that spans both."""
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi))

    def nearest(self, value: float) -> float:
        """Return the number of the interval that is nearest to a value."""
        return min(max(value, self.lo), self.hi)

    def within(self, limits: Interval) -> Interval:
        """Return the interval that is left of this one when everything is kept in limits."""
        return Interval(limits.nearest(self.lo), limits.nearest(self.hi))

    def less(self, other: Interval) -> Interval:
        """Return the numbers that reach this interval by some number of another one."""
        return Interval(_difference(self.lo, other.hi), -_difference(-self.hi, -other.lo))

    @property
    def negative(self) -> Interval:
        """The interval of the negatives."""
        return Interval(-self.hi, -self.lo)


def _difference(lo: float, hi: float) -> float:
    """Return the lower end of what is left when at most ``hi`` is taken off."""
    return -math.inf if math.isinf(lo) or math.isinf(hi) else lo - hi


EVERYTHING = Interval(-math.inf, math.inf)


class _Values(ABC):
    """Facts about the tensors of a graph."""

    def __init__(self, graph: Graph, probes: FloatArray) -> None:
        self.graph = graph
        self.probes = probes
        self._ranges: dict[str, Interval] = {}

    def range(self, name: str) -> Interval:
        """Return the least and the greatest value of a tensor."""
        if name not in self._ranges:
            data = self.graph.tensor(name).data
            found = self._range(name) if data is None else _range(data)
            self._ranges[name] = found
        return self._ranges[name]

    @abstractmethod
    def _range(self, name: str) -> Interval:
        """Return the range of an activation."""

    @abstractmethod
    def extremes(self, name: str, extreme: Callable[..., FloatArray]) -> FloatArray:
        """Return the greatest, or the least, numbers along the channels of an activation."""


class _Samples(_Values):
    """Activations on samples."""

    def __init__(self, graph: Graph, activations: Mapping[str, FloatArray]) -> None:
        super().__init__(graph, _PROBES)
        self._activations = activations

    def _range(self, name: str) -> Interval:
        return _range(self._activations[name])

    def extremes(self, name: str, extreme: Callable[..., FloatArray]) -> FloatArray:
        found = extreme(self._activations[name], axis=1)
        return found[np.isfinite(found)]


class _Unknown(_Values):
    """Activations that may be any numbers, as before there are samples; infinity is tried, too."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, np.concatenate([[-np.inf], _PROBES, [np.inf]]))

    def _range(self, name: str) -> Interval:
        del name
        return Interval(-1.0, 1.0)

    def extremes(self, name: str, extreme: Callable[..., FloatArray]) -> FloatArray:
        del name, extreme
        return np.array([-1.0, 1.0])


def are_masked(greatest: FloatArray) -> NDArray[np.bool_]:
    """Tell for the greatest numbers of a softmax's places whether a mask hides the whole place.

    They are minus infinity, or so far below those of others that no format tells both apart.
    """
    finite = greatest[np.isfinite(greatest)]
    most = finite.max() if finite.size else math.inf
    return np.asarray(greatest < most - _STEPS * SOFTMAX_DEPTH)


def _range(x: FloatArray) -> Interval:
    lo, hi = np.fmin.reduce(x, axis=None), np.fmax.reduce(x, axis=None)
    return EVERYTHING if np.isnan(lo) else Interval(float(lo), float(hi))


def visible_intervals(graph: Graph, activations: Mapping[str, FloatArray]) -> dict[str, Interval]:
    """Return by tensor the interval beyond which its readers tell nothing apart.

    Parameters
    ----------
    graph
        Graph of the canonical stage.
    activations
        Values of all activations on some samples, for which this holds: [n, ...], of a graph with
        states [n, T, ...] as well.
    """
    shapes = {name: graph.tensor(name).shape[1:] for name in activations}
    values = {name: np.reshape(x, (-1, *shapes[name])) for name, x in activations.items()}
    return _intervals(_Samples(graph, values))


def comparable(
    real: FloatArray, found: FloatArray, visible: Interval, limits: tuple[Any, Any]
) -> FloatArray:
    """Return real values to compare with what codes stand for.

    Those that neither readers see nor a format holds count as the nearest one that it does, and
    those that are no numbers as what was found.

    Parameters
    ----------
    visible
        What :func:`visible_intervals` says of them.
    limits
        Least and greatest number of the format; arrays, if features have formats of their own.

    Raises
    ------
    ValueError
        Both have different shapes: they would be compared with one another's samples.
    """
    if real.shape != found.shape:
        raise ValueError(f"{real.shape} real values cannot be compared with {found.shape} codes")
    (lo, hi), x = limits, np.asarray(real, np.float64)
    is_above = x > np.maximum(visible.hi, hi)
    x = np.where(x < np.minimum(visible.lo, lo), lo, np.where(is_above, hi, x))
    return np.where(np.isfinite(x), x, found)


def hidden_infinities(graph: Graph) -> dict[str, Interval]:
    """Return tensors of which infinities, or one of them, have the results of finite numbers.

    An end of the interval is finite where the infinity beyond it is hidden: what the end is
    depends on samples. Operators that are not canonical hide nothing.
    """
    intervals = _intervals(_Unknown(graph))
    return {name: found for name, found in intervals.items() if found != EVERYTHING}


def _intervals(values: _Values) -> dict[str, Interval]:
    graph = values.graph
    results = (*graph.outputs, *(state.result for state in graph.states.values()))
    found = dict.fromkeys(results, EVERYTHING)
    for node in reversed(graph.nodes):
        result = found.get(node.name, EVERYTHING)
        operands: tuple[Interval, ...] = (EVERYTHING,) * len(node.inputs)
        if isinstance(node.operator, CanonicalOperator):
            operands = rules[node.op](values, node, result)
        for name, interval in zip(node.inputs, operands, strict=True):
            found[name] = interval.with_all(found[name]) if name in found else interval
    return found


rules = PerOperator[Callable[[_Values, Node, Interval], tuple[Interval, ...]]]("visible interval")
"""Return for each operand what its values tell, of the interval that the result's readers see."""


@rules(
    "avg_pool", "begin_steps", "box", "contraction", "integer_normalize", "integer_softmax",
    "interpolate", "log_bands", "log_mel", "micro_frontend", "micro_frontend_step", "micro_noise",
    "normalize", "quotient",
)  # fmt: skip
def _everything(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """Every value is a part of a sum or a quotient, or later steps read it."""
    del values, result
    return (EVERYTHING,) * len(node.inputs)


@rules(
    "concat", "depth_to_space", "join_steps", "last_step", "nearest_upsample", "pad", "reshape",
    "reverse_steps", "slice", "split_steps", "transpose",
)  # fmt: skip
def _same(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """Elements are handed on."""
    del values
    return (result,) * len(node.inputs)


@rules("lookup")
def _of_table(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """Rows are handed on; a place tells which one."""
    del values, node
    return result, EVERYTHING


@rules("causal_mask")
def _masked(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """Hand on what is not hidden."""
    del values, node
    return result, EVERYTHING


@rules("write_row")
def _with_row(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """Hand on the cache, but for a row."""
    del values, node
    return result, result, EVERYTHING


@rules(Trait.WEIGHTS)
def _layer(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """See inputs unless each is scaled alone; a bias takes sums beyond the limits."""
    limits = result.within(Interval(*activation_limits(node)))
    weights, bias = (values.graph.tensor(name).data for name in node.inputs[1:])
    source = EVERYTHING
    if weights is not None and bias is not None and weights[0].size == 1:
        source = _before_scaling(limits, weights, np.broadcast_to(bias.reshape(-1), len(weights)))
    return source, EVERYTHING, limits


@rules("add")
def _sum(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    first, second = map(values.range, node.inputs)
    result = result.within(Interval(*activation_limits(node)))
    return result.less(second), result.less(first)


@rules("sub")
def _difference_of(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    first, second = map(values.range, node.inputs)
    result = result.within(Interval(*activation_limits(node)))
    return result.less(second.negative), result.less(first).negative


@rules("mul")
def _product(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """Divide by constant factors other than 0; computed ones may be small."""
    constants = [values.graph.tensor(name).data for name in node.inputs]
    return tuple(
        EVERYTHING if data is None else _before_scaling(result, data, np.zeros(data.size))
        for data in reversed(constants)
    )


def _before_scaling(result: Interval, factors: FloatArray, offsets: FloatArray) -> Interval:
    """Return the interval that factors and offsets map to a given one."""
    factors = np.asarray(factors, np.float64).reshape(-1)
    offsets = np.asarray(offsets, np.float64)[factors != 0]
    factors = factors[factors != 0]
    if not (factors.size and np.isfinite(factors).all() and np.isfinite(offsets).all()):
        return EVERYTHING
    ends = (np.array([[result.lo], [result.hi]]) - offsets) / factors
    return Interval(float(ends.min()), float(ends.max()))


@rules("max", "max_pool")
def _greatest(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    limited = Interval(result.nearest(_margin(values.range(node.name))), result.hi)
    return (limited,) * len(node.inputs)


@rules("min")
def _least(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    limited = Interval(result.lo, result.nearest(-_margin(values.range(node.name).negative)))
    return (limited,) * len(node.inputs)


def _margin(results: Interval) -> float:
    """Return a bound that no result falls below, even of other samples with a range twice as wide.

    Minus infinity if some result is.
    """
    if math.isinf(results.lo) or math.isinf(results.hi):
        return -math.inf
    return results.lo - (results.hi - results.lo)


@rules("argmax_reduce")
def _place_of_greatest(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    del result
    greatest = values.extremes(node.inputs[0], np.max)
    lo = _margin(_range(greatest)) if greatest.size else -math.inf
    return (Interval(lo, math.inf),)


@rules("argmin_reduce")
def _place_of_least(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    del result
    least = values.extremes(node.inputs[0], np.min)
    hi = -_margin(_range(least).negative) if least.size else math.inf
    return (Interval(-math.inf, hi),)


@rules("softmax")
def _weights(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """Leave out what is far below the greatest number of its place: it has the weight 0.

    Places whose greatest number is so far below that of others that no format tells both apart
    are masked whole, and do not count.
    """
    del result
    greatest = values.extremes(node.inputs[0], np.max)
    if not greatest.size:
        return (EVERYTHING,)
    kept = greatest[~are_masked(greatest)]
    return (Interval(float(kept.min()) - SOFTMAX_DEPTH, math.inf),)


@rules(Trait.TABLE)
def _function(values: _Values, node: Node, result: Interval) -> tuple[Interval, ...]:
    """Find where a function stays as it is to infinity, as far as formats can tell."""
    if len(node.inputs) != 1:
        return (EVERYTHING,) * len(node.inputs)
    with np.errstate(all="ignore"):
        found = np.clip(unary_function(node)(values.probes), result.lo, result.hi)
    results = values.range(node.name).within(result)
    tolerance = (results.hi - results.lo) * _NEGLIGIBLE
    if not math.isfinite(tolerance):
        return (EVERYTHING,)
    lo = _level(values.probes, found, tolerance)
    return (Interval(lo, -_level(-values.probes[::-1], found[::-1], tolerance)),)


def _level(probes: FloatArray, found: FloatArray, tolerance: float) -> float:
    """Return up to where a function has the value of its first probe; minus infinity if nowhere."""
    with np.errstate(invalid="ignore"):
        differs = ~(np.abs(found - found[0]) <= tolerance)
    count = int(differs.argmax()) if differs.any() else len(probes)
    last = count - 1 if count else 0
    is_level = last > 0 and math.isfinite(probes[last])
    return min(float(probes[last]), 0.0) if is_level else -math.inf


rules.require_all()
