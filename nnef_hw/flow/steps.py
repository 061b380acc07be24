"""The steps of one run of a build: which of them had to be done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from nnef_hw.flow.cache import cached_step
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.report.model.checks import Accuracy, Simulation
from nnef_hw.report.model.conversion import from_json, to_json
from nnef_hw.report.model.limits import OtherArchitecture, StepOfStream

__all__ = ["Compiled", "Steps", "Verified"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Compiled:
    """Result of the first step of a build: notes of its report.

    Parameters
    ----------
    stream, others, warnings, seconds
        Fields of :class:`.Report`; of the seconds those of this step.
    """

    stream: StepOfStream | None
    others: tuple[OtherArchitecture, ...]
    warnings: tuple[QualityWarning, ...]
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of a build's simulation.

    Parameters
    ----------
    simulation, accuracy, noise, seconds
        Fields of :class:`.Report`; of the seconds those of this step.
    losses
        Why to doubt the network, by its scores.
    """

    simulation: Simulation
    accuracy: Accuracy | None
    noise: Mapping[str, float | None]
    losses: tuple[QualityWarning, ...]
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Steps:
    """Runs steps in a build's folder; ``done`` are the names of those that were not there yet."""

    folder: Path
    done: list[str] = field(default_factory=list)

    def run(self, name: str, key: str, produce: Callable[[Path], T], kind: type[T]) -> T:
        """Do a step, unless it is done, as :func:`~nnef_hw.flow.cache.cached_step` says.

        ``kind`` is the type of what it returns, which the record of the step has as JSON.
        """
        value, is_new = cached_step(
            self.folder, name, key, lambda scratch: to_json(produce(scratch))
        )
        if is_new:
            self.done.append(name)
        return from_json(value, kind)
