"""An invocation with evaluated arguments: what lowerings work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nnef_hw.arithmetic.records import Fields
from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.evaluation.coercion import MismatchError, coerced
from nnef_hw.frontend.nnef.evaluation.evaluation import Evaluation
from nnef_hw.frontend.nnef.evaluation.scope import Names, Scope, first_name
from nnef_hw.frontend.nnef.language.syntax import ArrayType, Declaration, TensorType, Type
from nnef_hw.ir import Tensor

__all__ = ["Invoked"]


@dataclass(slots=True)
class Invoked:
    """An invocation with evaluated arguments.

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

    evaluator: Evaluation
    declaration: Declaration
    values: Fields
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
        return self.evaluator.tensor(self.values[parameter], wanted, where)

    def coerce(self) -> None:
        """Convert the arguments to the types of their parameters, see :func:`coerced`.

        Raises
        ------
        ModelError
            If one cannot be converted.
        """
        for parameter in self.declaration.parameters:
            name = parameter.name
            try:
                self.values[name] = coerced(self.values[name], parameter.type, self.dtype)
            except MismatchError as error:
                raise self.error(f"{name!r} {error}", at=name) from None

    def node(self) -> object:
        """Add the operator's own node, with the values as they are now; return its results."""
        evaluator = self.evaluator
        declaration = self.declaration
        results = declaration.results
        is_array = isinstance(results[0].type, ArrayType)
        names: Sequence[str] | str
        if is_array and not isinstance(self.names, list):
            name = names = self.name
        else:
            wanted = self._result_names(is_array=is_array)
            names = [evaluator.claim(item) for item in wanted]
            name = names[0] if names else self.name
        inputs: list[Tensor] = []
        attrs: dict[str, object] = {}
        for parameter in declaration.parameters:
            value = self.values[parameter.name]
            if not parameter.is_tensor:
                attrs[parameter.name] = list(value) if isinstance(value, list) else value
            elif isinstance(parameter.type, ArrayType):
                where = self.places.get(parameter.name, self.location)
                wanted_name = f"{name}_{parameter.name}"
                inputs += [evaluator.tensor(item, wanted_name, where) for item in value]
            else:
                inputs.append(self.tensor(parameter.name, name))
        tensors = evaluator.builder.node(
            self.op,
            inputs,
            attrs,
            names,
            tuple(_result_dtype(result.type, self.dtype) for result in results),
            places=self.places,
            location=self.location,
            origin=self.scope.location,
        )
        if is_array:
            return tensors
        return tensors[0] if len(results) == 1 else tuple(tensors)

    def call(self, op: str, *arguments: Any, names: Names = None, **attrs: Any) -> Any:
        """Invoke a library's operator; parameters that are left out have their defaults."""
        evaluator = self.evaluator
        declaration = evaluator.declaration(op, self.location, library=True)
        parameters = (item.name for item in declaration.parameters)
        values = dict(zip(parameters, arguments, strict=False)) | attrs
        return evaluator.invoke(
            declaration, values, None, names, self.places, self.location, self.scope
        )

    def _result_names(self, *, is_array: bool) -> list[str]:
        results = self.declaration.results
        names = self.names
        if isinstance(names, list) and (is_array or len(names) == len(results)):
            return [first_name(part) or self.name for part in names]
        if len(results) == 1:
            return [self.name]
        return [f"{self.name}_{result.name}" for result in results]


def _result_dtype(kind: Type, dtype: str | None) -> str:
    item = kind.item if isinstance(kind, ArrayType) else kind
    assert isinstance(item, TensorType)
    result = dtype if item.item == "?" else item.item
    assert result is not None
    return result
