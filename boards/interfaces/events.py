"""Sinks that tell events: a network has found something, with a mean score that is high enough."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.boards.interfaces.interface import ChosenSink, Option, Result
from nnef_hw.errors import TargetError, UsageError

__all__ = ["MEAN_OPTIONS", "MOST_STEPS", "SUM_BLOCKS", "EventSink", "Occurrence", "check_steps",
           "least_sum", "scores_of", "sums_of"]

MOST_STEPS = 16
"""Steps of a mean, at most."""
SUM_BLOCKS = 2
"""Block RAMs for scores of earlier steps and their sums, of all classes."""
MEAN_OPTIONS = (
    Option("threshold", float, "least mean of its scores (0.5)"),
    Option("mean", int, f"steps of the mean, 1 to {MOST_STEPS} (1)"),
)
"""Options that every sink of events has."""


@dataclass(frozen=True)
class Occurrence:
    """An event as the fixed-point model has it.

    Parameters
    ----------
    step
        Step of the network.
    number
        Number of the class.
    total
        Sum of the class's codes in the steps of the mean.
    score
        The real mean of its scores.
    """

    step: int
    number: int
    total: int
    score: float

    @classmethod
    def of(cls, step: int, number: int, total: int, mean: int, qtype: QType) -> "Occurrence":
        """Return the event of a sum of codes of a format."""
        score = (total / mean - qtype.zero_point) * float(qtype.scale)
        return cls(step, number, total, score)


class EventSink(ChosenSink):
    """A sink that tells events of an output to whoever is beyond its pins."""

    threshold: float
    mean: int
    quiet: int

    @property
    def given(self) -> Mapping[str, object]:
        return {option.name: getattr(self, option.name) for option in self.options}

    @abstractmethod
    def occurrences(self, codes: ArrayLike, qtype: QType) -> Sequence[Occurrence]:
        """Return the events of codes [steps, ...] of the output, whose format is given."""

    @abstractmethod
    def told(self, data: bytes, clk_hz: float) -> Sequence[tuple[int, str]]:
        """Return the cycle of every event that its far end was told, and what it said of it."""

    @abstractmethod
    def says(self, event: Occurrence) -> str:
        """Return the text of an event, without its time; the empty text if there is none."""

    @abstractmethod
    def title_of(self, event: Occurrence) -> str:
        """Return the name of an event's class."""


def check_steps(where: str, mean: int, quiet: int) -> None:
    """Refuse numbers of steps that make no sense.

    Raises
    ------
    UsageError
        With the limits.
    """
    if not 1 <= mean <= MOST_STEPS:
        raise UsageError(f"{where}: mean={mean} is not within 1 to {MOST_STEPS} steps")
    if quiet < 1:
        raise UsageError(f"{where}: quiet={quiet} is no step at all")


def least_sum(where: str, form: QType, mean: int, threshold: float) -> int:
    """Return the least sum of codes whose mean reaches a threshold.

    Raises
    ------
    TargetError
        If no mean of scores is that high, or each is.
    """
    scale = Fraction(float(form.scale))
    cutoff = ceil(mean * (Fraction(str(threshold)) / scale + form.zero_point))
    lowest, highest = (float(form.dequantize(code)) for code in (form.lo, form.hi))
    if not mean * form.lo < cutoff <= mean * form.hi:
        raise TargetError(
            f"{where}: a threshold of {threshold:g} is not within its scores, {lowest:g} "
            f"to {highest:g}", remedy="give one between them: threshold=NUMBER")
    return cutoff


def sums_of(codes: ArrayLike, mean: int) -> IntArray:
    """Return the sums [steps, classes] of codes [steps, ...] in each step and those before it."""
    scores = np.asarray(codes, np.int64)
    scores = scores.reshape(len(scores), -1)
    total = np.concatenate([np.zeros((1, scores.shape[1]), np.int64), scores.cumsum(axis=0)])
    begin = np.maximum(np.arange(len(scores)) + 1 - mean, 0)
    return total[1:] - total[begin]


def scores_of(result: Result, where: str) -> int:
    """Return how many scores an output has along its one axis.

    Raises
    ------
    TargetError
        If it is the number of a class, or has several axes.
    """
    if result.classes is not None:
        raise TargetError(f"{where}: it is the number of a class, and a mean of numbers says "
                          "nothing", remedy="name an output with scores")
    long = [extent for extent in result.shape if extent > 1]
    if len(long) > 1:
        shape = "x".join(map(str, result.shape))
        raise TargetError(f"{where}: it has several axes (its shape is {shape})",
                          remedy="name an output with a score for each class")
    return long[0] if long else 1
