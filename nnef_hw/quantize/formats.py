"""Formats of activations: ranges that they have to cover, and what neighbours ask of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tables import TABLE_BITS
from nnef_hw.errors import SampleError, UnsupportedError
from nnef_hw.ir import Graph, Node, State, Trait
from nnef_hw.ir.activation import activation_limits
from nnef_hw.ir.input_readers import index_count
from nnef_hw.ir.operators import PerOperator
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
    heard_samples,
    padded_values,
)
from nnef_hw.quantize.params import AUDIO, MULT_BITS, index_qtype
from nnef_hw.reference.visible import EVERYTHING, Interval

__all__ = ["Formats", "Rule", "rules", "scale_of"]

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
        self._heard = heard_samples(graph)
        self._states = states
        self._results = mere_results(graph)
        self._groups = state_groups(graph, states)
        self._of_groups: dict[frozenset[str], QType] = {}

    def choose_input(self, name: str) -> QType:
        """Choose the format of a graph input."""
        count = index_count(self.graph, name)
        self.chosen[name] = (
            (index_qtype(count) if count else None)
            or self.of_state(name)
            or self.authors(name)
            or self._of_samples(name)
            or self._of_bytes(name)
            or self.observed(name)
        )
        return self.chosen[name]

    def authors(self, name: str) -> QType | None:
        """Return the format that the author of the model gave to an activation, if any."""
        return source_activation(self.graph.tensor(name), is_result=name in self._results)

    def _of_samples(self, name: str) -> QType | None:
        """Return the format of an input that is samples of audio; None if it is something else.

        Full scale is 1, or the power of two that all samples are below.
        """
        if name not in self._heard:
            return None
        lo, hi = self.span(name) if self._found else (0.0, 0.0)
        full = 2.0 ** max(math.ceil(math.log2(max(-lo, hi, 1.0))), 0)
        return QType(AUDIO.bits, signed=True, scale=full / (1 << AUDIO.bits - 1))

    def _of_bytes(self, name: str) -> QType | None:
        """Return the format of an input that is bytes; None if there are others."""
        found, is_integer = self._found.get(name), self.graph.tensor(name).dtype == "integer"
        if found is None:
            return None
        is_integer = is_integer or self._stays_integer(name)
        return choose_bytes(found, self.scheme_of(name), is_integer=is_integer)

    def _stays_integer(self, name: str) -> bool:
        """Whether all that is computed of an activation is, by its author, integers."""
        readers = self.graph.consumers(name)
        for reader in readers:
            given = self.authors(reader.name)
            if given is None and reader.has(Trait.KEEPS_FORMAT):
                if not self._stays_integer(reader.name):
                    return False
            elif given is None or given.scale != 1 or given.zero_point != 0:
                return False
        return bool(readers)

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

    def only(self, name: str) -> QType | None:
        """Return the format of a tensor that an operator allows no other for, if there is one.

        It may be the operator of what shares its format because of a state.
        """
        nodes = (self.graph.producer(other) for other in sorted(self._groups.get(name, {name})))
        found = (rules[node.op].only for node in nodes if node is not None)
        return next((qtype for qtype in found if qtype is not None), None)

    def _shared_by(self, group: frozenset[str]) -> QType:
        names = sorted(group, key=lambda name: (name not in self._states, name))
        only = self.only(names[0])
        if only is not None:
            return only
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
        source = computing_node(self.graph, name, until=Trait.INDEXED)
        if source is not None and source.op == "causal_mask":
            return True
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
            for name in node.numbers
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
    """A way to choose the format of an operator's result."""

    has_headroom: ClassVar[bool] = False
    """Whether results may well be greater than samples show."""
    only: ClassVar[QType | None] = None
    """The format of every result, of a state that takes it over as well; None if it varies."""

    @abstractmethod
    def format(self, formats: Formats, node: Node) -> QType:
        """Return the format of the result; choose those of constants."""


rules = PerOperator[type[Rule]]("rule for formats")
"""Rules by operator; :mod:`nnef_hw.quantize.format_rules` has all."""


def scale_of(qtype: QType) -> float:
    """Return the scale of an activation's format."""
    assert not isinstance(qtype.scale, tuple), "activations have one scale"
    return qtype.scale
