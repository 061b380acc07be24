"""Facts about a model before anything is quantized or built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from nnef_hw.api.show import Shown
from nnef_hw.flow.choice import Goal
from nnef_hw.report.model.network import Outlook
from nnef_hw.report.survey import fastest_first, survey_tables

__all__ = ["Check", "Survey"]


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """Whether a model can be built; true if it can, and fits a board that was asked.

    Parameters
    ----------
    model
        Its name.
    architectures
        Of every architecture, whether it has hardware for the model.
    problems
        Why none of them has; each with its place in the model and what helps.
    boards
        What the boards that were asked would make of it; none of a model with problems.
    """

    model: str
    architectures: Mapping[str, bool]
    problems: Sequence[str]
    boards: Sequence[Outlook] = ()

    def __bool__(self) -> bool:
        fits = not self.boards or any(outlook.fits for outlook in self.boards)
        return fits and not self.problems

    def _parts(self) -> Iterator[RenderableType]:
        able = ", ".join(name for name, is_able in self.architectures.items() if is_able)
        verdict = "cannot be built" if self.problems else f"can be built ({able})"
        yield Text(f"{self.model}: {verdict}")
        for problem in self.problems:
            yield Text(f"  {problem}")
        yield from survey_tables(self.boards)


@dataclass(frozen=True, repr=False)
class Survey(Shown):
    """Plans of a model for several boards, in the order they were asked.

    Parameters
    ----------
    outlooks
        One for each: ``board``, ``fits``, ``cycles_per_inference``, ``refusal``, ...
    goal
        What boards are ordered by: ``rate``, or ``latency``.
    """

    outlooks: Sequence[Outlook]
    goal: Goal = "rate"

    @property
    def fitting(self) -> list[Outlook]:
        """Outlooks of the boards that the model fits, the fastest first."""
        return fastest_first(self.outlooks, by_latency=self.goal == "latency")

    def __getitem__(self, board: str) -> Outlook:
        """Return the outlook of a board.

        Raises
        ------
        KeyError
            If it was not asked.
        """
        for outlook in self.outlooks:
            if outlook.board == board:
                return outlook
        raise KeyError(board)

    def _parts(self) -> Iterator[RenderableType]:
        yield from survey_tables(self.outlooks, by_latency=self.goal == "latency")
