"""Choice of the format of every activation: a rule for each kind of operator."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.numerics import MAX_SOFTMAX_PLACES, QType
from nnef_hw.arithmetic.tables import TABLE_BITS
from nnef_hw.errors import SampleError, UnsupportedError
from nnef_hw.ir import Graph, Node, State, Trait
from nnef_hw.ir.activation import activation_limits
from nnef_hw.ir.operators import ContractionAttributes, PerOperator, PoolAttributes
from nnef_hw.quantize.calibration.observe import Observation, narrowed
from nnef_hw.quantize.calibration.ranges import choose_bytes, choose_range
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.quantize.calibration.source_quantization import mere_results, source_activation
from nnef_hw.quantize.loops import state_groups
from nnef_hw.quantize.one_format import (
    computing_node,
    contracted_operands,
    exact_operands,
    format_owners,
    padded_values,
)
from nnef_hw.quantize.params import (
    MULT_BITS,
    SHORT_SUM_QTYPE,
    fine_qtype,
    index_qtype,
    softmax_qtype,
)
from nnef_hw.reference import unary_function
from nnef_hw.reference.visible import EVERYTHING, Interval

__all__ = ["Formats", "needs_format", "scale_of"]

_LARGEST_FACTOR = 256.0
"""Output steps per accumulator step: coarser accumulators mean a range that is not real."""


class Formats:
    """Formats of the activations of a canonical graph, chosen one after the other.

    Parameters
    ----------
    found
        Observations on samples, by activation; empty without samples.
    states
        States of the network, of which ``graph`` is one step.

    Attributes
    ----------
    chosen : dict
        Formats by tensor name, those of constant operands of sums and products too.
    layer_steps : dict
        Real value of one accumulator step of a ``conv`` or ``linear``, by node name.
    """

    def __init__(
        self,
        graph: Graph,
        scheme: Scheme,
        found: Mapping[str, Observation],
        states: Mapping[str, State],
    ) -> None:
        self.graph = graph
        self.scheme = scheme
        self.chosen: dict[str, QType] = {}
        self.layer_steps: dict[str, float] = {}
        self._found = found
        self._owners = format_owners(graph) if found else {}
        self._narrow = exact_operands(graph)
        self._padded = padded_values(graph)
        self._contracted = contracted_operands(graph)
        self._states = states
        self._results = mere_results(graph)
        self._groups = state_groups(graph, states)
        self._of_groups: dict[frozenset[str], QType] = {}

    def choose_input(self, name: str) -> QType:
        """Choose the format of a graph input."""
        self.chosen[name] = (
            self.of_state(name) or self.authors(name) or self._of_bytes(name) or self.observed(name)
        )
        return self.chosen[name]

    def authors(self, name: str) -> QType | None:
        """Return the format that the author of the model gave to an activation, if any."""
        return source_activation(self.graph.tensor(name), is_result=name in self._results)

    def _of_bytes(self, name: str) -> QType | None:
        """Return the format of an input that is bytes; None if there are others."""
        found, is_integer = self._found.get(name), self.graph.tensor(name).dtype == "integer"
        if found is None:
            return None
        return choose_bytes(found, self.scheme_of(name), is_integer=is_integer)

    def of_state(self, name: str) -> QType | None:
        """Return the format that a tensor shares with a state; None if it shares it with none.

        It spans the values of all that share it, with as many bits as the widest has; the author's
        comes first.
        """
        group = self._groups.get(name)
        if group is None:
            return None
        if group not in self._of_groups:
            self._of_groups[group] = self._shared_by(group)
        return self._of_groups[group]

    def _shared_by(self, group: frozenset[str]) -> QType:
        names = sorted(group, key=lambda name: (name not in self._states, name))
        for name in names:
            source_format = self.authors(name)
            if source_format is not None:
                return source_format
        schemes = [self.scheme_of(name) for name in names]
        bits = max(scheme.activation_bits for scheme in schemes)
        if not self._narrow.isdisjoint(group):
            bits = min(bits, TABLE_BITS)
        ends = [end for name in names for end in self.span(name)]
        ends += [
            float(end)
            for name in names
            if name in self._states
            for end in (self._states[name].initial.min(), self._states[name].initial.max())
        ]
        return replace(schemes[0], activation_bits=bits).activation(min(ends), max(ends))

    def choose(self, node: Node) -> QType:
        """Choose the formats of a node's result and of its constants.

        Raises
        ------
        SampleError
            If the format depends on samples and there are none.
        """
        self.chosen[node.name] = rules[node.op]().format(self, node)
        return self.chosen[node.name]

    def scheme_of(self, name: str) -> Scheme:
        """Return the scheme of an activation, with no more bits than its readers accept.

        Codes that a product of two activations takes have a zero point of 0: less the zero point
        they would have a bit more.
        """
        scheme = self.scheme.of(name)
        if name in self._contracted:
            scheme = replace(scheme, symmetric=True)
        if name in self._narrow and scheme.activation_bits > TABLE_BITS:
            return replace(scheme, activation_bits=TABLE_BITS)
        return scheme

    def mult_bits(self, node: Node) -> int:
        """Return the width of a node's requantization multipliers."""
        wanted = self.scheme.of(node.name).mult_bits
        return wanted if node.has(Trait.WEIGHTS) else max(wanted, MULT_BITS)

    def largest_factor(self, node: Node) -> float:
        """Return how many steps of its result one accumulator step of a node may be."""
        most = math.inf
        if node.has(Trait.WEIGHTS):
            most = self.scheme.largest_layer_factor
        elif node.has(Trait.ARITHMETIC) and node.has(Trait.CLIPS):  # a sum
            most = self.scheme.largest_sum_factor
        return min(_LARGEST_FACTOR, ((1 << self.mult_bits(node)) - 1) / 2, most)

    def scale(self, name: str) -> float:
        """Return the scale of an activation whose format is chosen."""
        return scale_of(self.chosen[name])

    def limits(self, name: str) -> tuple[float, float]:
        """Return the least and the greatest value of a format that is chosen."""
        qtype = self.chosen[name]
        lo, hi = qtype.dequantize([qtype.lo, qtype.hi]).tolist()
        return lo, hi

    @property
    def has_samples(self) -> bool:
        """Whether ranges are known."""
        return bool(self._found)

    def observed(self, name: str, least_scale: float = 0.0) -> QType:
        """Return a format for the observed range of an activation."""
        return self.scheme_of(name).activation(*self.span(name), least_scale)

    def span(self, name: str) -> tuple[float, float]:
        """Return the range that a format must cover: grown, where samples show too little."""
        tensor = self.graph.tensor(name)
        if tensor.data is not None:
            return float(tensor.data.min()), float(tensor.data.max())
        if not self._found and name in self.chosen:
            return self.limits(name)
        if name not in self._found:
            raise SampleError(
                f"the format of {name!r} must be chosen and no samples were given",
                remedy="give representative inputs with --calibrate samples.npz",
            )
        scheme, node = self.scheme_of(name), computing_node(self.graph, name)
        found = self._found[name]
        lo, hi = choose_range(found, scheme)
        lo, hi = found.lo if found.cut_below else lo, found.hi if found.cut_above else hi
        is_grown = scheme.calibration == "minmax" and not scheme.power_of_two
        if node is not None and rules[node.op].has_headroom and is_grown:
            least, most = activation_limits(node)
            if not found.cut_below:
                lo = min(lo, max(lo * (1.0 + scheme.headroom), least))
            if not found.cut_above:
                hi = max(hi, min(hi * (1.0 + scheme.headroom), most))
        padded = self._put_around(name)
        return min(lo, *padded, lo), max(hi, *padded, hi)

    def _put_around(self, name: str) -> list[float]:
        """Return the values around a tensor that its format must have."""
        ends = (
            narrowed((value, value), self.shown(pad)) for pad, value in self._padded.get(name, ())
        )
        return [end for pair in ends for end in pair]

    def span_of_constant(self, name: str, visible: Interval) -> tuple[float, float]:
        """Return the range of a constant of which readers see no more than an interval.

        Raises
        ------
        UnsupportedError
            If they see infinity.
        """
        tensor = self.graph.tensor(name)
        assert tensor.data is not None, name
        span = narrowed((float(tensor.data.min()), float(tensor.data.max())), visible)
        if not all(map(math.isfinite, span)):
            raise UnsupportedError(
                f"constant {name!r} holds {'-' if math.isinf(span[0]) else ''}inf, and results of "
                "the calibration samples show it",
                remedy="give samples of which no place is masked whole",
                location=tensor.location,
            )
        return span

    def seen(self, name: str) -> Interval:
        """Return the interval beyond which readers of an activation told nothing on samples."""
        return self._found[name].seen if name in self._found else EVERYTHING

    def leaves(self, node: Node) -> bool:
        """Whether a result goes to the outputs, and nowhere else; it may be moved on the way."""
        readers = self.graph.consumers(node.name)
        return all(reader.has(Trait.MOVES) and self.leaves(reader) for reader in readers)

    def is_masked(self, name: str) -> bool:
        """Whether the lowest code of what a softmax reads is far below all that it can tell apart.

        Then something was hidden there, and whatever else has this code has no weight either.
        """
        found, qtype = self._found.get(name), self.chosen[name]
        if found is None or not found.cut_below or self.scheme.rounding == "tflite":
            return False
        return float(qtype.dequantize(qtype.lo)) <= found.seen.lo + scale_of(qtype)

    def shown(self, name: str) -> Interval:
        """Return the interval of a result beyond which its codes, or its readers, tell nothing."""
        given, found = self.authors(name), self._found.get(name)
        if given is not None:
            lo, hi = given.dequantize([given.lo, given.hi]).tolist()
            return Interval(lo, hi)
        if found is None or found.seen == EVERYTHING:
            return EVERYTHING
        return Interval(*self.span(name)).with_all(found.seen)

    def shown_sum(self, node: Node) -> Interval:
        """Return the same of sums, before their activation limits them."""
        return self.shown(node.name).within(Interval(*activation_limits(node)))

    def covered(self, node: Node) -> tuple[float, float]:
        """Return the range that the format of a node's sums covers; 0 alone if it is not known."""
        if self.authors(node.name) is not None or not self._found:
            return 0.0, 0.0
        return self.span(node.name)

    def shared(self, name: str) -> QType | None:
        """Return the format of a state, or of the operator that alone reads a result.

        Of operators, those that have one format for all; None if there is neither.
        """
        return self.of_state(name) or (self.joint(name) if name in self._owners else None)

    def joint(self, name: str) -> QType:
        """Return the format of a ``max``, ``min`` or ``concat``: the union of its operands'."""
        owner = self._owners.get(name, name)
        source_format = self.authors(owner) or self.of_state(owner)
        if source_format is not None:
            return source_format
        results = {owner, *(name for name, other in self._owners.items() if other == owner)}
        operands = {
            name
            for node in self.graph.nodes
            if node.has(Trait.ONE_FORMAT) and node.name in results
            for name in node.inputs
        }
        distinct = {self.chosen.get(name) for name in operands}
        if len(distinct) == 1 and (common := distinct.pop()) is not None:
            return common
        shown, graph = self.shown(owner), self.graph
        spans = [
            self.span(name)
            if graph.tensor(name).data is None
            else self.span_of_constant(name, shown)
            for name in operands
        ]
        spans += [(value, value) for name in results for value in self._put_around(name)]
        scheme = self.scheme_of(owner)
        return scheme.activation(min(lo for lo, _ in spans), max(hi for _, hi in spans))


