"""Text to syntax tree."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken

from nnef_hw.errors import raise_all
from nnef_hw.frontend.nnef import syntax
from nnef_hw.frontend.nnef.messages import explain
from nnef_hw.frontend.nnef.scanner import Scanner, Source, Token
from nnef_hw.frontend.nnef.tree import TREE_BUILDER

__all__ = ["parse_document", "parse_library", "parse_quantization"]


def parse_document(text: str, file: str, *, lenient: bool = False) -> syntax.Document:
    """Parse a document, flat or compositional, of the standard or of tract's dialect.

    Whether the document declares the extensions it uses is not a matter of syntax.

    Parameters
    ----------
    text
        The document.
    file
        Its name in messages.
    lenient
        Whether legacy spellings are taken, with a warning.

    Raises
    ------
    ModelError, ErrorGroup
        If there are syntax errors: each with its place, what was expected and the remedy.
    """
    document: syntax.Document = _parse(Source(text, file, lenient=lenient), "document")
    return document


def parse_library(text: str, file: str) -> tuple[syntax.Declaration, ...]:
    """Parse fragment definitions, with or without bodies, one after another.

    Raises
    ------
    ModelError, ErrorGroup
        If there are syntax errors.
    """
    declarations: tuple[syntax.Declaration, ...] = _parse(Source(text, file), "library")
    return declarations


def parse_quantization(text: str, file: str) -> tuple[syntax.Assignment, ...]:
    """Parse a ``graph.quant``: the targets are strings, the values invocations.

    Raises
    ------
    ModelError, ErrorGroup
        If there are syntax errors.
    """
    lines: tuple[syntax.Assignment, ...] = _parse(Source(text, file), "quantization")
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


def _parse(source: Source, start: str) -> Any:
    parser = _lark().parse_interactive(source, start=start)
    tokens: list[Token] = []
    result = None
    try:
        for token in parser.lexer_thread.lex(parser.parser_state):
            tokens.append(token)
            result = parser.feed_token(token)
    except UnexpectedToken:
        expected = parser.accepts()
        raise_all([*source.errors, explain(tokens, expected)])
    raise_all(source.errors)
    return result
