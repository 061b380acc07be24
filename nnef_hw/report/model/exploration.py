"""Designs of a sweep, from their plans to their placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.report.model.conversion import to_json

__all__ = ["Explored", "Placed", "Point", "Quality"]


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of a fixed network on samples that calibration did not see, unless they are few.

    Parameters
    ----------
    metric
        ``accuracy`` (0..1) or ``mae``; None without labels.
    samples
        How many were scored.
    real, fixed
        Score of the real network and the fixed one; None if it is not known.
    sqnr_db, worst_layer
        Least signal to noise ratio of a layer's result, and whose it is; None if there is no noise,
        or nothing to compare with.
    output_sqnr_db
        That of the first output.
    calibrated
        Whether the samples are those that calibrated, because there are few.
    """

    metric: str | None
    samples: int
    real: float | None
    fixed: float | None
    sqnr_db: float | None
    worst_layer: str | None
    output_sqnr_db: float | None
    calibrated: bool = False

    @property
    def value(self) -> float:
        """One number, of which more is better."""
        if self.fixed is not None:
            return self.fixed if self.metric == "accuracy" else -self.fixed
        return float("inf") if self.output_sqnr_db is None else self.output_sqnr_db


@dataclass(frozen=True, slots=True)
class Placed:
    """Clocks that place and route reaches.

    Parameters
    ----------
    fmax_mhz
        Possible clock by the seed of the placement.
    refusals
        By seed, why there is no placement.
    """

    fmax_mhz: Mapping[str, float]
    refusals: Mapping[str, str]

    @property
    def best(self) -> float | None:
        """The fastest clock in MHz; None if no placement succeeded."""
        return max(self.fmax_mhz.values(), default=None)


@dataclass(slots=True)
class Point:
    """A design: a board, widths of weights, and a plan; later stages fill in what they find.

    Parameters
    ----------
    number
        Its number in the sweep, from 1 on.
    board, device, weight_bits, target_fps, clock_mhz
        What was asked for; ``target_fps`` None for the fastest design.
    build
        What builds it: a command, or an expression of the Python API.
    arch, cycles_per_inference, latency_cycles, multipliers, estimated, bottleneck
        Its plan: cycles are exact, of the resources LUTs and flip-flops are estimates.
    available
        What the device has.
    quality
        How good its integers are.
    mapped
        Resources that nextpnr counts after synthesis, or after placement if there is one.
    placed
        Clocks that placements reach.
    refusal, remedy
        Why it ends here, and what would help.
    is_front
        Whether no other design of its board is better in one respect and worse in none.
    """

    number: int
    board: str
    device: str
    weight_bits: int
    target_fps: float | None
    clock_mhz: float
    build: str
    available: Mapping[str, int]
    arch: str | None = None
    cycles_per_inference: int | None = None
    latency_cycles: int | None = None
    multipliers: int | None = None
    bottleneck: str | None = None
    estimated: Mapping[str, int] = field(default_factory=dict)
    quality: Quality | None = None
    mapped: Mapping[str, int] = field(default_factory=dict)
    placed: Placed | None = None
    refusal: str = ""
    remedy: str = ""
    is_front: bool = False

    @property
    def stage(self) -> str:
        """Stage that the design reached: ``refused``, ``planned``, ``mapped`` or ``placed``."""
        if self.refusal:
            return "refused"
        if self.placed is not None:
            return "placed"
        return "mapped" if self.mapped else "planned"

    @property
    def lut(self) -> float:
        """Share of the device's LUTs, 0..1: as synthesis found, else as estimated."""
        return (self.mapped or self.estimated)["lut"] / self.available["lut"]

    @property
    def timing_met(self) -> bool | None:
        """Whether a placement reaches the clock; None if there is none yet."""
        if self.placed is None or self.placed.best is None:
            return None
        return self.placed.best >= self.clock_mhz

    @property
    def rate(self) -> float:
        """Inferences per second at the board's clock, or at the one that placement allows."""
        clock = self.clock_mhz
        if self.timing_met is False:
            assert self.placed is not None
            clock = self.placed.best or clock
        return clock * 1e6 / (self.cycles_per_inference or 1)

    def to_json(self) -> dict[str, object]:
        """Return plain JSON values, a line of ``points.jsonl``."""
        row: dict[str, object] = asdict(self)
        if self.cycles_per_inference:
            row |= {"inferences_per_second": self.rate, "lut_share": self.lut}
        return {"number": self.number, "stage": self.stage} | row | {"timing_met": self.timing_met}


@dataclass(frozen=True, slots=True)
class Explored:
    """A sweep over designs of a network.

    Parameters
    ----------
    model
        Name of the network.
    points
        All designs.
    commands
        Commands that made the sweep; none if the Python API did.
    warnings
        Why to doubt the samples.
    """

    model: str
    points: Sequence[Point]
    commands: Sequence[str] = ()
    warnings: Sequence[QualityWarning] = ()

    def to_json(self) -> dict[str, object]:
        """Return plain JSON values."""
        return {
            "model": self.model,
            "points": [point.to_json() for point in self.points],
            "commands": list(self.commands),
            "warnings": to_json(self.warnings),
        }