class Rule(ABC):
    """How the format of an operator's result is chosen."""

    has_headroom: ClassVar[bool] = False
    """Whether results may well be greater than samples show."""

    @abstractmethod
    def format(self, formats: Formats, node: Node) -> QType:
        """Return the format of the result; choose those of constants."""


rules = PerOperator[type[Rule]]("rule for formats")


@rules(Trait.KEEPS_FORMAT)
class Kept(Rule):
    """The format of the input."""

    def format(self, formats: Formats, node: Node) -> QType:
        return formats.chosen[node.inputs[0]]


@rules("softmax")
class Probability(Rule):
    """A format for values from 0 to 1."""

    def format(self, formats: Formats, node: Node) -> QType:
        """Take finer steps where no probability is near 1, and results are summed up."""
        usual = softmax_qtype(formats.scheme.rounding)
        is_given = formats.graph.tensor(node.name).quant is not None
        is_tflite = formats.scheme.rounding == "tflite"
        if is_tflite or is_given or not formats.has_samples or formats.leaves(node):
            return usual
        bits = min(
            max(formats.scheme_of(node.name).activation_bits, usual.bits), MAX_SOFTMAX_PLACES
        )
        _, most = formats.span(node.name)
        places = math.floor(math.log2(((1 << bits) - 0.5) / max(most, 2.0**-MAX_SOFTMAX_PLACES)))
        return QType(bits, signed=False, scale=2.0 ** -min(max(places, bits), MAX_SOFTMAX_PLACES))


