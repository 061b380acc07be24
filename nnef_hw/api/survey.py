"""What is known of a model before anything is quantized or built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from nnef_hw.api.show import Shown
from nnef_hw.build.survey import Outlook
from nnef_hw.report.survey import survey_tables

__all__ = ["Check", "Survey"]


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """Whether a model can be built; true if it can.

    Parameters
    ----------
    model
        Its name.
    architectures
        Of every architecture, whether it has hardware for the model.
    problems
        Why none of them has; each with its place in the model and what helps.
    """

    model: str
    architectures: Mapping[str, bool]
    problems: Sequence[str]

    def __bool__(self) -> bool:
        return not self.problems

    def _parts(self) -> Iterator[RenderableType]:
        able = ", ".join(name for name, is_able in self.architectures.items() if is_able)
        yield Text(f"{self.model}: " + (f"can be built ({able})" if self else "cannot be built"))
        for problem in self.problems:
            yield Text(f"  {problem}")


@dataclass(frozen=True, repr=False)
class Survey(Shown):
    """What boards would make of a model, in the order they were asked.

    Parameters
    ----------
    outlooks
        One for each: ``board``, ``fits``, ``cycles_per_inference``, ``refusal``, ...
    """

    outlooks: Sequence[Outlook]

    @property
    def fitting(self) -> list[Outlook]:
        """Those that it fits, the fastest first."""
        found = [outlook for outlook in self.outlooks if outlook.fits]
        return sorted(found, key=lambda outlook: -(outlook.inferences_per_second or 0))

    def __getitem__(self, board: str) -> Outlook:
        """Return that of a board.

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
        yield from survey_tables(self.outlooks)
