"""A rule for each kind of operator: how the format of its result is chosen."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.integer_functions import SCALE_BITS
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.softmax import MAX_SOFTMAX_PLACES
from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Node, Trait
from nnef_hw.ir.operators import (
    ContractionAttributes,
    FrontAttributes,
    LogBandsAttributes,
    LogMelAttributes,
    MicroFrontendAttributes,
    PoolAttributes,
)
from nnef_hw.quantize.calibration.source_quantization import source_activation
from nnef_hw.quantize.formats import Formats, Rule, rules, scale_of
from nnef_hw.quantize.params import SHORT_SUM_QTYPE, fine_qtype, index_qtype, softmax_qtype
from nnef_hw.reference import unary_function
from nnef_hw.reference.visible import EVERYTHING, Interval

__all__ = ["needs_format"]


def needs_format(node: Node) -> bool:
    """Whether the format of a node's result is the author's, or comes from samples alone."""
    is_layer = node.has(Trait.WEIGHTS) and not node.attrs.get("is_short")
    return is_layer or node.has(Trait.CONTRACTS)


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


@rules("lookup")
class Row(Rule):
    """The format of a table, which spans all of its rows."""

    def format(self, formats: Formats, node: Node) -> QType:
        table = node.inputs[0]
        shared = formats.authors(node.name) or formats.shared(node.name)
        span = formats.span_of_constant(table, formats.shown(node.name))
        formats.chosen[table] = shared or formats.scheme_of(node.name).activation(*span)
        return formats.chosen[table]


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


@rules("integer_softmax", "integer_normalize")
class OfIntegers(Rule):
    """The author's format: integers in steps of 1."""

    def format(self, formats: Formats, node: Node) -> QType:
        for name in (node.name, node.inputs[0]):
            given = formats.authors(name) if name == node.name else formats.chosen[name]
            if given is None or given.scale != 1 or given.zero_point:
                what = "its result" if name == node.name else f"what it reads, {name!r},"
                raise UnsupportedError(
                    f"{node.op} {node.name!r}: {what} is no integer in steps of 1",
                    remedy="give the whole network of integers, as its exporter wrote it",
                    location=node.location,
                )
        for name in node.inputs[1:]:
            formats.chosen[name] = QType(SCALE_BITS, signed=True, scale=1.0)
        result = formats.authors(node.name)
        assert result is not None
        return result


class Features(Rule):
    """The author's format, or one for the whole range of features, or of those of the samples."""

    attributes: ClassVar[type[FrontAttributes]]

    def format(self, formats: Formats, node: Node) -> QType:
        given = formats.authors(node.name) or formats.shared(node.name)
        if given is not None:
            return given
        limits = node.attributes(self.attributes).limits
        if limits is None:
            return formats.observed(node.name)
        return formats.scheme_of(node.name).activation(*limits)


@rules("log_mel")
class LogMelFeatures(Features):
    """A format for a ``log_mel``, which has limits."""

    attributes = LogMelAttributes


@rules("log_bands")
class LogBandsFeatures(Features):
    """A format for a ``log_bands``, which may be without limits."""

    attributes = LogBandsAttributes


@rules("micro_frontend", "micro_frontend_step")
class MicroFeatures(Features):
    """A format for a ``micro_frontend``, up to what loud sounds reach."""

    attributes = MicroFrontendAttributes


@rules("micro_noise")
class MicroNoise(Rule):
    """The format of estimates of noise: integers of 32 bits."""

    only = QType(32, signed=False, scale=1.0)

    def format(self, formats: Formats, node: Node) -> QType:
        del formats, node
        return self.only


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