@rules(Trait.INDEX)
class Index(Rule):
    """A format wide enough for the index of every channel."""

    def format(self, formats: Formats, node: Node) -> QType:
        return index_qtype(formats.graph.tensor(node.inputs[0]).shape[1])


@rules(Trait.ONE_FORMAT)
class Joint(Rule):
    """The format that the result and all operands share."""

    def format(self, formats: Formats, node: Node) -> QType:
        source_format = formats.authors(node.name)
        return source_format or formats.joint(node.name)


class Computed(Rule):
    """The author's format, or one from samples; the accumulator must not be too coarse for it."""

    def format(self, formats: Formats, node: Node) -> QType:
        step = self.step(formats, node)
        source_format = formats.authors(node.name)
        if source_format is not None:
            return source_format
        largest = formats.largest_factor(node)
        shared = formats.shared(node.name)
        if shared is not None and step <= largest * scale_of(shared):
            return shared
        if formats.has_samples:
            return formats.observed(node.name, step / largest)
        return self.without_samples(formats, node)

    @abstractmethod
    def step(self, formats: Formats, node: Node) -> float:
        """Return the real value of one step of a node's accumulator, 0 if it has none."""

    @abstractmethod
    def without_samples(self, formats: Formats, node: Node) -> QType:
        """Return a format that follows from those of the operands."""


