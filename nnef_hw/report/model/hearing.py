"""Events of a simulated board that hears a sound, or is moved, and the scores behind them."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import FloatArray, IntArray

__all__ = ["Curve", "Event", "Heard", "Hearing", "Sound"]


@dataclass(frozen=True)
class Event:
    """An event that a sink has told.

    Parameters
    ----------
    seconds
        When it was seen on the board's pins, since power-on.
    step
        Step of the network.
    output, number, name
        The class: its number in an output, and what the sink calls it.
    score
        The real mean of its scores.
    """

    seconds: float
    step: int
    output: str
    number: int
    name: str
    score: float


@dataclass(frozen=True)
class Heard:
    """The answer of a simulated board to a recording.

    Parameters
    ----------
    seconds, steps
        Of the recording, and steps of the network in it.
    cycles, cycles_per_second
        Simulated, and per second of real time.
    duty
        Share of the time between two steps in which a step is computed.
    equal
        Whether all events are those of the fixed-point model.
    lost
        Samples that the sensor's receiver has lost, as the board tells its host.
    medium
        Name of what the sensor takes up: sound or motion.
    events
        In their order.
    """

    seconds: float
    steps: int
    cycles: int
    cycles_per_second: int
    duty: float
    equal: bool
    lost: int
    medium: str
    events: tuple[Event, ...]


@dataclass(frozen=True, eq=False)
class Curve:
    """Real scores of an output, step by step, and what sinks compare with them.

    Parameters
    ----------
    output
        The output.
    scores
        Scores [steps, classes] of the fixed-point model.
    thresholds
        The threshold of each sink, and the sink's title.
    """

    output: str
    scores: FloatArray
    thresholds: tuple[tuple[float, str], ...]


@dataclass(frozen=True, eq=False)
class Sound:
    """A recording, as a network got it, and the scores that followed.

    Parameters
    ----------
    name
        Name of the file.
    rate, frame
        Samples per second, and of a step.
    samples
        Codes [samples, channels].
    limits
        The lowest and the highest code.
    channels
        Names of the channels.
    has_spectrum
        Whether a spectrogram says something of it.
    curves
        Scores of each output with a sink of events.
    """

    name: str
    rate: int
    frame: int
    samples: IntArray
    limits: tuple[int, int]
    channels: tuple[str, ...]
    has_spectrum: bool
    curves: tuple[Curve, ...]


@dataclass(frozen=True, eq=False)
class Hearing:
    """The answer of a simulated board, and the recording that it was an answer to."""

    told: Heard
    sound: Sound
