"""A fixed network beside the real one, as ``nnef-hw quantize --json`` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from nnef_hw.quantize.judgement.warnings import QualityWarning

__all__ = ["Activation", "Bars", "Nats", "Quantization", "QuantizationScores"]

_Real: TypeAlias = float
"""A real number, in a class in which ``float`` is the score of the real network."""


@dataclass(frozen=True, slots=True)
class Nats:
    """Mean of ``-log p`` of labels, by the softmax of outputs: nats per token of a language model.

    Parameters
    ----------
    float, fixed
        Those of the real and of the fixed network.
    """

    float: _Real
    fixed: _Real


@dataclass(frozen=True, slots=True)
class QuantizationScores:
    """Scores against labels.

    Parameters
    ----------
    metric
        ``accuracy``, a share from 0 to 1, or ``mae``, a mean absolute error.
    float, fixed
        Those of the real and of the fixed network.
    nats
        Nats per label of a network with states; null of others, and without scores of classes.
    """

    metric: str
    float: _Real
    fixed: _Real
    nats: Nats | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram.

    Parameters
    ----------
    lo, hi
        Ends of the first and of the last bin, which are all of the same width.
    counts
        Values in each bin.
    """

    lo: float
    hi: float
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """An activation: its format, and what the codes stand for beside the real values.

    Parameters
    ----------
    name, op, location
        Its name; operator, ``input`` or ``state``; place in the model's file.
    bits, signed, scale, zero_point
        Its format; of an input with scales for each feature all of them.
    range
        What the lowest and the highest code stand for.
    given, weights_given
        Whether the model's author chose the format, and the weights.
    weight_bits, mult_bits
        Widths of weights and of multipliers of requantization; None without weights.
    used
        Least and greatest value of the real network; None without samples, as all below.
    clipped
        Share of these values outside of the format.
    sqnr_db, cosine
        Signal to noise ratio in dB and cosine of what the codes stand for against these values;
        None where there is no noise, or no signal.
    histogram
        Histogram of these values.
    """

    name: str
    op: str
    location: str | None
    bits: int
    signed: bool
    scale: float | tuple[float, ...]
    zero_point: int | tuple[int, ...]
    range: tuple[float, float]
    weight_bits: int | None
    mult_bits: int | None
    used: tuple[float, float] | None = None
    clipped: float | None = None
    sqnr_db: float | None = None
    cosine: float | None = None
    histogram: Bars | None = None
    given: bool
    weights_given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """A fixed network beside the real one.

    Parameters
    ----------
    model
        Name of the network.
    weight_bytes
        Bytes of its weights.
    samples, calibrated
        Samples that were compared; whether they are those that calibrated.
    accuracy
        Scores; None without labels.
    confusion
        Counts ``[label][class]`` of the fixed network; None for labels of numbers.
    steps
        Of a network with states, for each step of a sequence the signal to noise ratio of every
        output and state.
    warnings
        Why to doubt the network.
    layers
        The activations, inputs and states first.
    """

    model: str
    weight_bytes: int
    samples: int
    calibrated: bool
    accuracy: QuantizationScores | None
    confusion: tuple[tuple[int, ...], ...] | None
    steps: tuple[dict[str, int | float | None], ...]
    warnings: tuple[QualityWarning, ...]
    layers: tuple[Activation, ...]
