"""Walk over all parts of an expression, and over all names of a target."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.frontend.nnef.language.syntax import (
    Array,
    Binary,
    Builtin,
    Comprehension,
    Conditional,
    Expression,
    Identifier,
    Invocation,
    Range,
    Subscript,
    Tuple,
    Unary,
)

__all__ = ["identifiers", "walk"]


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and everything in it, in the order of the text."""
    stack = [expression]
    while stack:
        part = stack.pop()
        yield part
        stack += reversed(_parts(part))


def _parts(expression: Expression) -> list[Expression]:
    match expression:
        case Invocation():
            return [argument.value for argument in expression.arguments]
        case Array() | Tuple():
            return list(expression.items)
        case Unary():
            return [expression.operand]
        case Binary():
            return [expression.left, expression.right]
        case Conditional():
            return [expression.then, expression.condition, expression.otherwise]
        case Comprehension():
            parts = [sequence for _, sequence in expression.iterators]
            if expression.condition is not None:
                parts.append(expression.condition)
            return [*parts, expression.value]
        case Subscript():
            return [expression.sequence, expression.index]
        case Range():
            bounds = (expression.begin, expression.end)
            return [expression.sequence, *(bound for bound in bounds if bound is not None)]
        case Builtin():
            return [expression.argument]
    return []


def identifiers(target: Expression) -> Iterator[Identifier]:
    """Yield the names of an assignment's target."""
    if isinstance(target, Identifier):
        yield target
    elif isinstance(target, Array | Tuple):
        for item in target.items:
            yield from identifiers(item)
