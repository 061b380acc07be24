"""Symbols in dimensions: which there are, their values, and what is asserted of them."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.errors import ModelError, NnefHwError, UnsupportedError, UsageError, raise_all
from nnef_hw.frontend.building.open_shapes import PLACES, OpenShapes
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.language.syntax import (
    Array,
    Binary,
    Document,
    Expression,
    Extension,
    Identifier,
    Invocation,
    Literal,
)
from nnef_hw.frontend.nnef.language.walk import identifiers, walk

__all__ = ["open_shapes", "symbol_values"]

_CONSTANTS = {"inf": math.inf, "nan": math.nan}
_GROWING = "tract_transformers_dyn_kv_cache"
_WINDOW = "tract_transformers_window_kv_sdpa"
_EXTERNALS = {"external", "tract_core_external"}
_SHAPES = {"shape", "past_sequence_shape", "input_sequence_shape", None}
_WITH_SHAPE = {*_EXTERNALS, "tract_core_broadcast", _GROWING}
_COMPARISONS: Mapping[type, Callable[[AttributeValue, AttributeValue], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def symbol_values(document: Document, dims: Mapping[str, int]) -> dict[str, object]:
    """Return the values of the identifiers that a document of tract uses without assigning them.

    These are ``inf``, ``nan`` and the symbols: declared by ``extension tract_symbol``, or just
    there in the shape of an input.

    Parameters
    ----------
    dims
        The symbols' values.

    Raises
    ------
    UsageError
        If a symbol that the graph uses has no value, or a value no symbol.
    ModelError, UnsupportedError
        If the values are not what the document asserts.
    """
    declared = set(_declared(document))
    grown = open_shapes(document)
    symbols = sorted(grown.symbols or ())
    for name, value in dims.items():
        if name not in declared | set(symbols):
            raise UsageError(
                f"{name!r} is not a symbol of the model",
                remedy=nearest(name, symbols)
                or (f"its symbols are {', '.join(symbols)}" if symbols else "leave out --dim"),
            )
        if value < 1:
            raise UsageError(f"the symbol {name!r} must be positive, not {value}")
    missing = [name for name in symbols if name not in dims]
    if missing and grown.caches:
        raise UsageError(
            f"the model has caches that grow by a row in each step: "
            f"{', '.join(sorted(grown.caches))}",
            remedy="give --context N, the places that they have",
        )
    if missing:
        flags = " ".join(f"--dim {name}=1" for name in missing)
        raise UsageError(
            f"the model's shapes contain the symbol{'s' * (len(missing) > 1)} "
            f"{', '.join(map(repr, missing))}",
            remedy=f"give {'them values' if len(missing) > 1 else 'it a value'}: {flags}",
        )
    raise_all(list(_violations(document, dims, declared)))
    return {**_CONSTANTS, **dims}


def open_shapes(document: Document) -> OpenShapes:
    """Return the declared shapes of a document's inputs, and of caches that operators have."""
    shapes: dict[str, list[int | str]] = {}
    caches: dict[str, list[int | str]] = {}
    for assignment in document.graph.assignments:
        target = next((x.name for x in identifiers(assignment.target)), "")
        for call in walk(assignment.value):
            if not isinstance(call, Invocation):
                continue
            if call.operator == _GROWING:
                label = _argument(call, "name")
                name = label.value if isinstance(label, Literal) else target
                caches[str(name)] = _extents(_argument(call, "past_sequence_shape"))
            elif call.operator == _WINDOW:
                caches[f"{target}_keys"] = caches[f"{target}_values"] = [1, 1, PLACES]
            elif call.operator in _EXTERNALS:
                # Only the shape may be given by place.
                shapes[target] = _extents(_argument(call, "shape", None))
    symbols = {*_used(document)} & {*_declared(document)} | {*_in_shapes(document)}
    symbols |= {PLACES} & {x for shape in caches.values() for x in shape}
    return OpenShapes({**shapes, **caches}, frozenset(caches), frozenset(symbols))


def _argument(call: Invocation, *names: str | None) -> Expression | None:
    return next((x.value for x in call.arguments if x.name in names), None)


def _extents(shape: Expression | None) -> list[int | str]:
    """Return the extents of a shape: numbers, symbols, sums of these as texts."""
    items = shape.items if isinstance(shape, Array) else ()
    return [
        item.value if isinstance(item, Literal) and isinstance(item.value, int) else _text(item)
        for item in items
    ]


def _text(expression: Expression) -> str:
    match expression:
        case Identifier():
            return expression.name
        case Literal():
            return str(expression.value)
        case Binary():
            left, right = _text(expression.left), _text(expression.right)
            return f"{left} {expression.operator} {right}"
    return "?"


def _declared(document: Document) -> Iterator[str]:
    for extension in document.extensions:
        if extension.names[0].name == "tract_symbol":
            yield extension.text
        elif extension.names[0].name == "tract_pulse_streaming_symbol":
            yield extension.text or "S"


def _used(document: Document) -> Iterator[str]:
    bodies = [document.graph.assignments, *(item.body or () for item in document.fragments)]
    for body in bodies:
        for assignment in body:
            for part in walk(assignment.value):
                if isinstance(part, Identifier):
                    yield part.name


def _in_shapes(document: Document) -> Iterator[str]:
    assigned = {
        item.name
        for assignment in document.graph.assignments
        for item in identifiers(assignment.target)
    }
    for assignment in document.graph.assignments:
        for call in walk(assignment.value):
            if not isinstance(call, Invocation) or call.operator not in _WITH_SHAPE:
                continue
            for argument in call.arguments:
                if argument.name not in {
                    "shape",
                    "past_sequence_shape",
                    "input_sequence_shape",
                    None,
                }:
                    continue
                for part in walk(argument.value):
                    if isinstance(part, Identifier) and part.name not in assigned:
                        yield part.name


def _violations(
    document: Document, dims: Mapping[str, int], declared: set[str]
) -> Iterator[NnefHwError]:
    for extension in document.extensions:
        # "scenario: assertion" holds in a scenario that somebody may choose
        if extension.names[0].name != "tract_assert" or ":" in extension.text:
            continue
        try:
            tree = ast.parse(re.sub(r"(?<![<>=!])=(?!=)", "==", extension.text), mode="eval")
            names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
            if not names <= dims.keys() | declared:
                yield _not_understood(extension)
            elif names <= dims.keys() and not _value(tree.body, dims):
                shown = ", ".join(f"{name} = {dims[name]}" for name in sorted(names))
                yield ModelError(
                    f"the model asserts {extension.text}, but {shown}",
                    remedy="choose another value with --dim",
                    location=extension.location,
                )
        except (SyntaxError, KeyError, ZeroDivisionError):
            yield _not_understood(extension)


def _not_understood(extension: Extension) -> UnsupportedError:
    return UnsupportedError(
        f"the assertion {extension.text!r} is not understood",
        remedy="remove the line, or compare sums and products of symbols and integers",
        location=extension.location,
    )


def _value(node: ast.expr, dims: Mapping[str, int]) -> AttributeValue:
    """Return the value of an expression of integers, symbols and comparisons.

    Raises
    ------
    KeyError
        If the expression contains anything else.
    """
    if isinstance(node, ast.Compare):
        values = [_value(side, dims) for side in (node.left, *node.comparators)]
        pairs = zip(node.ops, values[:-1], values[1:], strict=True)
        return all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs)
    if isinstance(node, ast.BinOp):
        return _ARITHMETIC[type(node.op)](_value(node.left, dims), _value(node.right, dims))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, dims)
    if isinstance(node, ast.Name):
        return dims[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    raise KeyError(type(node).__name__)
