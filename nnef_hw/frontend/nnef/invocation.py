"""What is known while a body is evaluated, and an invocation with evaluated arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.syntax import Declaration
from nnef_hw.ir import Tensor

if TYPE_CHECKING:
    from nnef_hw.frontend.nnef.evaluate import Evaluator

__all__ = ["Invoked", "Names", "Scope", "first_name"]

Names: TypeAlias = "str | Sequence[Names] | None"
"""What the tensors of a value shall be called: a name, names of the items, or as may be."""


@dataclass(slots=True)
class Scope:
    """The identifiers of a body while it is evaluated.

    Parameters
    ----------
    values
        Tensors (:class:`~nnef_hw.ir.Tensor`), numbers, strings, logicals, lists and tuples.
    location
        The statement of the graph that is evaluated: where nodes come from.
    prefix
        What the names of its own tensors begin with; empty in the graph.
    results
        Names for the results of the fragment.
    dtype
        What ``?`` stands for.
    root
        What the names of tensors without an identifier begin with.
    library
        Whether the body is a library's: the document's fragments are not known there.
    """

    values: dict[str, Any]
    location: Location | None = None
    prefix: str = ""
    results: Mapping[str, Names] = field(default_factory=dict)
    dtype: str | None = None
    root: str = ""
    depth: int = 0
    library: bool = False


@dataclass(slots=True)
class Invoked:
    """An invocation with evaluated arguments: what lowerings work on.

    Parameters
    ----------
    values
        All arguments by parameter name, defaults included.
    dtype
        What ``?`` stands for; None if the operator is not generic.
    names
        Wanted names of the results.
    places
        Location of each argument that was given.
    """

    evaluator: Evaluator
    declaration: Declaration
    values: dict[str, Any]
    dtype: str | None
    names: Names
    places: Mapping[str, Location]
    location: Location
    scope: Scope

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.declaration.name

    @property
    def name(self) -> str:
        """The first result's wanted name."""
        return first_name(self.names) or f"{self.scope.root}_{self.op}"

    def error(self, reason: str, remedy: str | None = None, *, at: str = "") -> ModelError:
        """Make an error about this invocation, or about its argument ``at``."""
        return ModelError(
            f"{self.op} {self.name!r}: {reason}",
            remedy=remedy,
            location=self.places.get(at, self.location),
        )

    def tensor(self, parameter: str, name: str | None = None) -> Tensor:
        """Return a tensor argument; a literal becomes a constant named after the parameter."""
        where = self.places.get(parameter, self.location)
        wanted = f"{name or self.name}_{parameter}"
        return self.evaluator.tensor(self.values[parameter], wanted, where, self.dtype)

    def node(self) -> Any:
        """Return the results of the operator's own node, which takes the values as they are now."""
        return self.evaluator.node(self)

    def call(self, op: str, *arguments: Any, names: Names = None, **attrs: Any) -> Any:
        """Invoke a library's operator; parameters that are left out have their defaults."""
        evaluator = self.evaluator
        declaration = evaluator.declaration(op, self.location, library=True)
        given = dict(zip((item.name for item in declaration.parameters), arguments, strict=False))
        given |= attrs
        return evaluator.invoke(
            declaration, given, None, names, self.places, self.location, self.scope
        )


def first_name(names: Names) -> str | None:
    """Return the first of the wanted names; None if there is none."""
    while names is not None and not isinstance(names, str):
        names = names[0] if names else None
    return names
