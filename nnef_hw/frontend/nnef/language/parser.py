"""Text to syntax tree; goes on behind a mistake, so that every independent one is reported."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken

from nnef_hw.errors import Location, NnefHwError, raise_all
from nnef_hw.frontend.nnef.language import syntax
from nnef_hw.frontend.nnef.language.recovery import MAX_ERRORS, recover
from nnef_hw.frontend.nnef.language.scanner import END, Scanner, SourceText, Token
from nnef_hw.frontend.nnef.language.tree import TREE_BUILDER

__all__ = ["parse_document", "parse_library", "parse_quantization"]


def parse_document(text: str, file: str, *, lenient: bool = False) -> syntax.Document:
    """Parse a document, flat or compositional, of the standard or of tract's dialect.

    Whether it declares the extensions that it uses is not a matter of syntax. What tract adds is
    taken everywhere, only infinities and escaped names need one of tract's extension lines.

    Parameters
    ----------
    text
        The document.
    file
        Name of the file in messages.
    lenient
        Whether spellings of provisional NNEF are accepted, each kind with a warning: missing
        semicolons, ``extent``, ``tensor`` without data-type, tuples without parentheses,
        ``[value for item in items]``.

    Raises
    ------
    ModelError
        If there is one syntax error: its place, what was expected, the remedy.
    ErrorGroup
        If there are several, at most 20.
    """
    document: syntax.Document = _parse(SourceText(text, file, lenient=lenient), "document")
    return document


def parse_library(text: str, file: str) -> tuple[syntax.Declaration, ...]:
    """Parse fragment definitions, with or without bodies, one after another.

    Raises
    ------
    ModelError, ErrorGroup
        If there are syntax errors.
    """
    declarations: tuple[syntax.Declaration, ...] = _parse(SourceText(text, file), "library")
    return declarations


def parse_quantization(text: str, file: str) -> tuple[syntax.Assignment, ...]:
    """Parse a ``graph.quant``: the targets are strings, the values invocations.

    Raises
    ------
    ModelError, ErrorGroup
        If there are syntax errors.
    """
    lines: tuple[syntax.Assignment, ...] = _parse(SourceText(text, file), "quantization")
    return lines


@cache
def _lark() -> Lark:
    grammar = (resources.files(__package__) / "grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer=Scanner,
        start=["document", "library", "quantization"],
        transformer=TREE_BUILDER,
    )


def _parse(source: SourceText, start: str) -> Any:
    parser: Any = _lark().parse_interactive(source, start=start)
    tokens: Iterator[Token] = parser.lexer_thread.lex(parser.parser_state)
    feed = parser.parser_state.feed_token
    previous: Token | None = None
    result = None
    for token in tokens:
        try:
            result = feed(token, token.type == END)
        except UnexpectedToken:
            previous = recover(parser, tokens, previous, token)
            if previous is None:
                break
        else:
            previous = token
    raise_all(sorted(source.errors, key=_place)[:MAX_ERRORS])
    return result


def _place(error: NnefHwError) -> tuple[int, int]:
    where = error.location or Location("")
    return where.line, where.column
