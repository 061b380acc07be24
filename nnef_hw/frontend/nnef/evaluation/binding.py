"""Match the arguments of an invocation with the parameters of the operator's declaration."""

from __future__ import annotations

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.evaluation.exporters import LENIENTLY
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.language.syntax import Declaration, Expression, Invocation, Literal

__all__ = ["match"]


def match(
    invocation: Invocation,
    declaration: Declaration,
    title: str,
    *,
    positional: bool = False,
    ignored: frozenset[str] = frozenset(),
    surplus: bool = False,
) -> dict[str, Expression]:
    """Return the given arguments by parameter name (specification, section 3.3.2, invocations).

    Parameters
    ----------
    title
        What messages call the invocation, such as ``conv 'y'``.
    positional
        Whether attributes may be given by position too.
    ignored
        Names of arguments that are dropped where the operator does not have them.
    surplus
        Whether numbers behind the last parameter are dropped.

    Raises
    ------
    ModelError
        At the first argument that has no parameter of its own, or the first parameter that has
        neither argument nor default.
    """
    parameters = declaration.parameters
    names = {parameter.name for parameter in parameters}
    matched: dict[str, Expression] = {}
    named = False
    for index, argument in enumerate(invocation.arguments):
        where = argument.location
        if argument.name is None:
            if named:
                raise _error(
                    title,
                    "a positional argument follows a named one",
                    where,
                    "name it, or move it to the front",
                )
            is_number = isinstance(argument.value, Literal)
            if index >= len(parameters) and surplus and is_number:
                continue
            if index >= len(parameters):
                raise _error(
                    title,
                    f"{len(invocation.arguments)} arguments are given, "
                    f"but the operator takes {len(parameters)}",
                    where,
                    f"they are {', '.join(repr(item.name) for item in parameters)}"
                    + (f"; remove it, or {LENIENTLY}" if is_number else ""),
                )
            name = parameters[index].name
            if not positional and not parameters[index].is_tensor:
                raise _error(
                    title,
                    f"the attribute {name!r} must be named",
                    where,
                    f"write {name} = ..., or {LENIENTLY}",
                )
        else:
            named, name = True, argument.name
            if name not in names and name in ignored:
                continue
            if name not in names:
                raise _error(
                    title,
                    f"there is no argument {name!r}",
                    where,
                    nearest(name, names)
                    or f"the arguments are {', '.join(repr(item.name) for item in parameters)}",
                )
        if name in matched:
            raise _error(title, f"the argument {name!r} is given twice", where, "remove one")
        matched[name] = argument.value
    for parameter in parameters:
        if parameter.default is None and parameter.name not in matched:
            raise _error(
                title,
                f"the argument {parameter.name!r} is missing",
                invocation.location,
                f"it is of type {parameter.type}",
            )
    return matched


def _error(title: str, reason: str, where: Location, remedy: str | None = None) -> ModelError:
    return ModelError(f"{title}: {reason}", remedy=remedy, location=where)
