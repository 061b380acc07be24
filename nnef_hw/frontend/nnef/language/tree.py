"""Reductions of the grammar to nodes of the syntax tree."""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.language import syntax
from nnef_hw.frontend.nnef.language.nesting import MAX_DEPTH, check_depth
from nnef_hw.frontend.nnef.language.scanner import SourceText, Token

__all__ = ["TREE_BUILDER"]

_MAX_NUMBER_LENGTH = 400
_MAX_INTEGER = (1 << 63) - 1

_PRECEDENCE = {
    "in": 1,
    **dict.fromkeys(["&&", "||"], 2),
    **dict.fromkeys(["<", "<=", ">", ">=", "==", "!="], 3),
    **dict.fromkeys(["+", "-"], 4),
    **dict.fromkeys(["*", "/"], 5),
    "^": 7,
}
_UNARY_PRECEDENCE = 6

_Children: TypeAlias = list[Any]


class _TreeBuilder:
    """One method for each rule or alias of the grammar: children to a node.

    Binary operators are left-associative. A unary operator binds tighter than all of them but
    ``^``: ``-r - 1.0`` is ``(-r) - 1.0``, ``-x ^ 2.0`` is ``-(x ^ 2.0)``; it may stand behind a
    binary operator: ``x ^ -2.0``. A minus that is applied to a number literal becomes part of it,
    as in flat syntax. Mistakes in literals are added to the errors of the source.
    """

    def document(self, children: _Children) -> syntax.Document:
        version, *definitions, graph = children
        extensions = [item for item in definitions if isinstance(item, syntax.Extension)]
        fragments = definitions[len(extensions) :]
        return syntax.Document(
            version.text, tuple(extensions), tuple(fragments), graph, version.location
        )

    def library(self, children: _Children) -> tuple[syntax.Declaration, ...]:
        return tuple(children)

    def version(self, children: _Children) -> Token:
        number: Token = children[1]
        if number.text != "1.0":
            number.source.errors.append(
                ModelError(
                    f"NNEF version {number.text} does not exist",
                    remedy="write: version 1.0;",
                    location=number.location,
                )
            )
        return number

    def extension(self, children: _Children) -> syntax.Extension:
        word, *names = children
        text = " ".join(token.text for token in names[1:])
        return syntax.Extension(tuple(map(_name, names)), text, word.location)

    def vendor_extension(self, children: _Children) -> syntax.Extension:
        (token,) = children
        token.source.is_tract = True
        words = list(re.finditer(r"[^\s,]+", token.text))[1:]
        names = [
            syntax.Identifier(word[0], token.source.locate(token.start + word.start()))
            for word in words
        ]
        if not all(re.fullmatch(r"[A-Za-z_]\w*", word[0], re.ASCII) for word in words):
            del names[1:]
        text = token.text[words[0].end() :].strip()
        return syntax.Extension(tuple(names), text, token.location)

    def fragment(self, children: _Children) -> syntax.Declaration:
        word, name, generic, parameters, results, *body = children
        return syntax.Declaration(
            name=_name(name).name,
            generic=generic is not None,
            default_dtype=generic[1].text if generic and generic[1] else None,
            parameters=parameters,
            results=results,
            location=word.location,
            body=body[0] if body else None,
        )

    def generic(self, children: _Children) -> _Children:
        return children

    def parameters(self, children: _Children) -> tuple[syntax.Parameter, ...]:
        return tuple(children)

    def parameter(self, children: _Children) -> syntax.Parameter:
        name, kind, *defaults = children
        default = defaults[0] if defaults else None
        check_depth(kind, name.source, name.location)
        if default is not None:
            _check_literal(default, name)
        return syntax.Parameter(_name(name).name, kind, default, name.location)

    def primitive_type(self, children: _Children) -> syntax.PrimitiveType:
        (token,) = children
        return syntax.PrimitiveType(token.text)

    def tensor_type(self, children: _Children) -> syntax.TensorType:
        (item,) = children
        return syntax.TensorType(item.text if item else None)

    def untyped_tensor(self, children: _Children) -> syntax.TensorType:
        (token,) = children
        token.source.legacy(
            "a tensor has a data-type", "write tensor<scalar> instead of tensor", token.location
        )
        return syntax.TensorType("scalar")

    def array_type(self, children: _Children) -> syntax.ArrayType:
        return syntax.ArrayType(children[0])

    def tuple_type(self, children: _Children) -> syntax.TupleType:
        return syntax.TupleType(tuple(children))

    def graph(self, children: _Children) -> syntax.GraphDefinition:
        word, name, inputs, outputs, body = children
        return syntax.GraphDefinition(_name(name).name, inputs, outputs, body, word.location)

    def names(self, children: _Children) -> tuple[syntax.Identifier, ...]:
        return tuple(children)

    def body(self, children: _Children) -> tuple[syntax.Assignment, ...]:
        return tuple(children)

    def mistake(self, children: _Children) -> Token:
        token: Token = children[0]
        return token

    def assignment(self, children: _Children) -> syntax.Assignment:
        target, equal, value, semicolon = children
        source, where = equal.source, target.location
        if semicolon.start - equal.start > MAX_DEPTH:
            check_depth(value, source, where)
        if not isinstance(target, syntax.Identifier):
            check_depth(target, source, where)
        return syntax.Assignment(target, value, where)

    def bare_tuple(self, children: _Children) -> syntax.Assignment:
        target, equal, *items, _ = children
        where = items[0].location
        equal.source.legacy(
            "a tuple of values must be in parentheses", "write (a, b) instead of a, b", where
        )
        return syntax.Assignment(target, syntax.Tuple(tuple(items), where), target.location)

    def quantization(self, children: _Children) -> tuple[syntax.Assignment, ...]:
        return tuple(children)

    def quantized(self, children: _Children) -> syntax.Assignment:
        key, name, arguments = children
        value = syntax.Invocation(_name(name).name, None, arguments, name.location)
        return syntax.Assignment(self.string([key]), value, key.location)

    def targets(self, children: _Children) -> syntax.Tuple:
        return syntax.Tuple(tuple(children), children[0].location)

    def identifier(self, children: _Children) -> syntax.Identifier:
        return _name(children[0])

    def reference(self, children: _Children) -> syntax.Identifier | syntax.Literal:
        (token,) = children
        if token.text == "inf" and token.source.is_tract:
            return syntax.Literal(math.inf, token.location)
        return _name(token)

    def number(self, children: _Children) -> syntax.Literal:
        (token,) = children
        text, where = token.text, token.location
        value: int | float = 0
        if len(text) > _MAX_NUMBER_LENGTH:
            _report(token, "the number is too long", "shorten it")
        else:
            value = int(text) if text.isdecimal() else float(text)
            if value > _MAX_INTEGER if isinstance(value, int) else math.isinf(value):
                _report(token, f"the number {text} is too large")
        return syntax.Literal(value, where)

    def string(self, children: _Children) -> syntax.Literal:
        (token,) = children
        return syntax.Literal(re.sub(r"\\(.)", r"\1", token.text[1:-1]), token.location)

    def logical(self, children: _Children) -> syntax.Literal:
        (token,) = children
        return syntax.Literal(token.text == "true", token.location)

    def array_value(self, children: _Children) -> syntax.Array:
        bracket, *items = children
        return syntax.Array(tuple(items), bracket.location)

    def tuple_value(self, children: _Children) -> syntax.Tuple:
        bracket, *items = children
        return syntax.Tuple(tuple(items), bracket.location)

    def invocation(self, children: _Children) -> syntax.Invocation:
        name, dtype, arguments = children
        return syntax.Invocation(
            _name(name).name, dtype.text if dtype else None, arguments, name.location
        )

    def arguments(self, children: _Children) -> tuple[syntax.Argument, ...]:
        return tuple(children)

    def positional(self, children: _Children) -> syntax.Argument:
        (value,) = children
        return syntax.Argument(None, value, value.location)

    def named(self, children: _Children) -> syntax.Argument:
        name, value = children
        return syntax.Argument(_name(name).name, value, name.location)

    def builtin(self, children: _Children) -> syntax.Builtin:
        function, argument = children
        return syntax.Builtin(function.text, argument, function.location)

    def comprehension(self, children: _Children) -> syntax.Comprehension:
        bracket, iterators, condition, value = children
        return syntax.Comprehension(iterators, condition, value, bracket.location)

    def legacy_comprehension(self, children: _Children) -> syntax.Comprehension:
        bracket, value, word, iterators, condition = children
        word.source.legacy(
            "the value of a comprehension comes last",
            "write [for i in items yield value] instead of [value for i in items]",
            word.location,
        )
        return syntax.Comprehension(iterators, condition, value, bracket.location)

    def iterators(self, children: _Children) -> tuple[object, ...]:
        return tuple(children)

    def iterator(self, children: _Children) -> tuple[syntax.Expression, syntax.Expression]:
        target, sequence = children
        return target, sequence

    def subscript(self, children: _Children) -> syntax.Subscript:
        sequence, index = children
        return syntax.Subscript(sequence, index, sequence.location)

    def subrange(self, children: _Children) -> syntax.Range:
        sequence, begin, end = children
        return syntax.Range(sequence, begin, end, sequence.location)

    def conditional(self, children: _Children) -> syntax.Conditional:
        then, condition, otherwise = children
        return syntax.Conditional(condition, then, otherwise, then.location)

    def operation(self, children: _Children) -> syntax.Expression:
        operands: list[syntax.Expression] = []
        pending: list[tuple[int, Token]] = []
        wants_operand = True
        for child in children:
            if not isinstance(child, Token):
                operands.append(child)
                wants_operand = False
            elif wants_operand:
                pending.append((_UNARY_PRECEDENCE, child))
            else:
                precedence = _PRECEDENCE[child.text]
                while pending and pending[-1][0] >= precedence:
                    _apply(pending.pop(), operands)
                pending.append((precedence, child))
                wants_operand = True
        while pending:
            _apply(pending.pop(), operands)
        return operands[0]


