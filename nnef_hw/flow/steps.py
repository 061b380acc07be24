"""The steps of one run of a build: which of them had to be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nnef_hw.flow.cache import cached_step

__all__ = ["Steps"]


@dataclass(frozen=True, slots=True)
class Steps:
    """Runs steps in a build's folder; ``done`` are the names of those that were not there yet."""

    folder: Path
    done: list[str] = field(default_factory=list)

    def run(self, name: str, key: str, produce: Callable[[Path], Any]) -> Any:
        """Do a step, unless it is done, as :func:`~nnef_hw.flow.cache.cached_step` says."""
        value, is_new = cached_step(self.folder, name, key, produce)
        if is_new:
            self.done.append(name)
        return value
