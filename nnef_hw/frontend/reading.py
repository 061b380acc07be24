"""One object holds how a model file is read; commands and builds hand it on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nnef_hw.frontend import load
from nnef_hw.frontend.front import Front
from nnef_hw.frontend.named_states import NamedStates
from nnef_hw.ir import Graph

__all__ = ["AS_WRITTEN", "Reading"]


@dataclass(frozen=True)
class Reading:
    """Everything that decides which graph a model file becomes.

    Parameters
    ----------
    dims, lenient, inputs, outputs, bind, states, front
        As :func:`nnef_hw.frontend.load` takes them.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    lenient: bool = False
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    bind: Mapping[str, float] = field(default_factory=dict)
    states: NamedStates = field(default_factory=dict)
    front: Front | None = None

    def __bool__(self) -> bool:
        """Whether the file is not to be read just as it was written."""
        return any(vars(self).values())

    def load(self, path: Path | str) -> Graph:
        """Read a model file; see :func:`nnef_hw.frontend.load` for the errors it raises."""
        return load(path, **vars(self))


AS_WRITTEN = Reading()