TREE_BUILDER = _TreeBuilder()


def _apply(pending: tuple[int, Token], operands: list[syntax.Expression]) -> None:
    precedence, token = pending
    operator, where = token.text, token.location
    operand = operands.pop()
    if precedence != _UNARY_PRECEDENCE:
        operands.append(syntax.Binary(operator, operands.pop(), operand, where))
        return
    value = operand.value if isinstance(operand, syntax.Literal) else None
    if operator == "-" and isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, int) and value > _MAX_INTEGER:
            _take_back(token.source, operand.location)
        if isinstance(value, int) and not -_MAX_INTEGER - 1 <= -value <= _MAX_INTEGER:
            _report(token, f"the number {abs(value)} is too large")
        operands.append(syntax.Literal(-value, where))
    else:
        operands.append(syntax.Unary(operator, operand, where))


def _take_back(source: SourceText, where: Location) -> None:
    """Forget that a number is too large: with its minus it may not be."""
    source.errors = [error for error in source.errors if error.location != where]


def _check_literal(default: syntax.Expression, name: Token) -> None:
    pending = [default]
    while pending:
        value = pending.pop()
        if isinstance(value, syntax.Array | syntax.Tuple):
            pending += value.items
        elif not isinstance(value, syntax.Literal):
            reason = f"the default value of {name.text!r} is not a literal"
            remedy = "build it of numbers, strings, true, false, arrays and tuples"
            name.source.errors.append(ModelError(reason, remedy=remedy, location=value.location))


def _name(token: Token) -> syntax.Identifier:
    text = token.text
    if text.endswith('"'):
        text = text[2:-1]
        if not token.source.is_tract:
            _report(token, "escaped names are not NNEF but an extension of tract", "rename it")
    return syntax.Identifier(text, token.location)


def _report(token: Token, reason: str, remedy: str | None = None) -> None:
    token.source.errors.append(ModelError(reason, remedy=remedy, location=token.location))
