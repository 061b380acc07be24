"""Evaluation of each kind of expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.evaluation import arithmetic
from nnef_hw.frontend.nnef.evaluation.coercion import plain
from nnef_hw.frontend.nnef.evaluation.evaluation import Evaluation
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.evaluation.scope import Names, Scope
from nnef_hw.frontend.nnef.evaluation.unchecked import as_index, as_operand, as_sequence
from nnef_hw.frontend.nnef.language.syntax import (
    Array,
    Binary,
    Builtin,
    Comprehension,
    Conditional,
    Expression,
    Identifier,
    Invocation,
    Literal,
    Range,
    Subscript,
    Tuple,
    Unary,
)
from nnef_hw.frontend.nnef.language.walk import identifiers
from nnef_hw.ir import Tensor

__all__ = ["BINARY_OPERATORS", "METHODS", "UNARY_OPERATORS", "unpack"]

UNARY_OPERATORS = {"-": "neg", "+": "copy", "!": "not"}
BINARY_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "^": "pow",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
    "&&": "and",
    "||": "or",
}
"""Operators on tensors stand for invocations (specification, table 1)."""


def _literal(evaluator: Evaluation, literal: Literal, scope: Scope, names: Names) -> object:
    return literal.value


def _identifier(
    evaluator: Evaluation, identifier: Identifier, scope: Scope, names: Names
) -> object:
    name = identifier.name
    if name in scope.values:
        return scope.values[name]
    if name in evaluator.symbols:
        return evaluator.symbols[name]
    later = not scope.prefix and name in evaluator.builder.reserved
    raise ModelError(
        f"the tensor {name!r} is used before it is assigned"
        if later
        else f"there is no tensor {name!r}",
        remedy="move its assignment up" if later else nearest(name, scope.values),
        location=identifier.location,
    )


def _array(evaluator: Evaluation, array: Array, scope: Scope, names: Names) -> list[object]:
    return list(_items(evaluator, array.items, scope, names))


def _tuple(evaluator: Evaluation, items: Tuple, scope: Scope, names: Names) -> tuple[object, ...]:
    return tuple(_items(evaluator, items.items, scope, names))


def _items(
    evaluator: Evaluation, items: Sequence[Expression], scope: Scope, names: Names
) -> list[object]:
    parts: Sequence[Names] = [None] * len(items)
    if names is not None and not isinstance(names, str) and len(names) == len(items):
        parts = names
    return [evaluator.evaluate(item, scope, part) for item, part in zip(items, parts, strict=True)]


def _unary(evaluator: Evaluation, unary: Unary, scope: Scope, names: Names) -> object:
    value = evaluator.evaluate(unary.operand, scope)
    if not evaluator.typed:
        value = as_operand(evaluator, value, unary.operator, unary.operand.location)
    if isinstance(value, Tensor):
        op = UNARY_OPERATORS[unary.operator]
        return _operation(evaluator, op, [value], [unary.operand], unary.location, scope, names)
    return arithmetic.unary(unary.operator, value, unary.location)


def _binary(evaluator: Evaluation, binary: Binary, scope: Scope, names: Names) -> object:
    operator = binary.operator
    left = evaluator.evaluate(binary.left, scope)
    if isinstance(left, bool) and operator in {"&&", "||"} and left == (operator == "||"):
        return left
    right = evaluator.evaluate(binary.right, scope)
    if operator == "in":
        items = as_sequence(plain(right), binary.right.location)
        return any(_same(left, item) for item in items)
    if not evaluator.typed:
        left = as_operand(evaluator, left, operator, binary.left.location)
        right = as_operand(evaluator, right, operator, binary.right.location)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        op = BINARY_OPERATORS[operator]
        sides = [binary.left, binary.right]
        return _operation(evaluator, op, [left, right], sides, binary.location, scope, names)
    return arithmetic.binary(operator, left, right, binary.location)


def _operation(
    evaluator: Evaluation,
    op: str,
    values: list[object],
    sides: list[Expression],
    location: Location,
    scope: Scope,
    names: Names,
) -> object:
    declaration = evaluator.declaration(op, location, library=scope.library)
    parameters = [parameter.name for parameter in declaration.parameters]
    places = {name: side.location for name, side in zip(parameters, sides, strict=True)}
    arguments = dict(zip(parameters, values, strict=True))
    return evaluator.invoke(declaration, arguments, None, names, places, location, scope)


def _conditional(
    evaluator: Evaluation, conditional: Conditional, scope: Scope, names: Names
) -> object:
    condition = plain(evaluator.evaluate(conditional.condition, scope))
    if not isinstance(condition, bool):
        raise ModelError(
            "the condition is not known when the graph is built",
            remedy="choose at run time with select(condition, a, b)",
            location=conditional.condition.location,
        )
    chosen = conditional.then if condition else conditional.otherwise
    return evaluator.evaluate(chosen, scope, names)


def _comprehension(
    evaluator: Evaluation, comprehension: Comprehension, scope: Scope, names: Names
) -> list[object]:
    targets = [target for target, _ in comprehension.iterators]
    sequences = [
        as_sequence(plain(evaluator.evaluate(item, scope)), item.location)
        for _, item in comprehension.iterators
    ]
    lengths = {len(sequence) for sequence in sequences}
    if len(lengths) > 1:
        shown = " and ".join(str(len(sequence)) for sequence in sequences)
        raise ModelError(
            f"the iterators have {shown} items",
            remedy="arrays that are iterated together must have the same length",
            location=comprehension.location,
        )
    hidden = {
        item.name: scope.values.get(item.name, _ABSENT)
        for target in targets
        for item in identifiers(target)
    }
    parts = () if names is None or isinstance(names, str) else names
    result: list[object] = []
    try:
        for items in zip(*sequences, strict=True):
            evaluator.count_step(comprehension.location)
            for target, item in zip(targets, items, strict=True):
                unpack(evaluator, target, item, scope)
            if comprehension.condition is None or evaluator.evaluate(
                comprehension.condition, scope
            ):
                part = parts[len(result)] if len(result) < len(parts) else None
                result.append(evaluator.evaluate(comprehension.value, scope, part))
    finally:
        for name, value in hidden.items():
            if value is _ABSENT:
                scope.values.pop(name, None)
            else:
                scope.values[name] = value
    return result


def _subscript(evaluator: Evaluation, subscript: Subscript, scope: Scope, names: Names) -> object:
    value = plain(evaluator.evaluate(subscript.sequence, scope))
    sequence = as_sequence(value, subscript.sequence.location)
    index = plain(evaluator.evaluate(subscript.index, scope))
    index = as_index(index, subscript.index.location)
    if not 0 <= index < len(sequence):
        raise ModelError(
            f"the index {index} is outside of {_counted(sequence)}",
            remedy=f"indices are 0 to {len(sequence) - 1}" if len(sequence) else None,
            location=subscript.index.location,
        )
    return sequence[index]


def _range(evaluator: Evaluation, part: Range, scope: Scope, names: Names) -> object:
    sequence = as_sequence(plain(evaluator.evaluate(part.sequence, scope)), part.sequence.location)
    begin, end = (
        default
        if bound is None
        else as_index(plain(evaluator.evaluate(bound, scope)), bound.location)
        for bound, default in ((part.begin, 0), (part.end, len(sequence)))
    )
    for bound in (begin, end):
        if not 0 <= bound <= len(sequence):
            raise ModelError(
                f"the range [{begin}:{end}] is outside of {_counted(sequence)}",
                remedy=f"its bounds are 0 to {len(sequence)}",
                location=part.location,
            )
    return sequence[begin:end]


def _builtin(evaluator: Evaluation, builtin: Builtin, scope: Scope, names: Names) -> object:
    value = evaluator.evaluate(builtin.argument, scope)
    if builtin.function == "shape_of":
        return list(value.shape) if isinstance(value, Tensor) else []
    value = plain(value)
    if builtin.function in {"length_of", "range_of"}:
        length = len(as_sequence(value, builtin.argument.location))
        return length if builtin.function == "length_of" else list(range(length))
    if not evaluator.typed and not isinstance(value, str):
        value = plain(as_operand(evaluator, value, builtin.function, builtin.argument.location))
    return arithmetic.cast(builtin.function, value, builtin.location)


def _invocation(
    evaluator: Evaluation, invocation: Invocation, scope: Scope, names: Names
) -> object:
    declaration = evaluator.declaration(
        invocation.operator, invocation.location, library=scope.library
    )
    matched = evaluator.arguments(invocation, declaration, scope, names)
    arguments = {name: evaluator.evaluate(value, scope) for name, value in matched.items()}
    dtype = scope.dtype if invocation.dtype == "?" else invocation.dtype
    places = {name: value.location for name, value in matched.items()}
    return evaluator.invoke(
        declaration, arguments, dtype, names, places, invocation.location, scope
    )


def unpack(evaluator: Evaluation, target: Expression, value: object, scope: Scope) -> None:
    """Give the identifiers of a target their parts of a value."""
    if isinstance(target, Identifier):
        scope.values[target.name] = value
        return
    assert isinstance(target, Array | Tuple)
    word = "array" if isinstance(target, Array) else "tuple"
    if not isinstance(value, list | tuple) or len(value) != len(target.items):
        count = len(value) if isinstance(value, list | tuple) else 1
        raise ModelError(
            f"{len(target.items)} names are given for the {count} items of the {word}",
            location=target.location,
        )
    for item, part in zip(target.items, value, strict=True):
        unpack(evaluator, item, part, scope)


def _same(left: object, right: object) -> bool:
    """Compare deeply; a tensor equals only itself."""
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return left is right
    return bool(left == right)


def _counted(sequence: Any) -> str:
    kind = "string" if isinstance(sequence, str) else "array"
    return f"the {kind} of length {len(sequence)}"


_ABSENT = object()

METHODS: dict[type, Callable[[Evaluation, Any, Scope, Names], Any]] = {
    Literal: _literal,
    Identifier: _identifier,
    Array: _array,
    Tuple: _tuple,
    Unary: _unary,
    Binary: _binary,
    Conditional: _conditional,
    Comprehension: _comprehension,
    Subscript: _subscript,
    Range: _range,
    Builtin: _builtin,
    Invocation: _invocation,
}
