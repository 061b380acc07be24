"""Rules for the declaration of a fragment (specification, section 3.3.2, declarations)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.evaluation.rules import Rules
from nnef_hw.frontend.nnef.language.syntax import (
    Declaration,
    Expression,
    Parameter,
    PrimitiveType,
    TensorType,
    TupleType,
    Type,
)
from nnef_hw.frontend.nnef.language.types import fits, has_tensor, is_generic, type_parts

__all__ = ["check_declaration"]


def check_declaration(
    declaration: Declaration, type_of: Callable[[Expression], Type], rules: Rules
) -> Iterator[ModelError]:
    """Yield the faults of a fragment's parameters and results.

    Parameters
    ----------
    type_of
        Returns the type of a default value.
    """
    name = declaration.name
    seen: dict[str, Parameter] = {}
    attribute: Parameter | None = None
    for item in (*declaration.parameters, *declaration.results):
        if item.name in seen:
            yield _error(
                name,
                f"{item.name!r} names two of its parameters and results",
                "choose another name",
                item.location,
            )
        seen[item.name] = item
        if not rules.attribute_results:
            yield from _check_tuples(name, item)
    for parameter in declaration.parameters:
        if not has_tensor(parameter.type):
            attribute = attribute or parameter
        elif attribute is not None:
            yield _error(
                name,
                f"the tensor {parameter.name!r} follows the attribute {attribute.name!r}",
                "parameters of tensor type come first",
                parameter.location,
            )
        yield from _check_default(name, parameter, type_of)
    for result in declaration.results:
        yield from _check_result(name, result, rules)
    yield from _check_generic(declaration)


def _error(fragment: str, reason: str, remedy: str | None, where: Location) -> ModelError:
    return ModelError(f"fragment {fragment!r}: {reason}", remedy=remedy, location=where)


def _check_tuples(fragment: str, item: Parameter) -> Iterator[ModelError]:
    for part in type_parts(item.type):
        if isinstance(part, TupleType) and len(set(map(has_tensor, part.items))) > 1:
            yield _error(
                fragment,
                f"the tuple {part} of {item.name!r} mixes tensors with attributes",
                "make two parameters of it",
                item.location,
            )


def _check_default(
    fragment: str, parameter: Parameter, type_of: Callable[[Expression], Type]
) -> Iterator[ModelError]:
    default = parameter.default
    if default is None:
        return
    kind = type_of(default)
    if not fits(kind, parameter.type):
        yield _error(
            fragment,
            f"the default of {parameter.name!r} must be {parameter.type}, not {kind}",
            "write 1.0 instead of 1" if str(kind) == "integer" else None,
            default.location,
        )


def _check_result(fragment: str, result: Parameter, rules: Rules) -> Iterator[ModelError]:
    for part in type_parts(result.type):
        if isinstance(part, PrimitiveType) and not rules.attribute_results:
            yield _error(
                fragment,
                f"the result {result.name!r} is {result.type}, but results must be tensors",
                "attributes are known before the graph runs: they need no result",
                result.location,
            )
            return
        if isinstance(part, TensorType) and part.item is None:
            yield _error(
                fragment,
                f"the result {result.name!r} has no data-type",
                "only parameters may be tensor<>; write tensor<scalar>, or tensor<?>",
                result.location,
            )
            return


def _check_generic(declaration: Declaration) -> Iterator[ModelError]:
    items = (*declaration.parameters, *declaration.results)
    uses = next((item for item in items if is_generic(item.type)), None)
    if uses is not None and not declaration.generic:
        yield _error(
            declaration.name,
            f"{uses.name!r} is {uses.type}, but the fragment is not generic",
            f"write: fragment {declaration.name}<?>(...)",
            uses.location,
        )
    if uses is None and declaration.generic:
        yield _error(
            declaration.name,
            "it is generic, but no parameter or result has a type with '?'",
            "leave out <?>",
            declaration.location,
        )
