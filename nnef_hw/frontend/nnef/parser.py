"""Text to syntax tree, and syntax errors in human words."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from nnef_hw.errors import Location, ModelError, NnefHwError, UnsupportedError
from nnef_hw.frontend.nnef import syntax

__all__ = ["parse_declarations", "parse_document"]

# The order is that of the message.
_WORDS = {
    "SEMICOLON": "';'",
    "COMMA": "','",
    "RPAR": "')'",
    "RSQB": "']'",
    "RBRACE": "'}'",
    "EQUAL": "'='",
    "LPAR": "'('",
    "LSQB": "'['",
    "LBRACE": "'{'",
    "LESSTHAN": "'<'",
    "MORETHAN": "'>'",
    "COLON": "':'",
    "_ARROW": "'->'",
    "IDENTIFIER": "a name",
    "NUMBER": "a number",
    "PRIMITIVE": "a data-type (scalar, integer, logical)",
    "GRAPH": "'graph'",
    "VERSION": "'version'",
    "EXTENSION": "'extension'",
    "FRAGMENT": "'fragment'",
}
_MAX_NUMBER_LENGTH = 400
_MAX_INTEGER = 1 << 63
_VALUE_STARTS = {"NUMBER", "STRING", "TRUE", "LSQB"}
_EXPRESSION_TOKENS = {"OPERATOR", "EXPRESSION_WORD", "BUILTIN", "MINUS", "LESSTHAN", "MORETHAN"}


def parse_document(text: str, file: str) -> syntax.Document:
    """Parse a flat document.

    Raises
    ------
    ModelError
        At the first syntax error, with its line, column and what was expected.
    UnsupportedError
        If the document uses fragments or operator expressions.
    """
    document: syntax.Document = _parse(text, file, "document")
    if document.version != "1.0":
        raise ModelError(
            f"NNEF version {document.version} does not exist",
            remedy="write: version 1.0;",
            location=document.location,
        )
    return document


def parse_declarations(text: str, file: str) -> tuple[syntax.Declaration, ...]:
    """Parse operator declarations: ``fragment name(...) -> (...);``, one after another."""
    declarations: tuple[syntax.Declaration, ...] = _parse(text, file, "declarations")
    return declarations


@cache
def _lark() -> Lark:
    grammar = (resources.files(__package__) / "grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start=["document", "declarations", "reserved"],
        maybe_placeholders=False,
        propagate_positions=True,
    )


def _parse(text: str, file: str, start: str) -> Any:
    lines = text.split("\n")
    try:
        tree = _lark().parse(text, start=start)
    except UnexpectedInput as error:
        raise _explain(error, text, file, lines) from None
    try:
        return _Builder(file, lines).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    except RecursionError:
        raise ModelError("arrays are nested too deeply", location=Location(file)) from None


def _locate(file: str, lines: Sequence[str], line: int, column: int) -> Location:
    return Location(file, line, column, lines[line - 1].rstrip("\r"))


def _explain(error: UnexpectedInput, text: str, file: str, lines: Sequence[str]) -> NnefHwError:
    if isinstance(error, UnexpectedCharacters):
        where = _locate(file, lines, error.line, error.column)
        character = where.text[error.column - 1 : error.column]
        if character in {"'", '"'}:
            return ModelError("the string has no end on its line", location=where)
        if character in {"&", "|"}:
            return _unsupported_expression(where)
        return ModelError(
            f"the character {character!r} means nothing in NNEF",
            remedy="remove it",
            location=where,
        )
    assert isinstance(error, UnexpectedToken)
    token = error.token
    if token.type == "$END":
        return _unexpected_end(error, file, lines)
    where = _locate(file, lines, token.line, token.column)
    previous = _token_before(token, text)
    expected = error.accepts or set(error.expected)
    if token.type == "FRAGMENT":
        return UnsupportedError(
            "fragment definitions are not supported yet",
            remedy="convert the model to a flat NNEF document",
            location=where,
        )
    if _is_expression(previous, token, expected):
        return _unsupported_expression(where)
    if previous is not None and expected == {"SEMICOLON"} and previous.end_line != token.line:
        where = _locate(file, lines, previous.end_line or 1, previous.end_column or 1)
        return ModelError(f"expected ';'{_after(previous, expected)}", location=where)
    if expected == {"$END"}:
        return ModelError(
            f"expected nothing after the graph, found {str(token)!r}",
            remedy="remove it",
            location=where,
        )
    return ModelError(
        f"expected {_describe(expected)}{_after(previous, expected)}, found {str(token)!r}",
        remedy=_remedy(token) if "IDENTIFIER" in expected else None,
        location=where,
    )


def _token_before(token: Token, text: str) -> Token | None:
    start = token.start_pos or 0
    earlier = itertools.takewhile(lambda other: (other.start_pos or 0) < start, _lark().lex(text))
    return next(iter(deque(earlier, maxlen=1)), None)


def _is_expression(previous: Token | None, token: Token, expected: set[str]) -> bool:
    before = previous.type if previous is not None else ""
    if before == "MINUS":
        return True
    if not expected & {*_VALUE_STARTS, "COMMA", "SEMICOLON"} or expected & {"EQUAL"} == expected:
        return False
    if token.type == "LSQB":
        return before in {"IDENTIFIER", "RPAR", "RSQB"} and "LSQB" not in expected
    if token.type == "RPAR":
        return False
    return token.type in _EXPRESSION_TOKENS


def _unsupported_expression(where: Location) -> UnsupportedError:
    return UnsupportedError(
        "operator expressions are not supported yet",
        remedy="write invocations only: add(x, y) instead of x + y",
        location=where,
    )


def _unexpected_end(error: UnexpectedToken, file: str, lines: Sequence[str]) -> ModelError:
    last = max((i for i, line in enumerate(lines, 1) if line.strip()), default=0)
    if not last:
        return ModelError(
            "the document is empty", remedy="begin it with: version 1.0;", location=Location(file)
        )
    expected = error.accepts or set(error.expected)
    where = _locate(file, lines, last, len(lines[last - 1].rstrip()) + 1)
    return ModelError(
        f"the document ends too early: expected {_describe(expected)}",
        remedy="is the file complete?",
        location=where,
    )


def _describe(expected: set[str]) -> str:
    words = [word for name, word in _WORDS.items() if name in expected]
    if expected >= _VALUE_STARTS:
        hidden = {"NUMBER", "IDENTIFIER", "LPAR", "LSQB"}
        words = [word for name, word in _WORDS.items() if name in expected - hidden]
        words.append("a value")
    if not words:
        return "something else"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _after(previous: Token | None, expected: set[str]) -> str:
    if previous is None:
        return " at the beginning"
    if previous.type == "RPAR" and expected == {"SEMICOLON"}:
        return " after the invocation"
    return f" after {str(previous)!r}"


def _remedy(token: Token) -> str | None:
    keywords = {"TRUE", "FALSE", "PRIMITIVE", "GRAPH", "VERSION", "EXTENSION", "TENSOR"}
    if token.type in keywords | {"BUILTIN", "EXPRESSION_WORD"}:
        return f"{str(token)!r} is a keyword, it cannot be a name"
    return None


def _unescape(text: str) -> str:
    result, escaped = "", False
    for character in text[1:-1]:
        escaped = not escaped and character == "\\"
        if not escaped:
            result += character
    return result


@v_args(meta=True)
class _Builder(Transformer[Token, Any]):
    def __init__(self, file: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._file, self._lines = file, lines

    def _at(self, meta: Any) -> Location:
        if meta.empty:
            return Location(self._file)
        return _locate(self._file, self._lines, meta.line, meta.column)

    def _identifier(self, token: Token) -> syntax.Identifier:
        where = _locate(self._file, self._lines, token.line or 1, token.column or 1)
        return syntax.Identifier(str(token), where)

    def document(self, meta: Any, items: list[Any]) -> syntax.Document:
        version, *extensions, graph = items
        return syntax.Document(version, tuple(extensions), (), graph, self._at(meta))

    def version(self, _: Any, items: list[Token]) -> str:
        return str(items[0])

    def extension(self, meta: Any, items: list[Token]) -> syntax.Extension:
        names = tuple(map(self._identifier, items))
        return syntax.Extension(names, " ".join(items[1:]), self._at(meta))

    def names(self, _: Any, items: list[Token]) -> tuple[syntax.Identifier, ...]:
        return tuple(map(self._identifier, items))

    def graph(self, meta: Any, items: list[Any]) -> syntax.GraphDefinition:
        name, inputs, outputs, *assignments = items
        return syntax.GraphDefinition(
            str(name), inputs, outputs, tuple(assignments), self._at(meta)
        )

    def assignment(self, meta: Any, items: list[Any]) -> syntax.Assignment:
        return syntax.Assignment(items[0], items[1], self._at(meta))

    def identifier(self, _: Any, items: list[Token]) -> syntax.Identifier:
        return self._identifier(items[0])

    def array_value(self, meta: Any, items: list[Any]) -> syntax.Array:
        return syntax.Array(tuple(items), self._at(meta))

    def tuple_value(self, meta: Any, items: list[Any]) -> syntax.Tuple:
        return syntax.Tuple(tuple(items), self._at(meta))

    def generic_argument(self, _: Any, items: list[Token]) -> str:
        return str(items[0])

    def invocation(self, meta: Any, items: list[Any]) -> syntax.Invocation:
        name, *rest = items
        dtype = rest.pop(0) if rest and isinstance(rest[0], str) else None
        return syntax.Invocation(str(name), dtype, tuple(rest), self._at(meta))

    def positional(self, _: Any, items: list[Any]) -> syntax.Argument:
        return syntax.Argument(None, items[0], items[0].location)

    def named(self, meta: Any, items: list[Any]) -> syntax.Argument:
        return syntax.Argument(str(items[0]), items[1], self._at(meta))

    def number(self, meta: Any, items: list[Token]) -> syntax.Literal:
        text, where = "".join(items), self._at(meta)
        if len(text) > _MAX_NUMBER_LENGTH:
            raise ModelError("the number is too long", remedy="shorten it", location=where)
        value = int(text) if text.lstrip("-").isdecimal() else float(text)
        if abs(value) >= _MAX_INTEGER and (isinstance(value, int) or math.isinf(value)):
            raise ModelError(f"the number {text} is too large", location=where)
        return syntax.Literal(value, where)

    def string(self, meta: Any, items: list[Token]) -> syntax.Literal:
        return syntax.Literal(_unescape(items[0]), self._at(meta))

    def logical(self, meta: Any, items: list[Token]) -> syntax.Literal:
        return syntax.Literal(items[0] == "true", self._at(meta))

    def declarations(self, _: Any, items: list[Any]) -> tuple[syntax.Declaration, ...]:
        return tuple(items)

    def declaration(self, meta: Any, items: list[Any]) -> syntax.Declaration:
        name, *generic, parameters, results = items
        return syntax.Declaration(
            name=str(name),
            generic=bool(generic),
            default_dtype=generic[0] if generic else None,
            parameters=parameters,
            results=results,
            location=self._at(meta),
        )

    def generic_parameter(self, _: Any, items: list[Token]) -> str | None:
        return str(items[1]) if len(items) > 1 else None

    def parameters(self, _: Any, items: list[Any]) -> tuple[syntax.Parameter, ...]:
        return tuple(items)

    def parameter(self, meta: Any, items: list[Any]) -> syntax.Parameter:
        default = items[2] if len(items) > 2 else None
        return syntax.Parameter(str(items[0]), items[1], default, self._at(meta))

    def primitive_type(self, _: Any, items: list[Token]) -> syntax.PrimitiveType:
        return syntax.PrimitiveType(str(items[0]))

    def tensor_type(self, _: Any, items: list[Token]) -> syntax.TensorType:
        return syntax.TensorType(str(items[0]) if items else None)

    def array_type(self, _: Any, items: list[Any]) -> syntax.ArrayType:
        return syntax.ArrayType(items[0])

    def tuple_type(self, _: Any, items: list[Any]) -> syntax.TupleType:
        return syntax.TupleType(tuple(items))
