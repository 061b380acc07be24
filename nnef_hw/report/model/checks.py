"""Results of simulations and scores on samples, as a report, ``sim`` and ``compare`` tell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from nnef_hw.quantize.judgement.warnings import QualityWarning

__all__ = [
    "Accuracy",
    "BoardReport",
    "BoardSpeed",
    "BuildComparison",
    "BuildScores",
    "LayerNoise",
    "LayerWork",
    "Scores",
    "Simulation",
    "WorstSample",
]

_Real: TypeAlias = float
"""A real number, in classes in which ``float`` is the score of the real network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Frames that went through the Verilog, and whether they came out as predicted.

    Parameters
    ----------
    frames, frames_given
        Frames that were simulated, and those that there were.
    bit_exact, mismatches
        Whether every frame is that of the fixed-point model, and how many are not.
    cycles_per_inference, latency_cycles
        Cycles between the last results, null of a single frame; cycles of the first result.
    predicted_cycles_per_inference, predicted_latency_cycles
        The same as predicted for a run of so many frames.
    steady_cycles_per_inference
        The interval that long runs come to.
    stall
        Probability per cycle that source and sink pause.
    cycles, cycles_per_second
        Cycles of the whole run, and how many were simulated per second.
    trace, trace_frames, trace_bytes
        File of a waveform, how many frames it has, and its size; only if one was asked for.
    """

    frames: int
    frames_given: int
    bit_exact: bool
    mismatches: int
    cycles_per_inference: int | None
    latency_cycles: int | None
    predicted_cycles_per_inference: int | None
    predicted_latency_cycles: int
    steady_cycles_per_inference: int
    stall: float
    cycles: int
    cycles_per_second: int
    trace: str | UnsetType = UNSET
    trace_frames: int | UnsetType = UNSET
    trace_bytes: int | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores that two builds are compared by: reports of every version have them.

    Parameters
    ----------
    samples, rtl_samples
        Samples that were scored, and those that the Verilog computed.
    float, fixed, rtl
        Scores of the real network, of the fixed-point model, and of the Verilog; null where one
        did not run.
    """

    samples: int
    rtl_samples: int
    float: _Real | None
    fixed: _Real
    rtl: _Real | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstSample:
    """A sample that is judged worst.

    Parameters
    ----------
    sample
        Its number in the file of samples, from 0.
    label, found
        Its class, and the one that the fixed-point model finds; absent for labels of numbers.
    margin
        By how much the label's output exceeds all others; absent for labels of numbers.
    error
        Mean absolute error; absent for labels of classes.
    """

    sample: int
    label: int | UnsetType = UNSET
    found: int | UnsetType = UNSET
    margin: float | UnsetType = UNSET
    error: float | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy(Scores):
    """Scores against labels, and where they are lost.

    Parameters
    ----------
    metric
        ``accuracy``, a share from 0 to 1, or ``mae``, a mean absolute error.
    calibration_samples
        Samples that calibrated.
    calibrated
        Whether these are the samples that were scored, too.
    rtl_equal
        Whether the Verilog gives what the fixed-point model does; null if it computed no sample.
    confusion
        Counts ``[label][class]`` of the fixed-point model; null for labels of numbers.
    worst
        Samples that are judged worst, the worst first.
    """

    metric: str
    calibration_samples: int
    calibrated: bool = False
    rtl_equal: bool | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None
    worst: tuple[WorstSample, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerNoise:
    """Signal to quantization noise of a layer's result.

    Parameters
    ----------
    name, op
        Name of the layer, and its operator.
    sqnr_db
        Signal to noise ratio in dB; null where there is no noise.
    """

    name: str
    op: str
    sqnr_db: float | None


@dataclass(frozen=True, slots=True)
class BuildScores:
    """Scores of a build's networks.

    Parameters
    ----------
    float, fixed, rtl
        Scores of the real network, of the fixed-point model, and of the Verilog; null where one
        did not run.
    """

    float: _Real | None
    fixed: _Real
    rtl: _Real | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildComparison:
    """A build's real network, fixed-point model and Verilog, run on the same samples.

    Parameters
    ----------
    samples
        Samples that the fixed-point model and the Verilog computed.
    bit_exact, mismatches
        Whether every frame is that of the fixed-point model, and how many are not.
    calibration_samples, evaluation_samples
        Samples that calibrated, and those that are scored.
    calibrated
        Whether the scored samples are those that calibrated, because there are few.
    accuracy, mae
        Scores on samples with labels: shares from 0 to 1 for classes, mean absolute errors for
        numbers; the other one is null.
    layers
        Noise of every layer's result; empty without a real network.
    steps
        Of a network with states, for each step of a sequence the signal to noise ratio of every
        output and state.
    warnings
        Why to doubt the network.
    """

    samples: int
    bit_exact: bool
    mismatches: int
    calibration_samples: int
    evaluation_samples: int
    calibrated: bool
    accuracy: BuildScores | None
    mae: BuildScores | None
    layers: tuple[LayerNoise, ...]
    steps: tuple[Mapping[str, int | float | None], ...]
    warnings: tuple[QualityWarning, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """Work of a layer on a board, in cycles per inference.

    Parameters
    ----------
    name
        Name of the layer.
    busy_cycles, waiting_cycles, starved_cycles
        Cycles in which it works, in which its results cannot leave, and in which it has no input,
        as counted; absent of a build without counters.
    predicted_busy_cycles, predicted_waiting_cycles, predicted_starved_cycles
        The same as predicted.
    """

    name: str
    busy_cycles: float | UnsetType = UNSET
    waiting_cycles: float | UnsetType = UNSET
    starved_cycles: float | UnsetType = UNSET
    predicted_busy_cycles: float
    predicted_waiting_cycles: float
    predicted_starved_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSpeed:
    """Speed of a board as measured, beside the prediction.

    Parameters
    ----------
    board
        Name of the board.
    simulated
        Whether the board was simulated; then rates over the link tell of the simulator.
    frames
        Frames that the board fed itself without a pause.
    cycles_per_inference, predicted_cycles_per_inference
        Cycles between results in such a run.
    latency_cycles, predicted_latency_cycles
        Cycles to the result of the first frame.
    inferences_per_second, predicted_inferences_per_second
        Rate of the accelerator.
    link_inferences_per_second
        Rate over the link, in real time.
    damaged_packets
        Packets that the line damaged.
    layers
        Work of each layer.
    """

    board: str
    simulated: bool
    frames: int
    cycles_per_inference: int
    predicted_cycles_per_inference: int
    latency_cycles: int
    predicted_latency_cycles: int
    inferences_per_second: float
    predicted_inferences_per_second: float
    link_inferences_per_second: float
    damaged_packets: int
    layers: tuple[LayerWork, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerScore:
    """Score of a board by MLPerf Tiny's protocol; all its results are those of the fixed model.

    Parameters
    ----------
    benchmark
        Name of the benchmark.
    simulated
        Whether the board was simulated.
    samples
        Inputs that it has run.
    accuracy
        Share of them whose greatest score is the label's; null without labels.
    inferences_per_second
        Median rate, by the board's own clock.
    """

    benchmark: str
    simulated: bool
    samples: int
    accuracy: float | None
    inferences_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardReport:
    """Facts about a build that ran on a board, for those who made the tool.

    Parameters
    ----------
    model, arch
        Names of the network and of its architecture.
    model_hash
        Hash of the fixed-point model, which the board told, too.
    tools
        Names and versions of what made the build.
    speed
        Cycles and rates of the board.
    clock_mhz
        Clock that place and route met.
    measured_clock_mhz, measured_clock_error_mhz
        The board's clock by this computer's time, and by how much it may be off; null of a
        simulated board.
    samples, equal_samples
        Samples that the board computed, and how many results are those of the fixed-point model.
    metric, board_score, fixed_score
        ``accuracy`` or ``mae``, and its values for the board and for the fixed-point model; null
        without labels.
    """

    model: str
    arch: str
    model_hash: str
    tools: tuple[str, ...]
    speed: BoardSpeed
    clock_mhz: _Real
    measured_clock_mhz: _Real | None
    measured_clock_error_mhz: _Real | None
    samples: int
    equal_samples: int
    metric: str | None
    board_score: _Real | None
    fixed_score: _Real | None
