"""Custom operators: fragments without a body that declare operators beyond NNEF."""

from __future__ import annotations

from nnef_hw.errors import Location, UnsupportedError
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.language.literals import format_value
from nnef_hw.frontend.nnef.language.syntax import Array, Declaration, Expression, Literal, Parameter

__all__ = ["check_custom", "format_declaration"]


def format_declaration(declaration: Declaration) -> str:
    """Return ``fragment NAME(...) -> (...);``: the text of an operator without its body."""
    generic = "<?>" if declaration.generic else ""
    parameters = ", ".join(map(_parameter, declaration.parameters))
    results = ", ".join(map(_parameter, declaration.results))
    return f"fragment {declaration.name}{generic}( {parameters} ) -> ( {results} );"


def check_custom(declaration: Declaration, location: Location) -> None:
    """Check that a document's fragment without a body declares an operator that is known here.

    Parameters
    ----------
    location
        Location of the invocation.

    Raises
    ------
    UnsupportedError
        If the operator is unknown, or its declaration differs.
    """
    name = declaration.name
    extended = load_library("extended").get(name)
    if extended is None:
        raise UnsupportedError(
            f"the fragment {name!r} has no body, so it is not known what it computes",
            remedy="define it, or use operators of the standard",
            location=location,
        )
    if format_declaration(declaration) != format_declaration(extended):
        raise UnsupportedError(
            f"the fragment {name!r} has no body, and its declaration is not that of the operator "
            "known by this name",
            remedy=f"write: {format_declaration(extended)}",
            location=declaration.location,
        )


def _parameter(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" = {_literal(parameter.default)}"
    return f"{parameter.name}: {parameter.type}{default}"


def _literal(value: Expression) -> str:
    if isinstance(value, Array):
        return f"[{', '.join(map(_literal, value.items))}]"
    if isinstance(value, Literal):
        return format_value(value.value)
    return "..."
