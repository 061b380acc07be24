"""A part that is measured, and what it is filled with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nnef_hw.parts import Part

__all__ = ["CODES", "Case"]

CODES: dict[str, Any] = {"bits": 8, "signed": False}


@dataclass(frozen=True, slots=True)
class Case:
    """A part and what it is filled with.

    Its contents count too: cases that differ from others in them are not ``typical`` and not
    fitted.
    """

    part: Part
    contents: Mapping[str, Any] = field(default_factory=dict)
    note: Mapping[str, int | str] = field(default_factory=dict)
    typical: bool = True
    built: Any = None

    def build(self) -> Any:
        """Return the component."""
        return self.part.build(**self.contents) if self.built is None else self.built
