"""An invocation whose arguments fit the operator's declaration: what shape rules work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nnef_hw.arithmetic.records import Fields
from nnef_hw.errors import Location, ModelError
from nnef_hw.ir import Tensor

__all__ = ["Call"]


@dataclass(frozen=True, slots=True)
class Call:
    """An invocation whose arguments fit the declaration.

    Parameters
    ----------
    op, name
        Operator and first result, which name the call in messages.
    inputs
        Tensor arguments in the order of the declaration, arrays of tensors flattened.
    attrs
        All attributes; shape inference replaces defaults by what they stand for.
    dtypes
        Data-type of each declared result.
    places
        Location of each argument that was given.
    """

    op: str
    name: str
    inputs: tuple[Tensor, ...]
    attrs: Fields
    dtypes: tuple[str, ...]
    places: Mapping[str, Location] = field(default_factory=dict)
    location: Location | None = None

    def error(self, reason: str, remedy: str | None = None, *, at: str = "") -> ModelError:
        """Make an error about this call, or about its argument ``at``."""
        return ModelError(
            f"{self.op} {self.name!r}: {reason}",
            remedy=remedy,
            location=self.places.get(at, self.location),
        )