@rules(Trait.TABLE)
class Function(Computed):
    """A format for all values of a function on the codes of its input."""

    def step(self, formats: Formats, node: Node) -> float:
        del formats, node
        return 0.0

    def without_samples(self, formats: Formats, node: Node) -> QType:
        source = formats.chosen[node.inputs[0]]
        with np.errstate(all="ignore"):
            values = unary_function(node)(source.dequantize(np.arange(source.lo, source.hi + 1)))
        finite = values[np.isfinite(values)]
        lo, hi = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
        return formats.scheme_of(node.name).activation(lo, hi)


@rules(Trait.WEIGHTS)
class WeightedSum(Computed):
    """A format for sums of products with weights; only samples show their usual range.

    What an integer LSTM adds to its gates has their steps, and is not limited.
    """

    has_headroom = True

    def format(self, formats: Formats, node: Node) -> QType:
        if not needs_format(node) and formats.graph.tensor(node.name).quant is None:
            return SHORT_SUM_QTYPE
        return super().format(formats, node)

    def step(self, formats: Formats, node: Node) -> float:
        return formats.layer_steps[node.name]

    def without_samples(self, formats: Formats, node: Node) -> QType:
        return formats.observed(node.name)


@rules("avg_pool")
class Average(Computed):
    """A format for averages, which lie within the range of the input."""

    def step(self, formats: Formats, node: Node) -> float:
        return formats.scale(node.inputs[0])

    def without_samples(self, formats: Formats, node: Node) -> QType:
        return formats.chosen[node.inputs[0]]


@rules("box")
class WindowSum(Average):
    """A format for window sums: the input's range times the number of taps."""

    def without_samples(self, formats: Formats, node: Node) -> QType:
        lo, hi = formats.limits(node.inputs[0])
        taps = node.attributes(PoolAttributes).taps
        return formats.scheme_of(node.name).activation(lo * taps, hi * taps)


@rules("normalize")
class Normalized(Computed):
    """A format for normalized numbers, scaled and moved; their root mean square is 1 at most."""

    has_headroom = True

    def format(self, formats: Formats, node: Node) -> QType:
        for name in node.inputs[1:]:
            formats.chosen[name] = fine_qtype(formats.graph.constant(name))
        return super().format(formats, node)

    def step(self, formats: Formats, node: Node) -> float:
        del formats, node
        return 0.0

    def without_samples(self, formats: Formats, node: Node) -> QType:
        scale, offset = (formats.graph.constant(name) for name in node.inputs[1:])
        reach = np.abs(scale) * formats.graph.tensor(node.inputs[0]).shape[1] ** 0.5
        lo, hi = float((offset - reach).min()), float((offset + reach).max())
        return formats.scheme_of(node.name).activation(lo, hi)


class Arithmetic(Computed):
    """A format for all values of an operator on the limits of both operands."""

    has_headroom = True

    def step(self, formats: Formats, node: Node) -> float:
        for name, other in zip(node.inputs, reversed(node.inputs), strict=True):
            data = formats.graph.tensor(name).data
            if data is not None:
                span = formats.span_of_constant(name, self.constant(formats, node, name, other))
                given = source_activation(formats.graph.tensor(name))
                formats.chosen[name] = given or formats.scheme_of(node.name).activation(*span)
        first, second = map(formats.scale, node.inputs)
        return self.step_of(first, second)

    def constant(self, formats: Formats, node: Node, name: str, other: str) -> Interval:
        """Return the interval beyond which a constant operand gives what readers do not see."""
        del formats, node, name, other
        return EVERYTHING

    @staticmethod
    def step_of(first: float, second: float) -> float:
        """Return the real value of one accumulator step, from the scales of the operands."""
        return max(first, second)

    def without_samples(self, formats: Formats, node: Node) -> QType:
        first, second = map(formats.limits, node.inputs)
        corners = [self.value(a, b) for a in first for b in second]
        return formats.scheme_of(node.name).activation(min(corners), max(corners))

    @staticmethod
    @abstractmethod
    def value(first: float, second: float) -> float:
        """Return the operator's result for two numbers."""


@rules("add")
class Sum(Arithmetic):
    """A sum."""

    def constant(self, formats: Formats, node: Node, name: str, other: str) -> Interval:
        return formats.shown_sum(node).less(Interval(*formats.limits(other)))

    @staticmethod
    def value(first: float, second: float) -> float:
        return first + second


@rules("sub")
class Difference(Arithmetic):
    """A difference."""

    def constant(self, formats: Formats, node: Node, name: str, other: str) -> Interval:
        taken = Interval(*formats.limits(other))
        if name == node.inputs[0]:
            return formats.shown_sum(node).less(taken.negative)
        return formats.shown_sum(node).less(taken).negative

    @staticmethod
    def value(first: float, second: float) -> float:
        return first - second


@rules("mul")
class Product(Arithmetic):
    """A product."""

    def constant(self, formats: Formats, node: Node, name: str, other: str) -> Interval:
        """Return factors by which any code but that of 0 becomes what readers do not see."""
        shown, limits = formats.shown_sum(node), Interval(*formats.limits(other))
        down, up = -shown.lo / formats.scale(other), shown.hi / formats.scale(other)
        least = max(down if limits.hi > 0 else 0.0, up if limits.lo < 0 else 0.0)
        most = max(up if limits.hi > 0 else 0.0, down if limits.lo < 0 else 0.0)
        return Interval(-least, most)

    @staticmethod
    def step_of(first: float, second: float) -> float:
        return first * second

    @staticmethod
    def value(first: float, second: float) -> float:
        return first * second


@rules(Trait.CONTRACTS)
class Contracted(Computed):
    """A format for sums of products of two activations; only samples show their usual range."""

    has_headroom = True

    def step(self, formats: Formats, node: Node) -> float:
        product = node.attributes(ContractionAttributes)
        return abs(product.scale) * formats.scale(node.inputs[0]) * formats.scale(node.inputs[1])

    def without_samples(self, formats: Formats, node: Node) -> QType:
        return formats.observed(node.name)


@rules("quotient")
class Ratio(Arithmetic):
    """A quotient, of which the divisor is a step at least."""

    has_headroom = False

    @staticmethod
    def step_of(first: float, second: float) -> float:
        del first, second
        return 0.0  # it has no sums, whose steps no result could be finer than

    def without_samples(self, formats: Formats, node: Node) -> QType:
        dividend, divisor = node.inputs
        most = max(map(abs, formats.limits(dividend))) / formats.scale(divisor)
        return formats.scheme_of(node.name).activation(-most, most)

    @staticmethod
    def value(first: float, second: float) -> float:
        return first / second


rules.require_all()


def needs_format(node: Node) -> bool:
    """Whether the format of a node's result is the author's, or comes from samples alone."""
    is_layer = node.has(Trait.WEIGHTS) and not node.attrs.get("is_short")
    return is_layer or node.has(Trait.CONTRACTS)


def scale_of(qtype: QType) -> float:
    """Return the scale of an activation's format."""
    assert not isinstance(qtype.scale, tuple), "activations have one scale"
    return qtype.scale
