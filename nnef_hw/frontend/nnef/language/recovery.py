"""Error recovery of the parser: report a mistake, and find a place to continue from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark.exceptions import UnexpectedToken

from nnef_hw.frontend.nnef.language.messages import explain
from nnef_hw.frontend.nnef.language.scanner import END, INVALID, UNTERMINATED, Token

__all__ = ["MAX_ERRORS", "recover"]

MAX_ERRORS = 20
_MISTAKE = "MISTAKE"
_DEFINITIONS = frozenset({"EXTENSION", "FRAGMENT", "GRAPH"})
_NAME_BEHIND = re.compile(r"\s+[A-Za-z_]")


def recover(
    parser: Any, tokens: Iterator[Token], previous: Token | None, token: Token
) -> Token | None:
    """Report a token that the parser refused, and go on.

    A missing semicolon or brace is supplied. Otherwise the innermost statement or definition that
    is under way is given up: what was read of it is dropped from the parser's stack, the terminal
    MISTAKE replaces it, and what follows is skipped up to its end.

    Parameters
    ----------
    parser
        Lark's interactive parser, in the state that refused the token.
    tokens
        The tokens after the refused one.
    previous
        The token before the refused one.

    Returns
    -------
    Token or None
        The last token that was fed or skipped; None if there is nothing to go on with.
    """
    while len(token.source.errors) < MAX_ERRORS:
        expected = parser.accepts()
        supplied = _missing(parser, previous, token, expected)
        if supplied == "SEMICOLON" and token.source.lenient:
            where = token.source.locate(previous.end if previous else 0)
            token.source.legacy("a ';' is missing", "write one after every statement", where)
        else:
            bracket = _innermost(parser, {"LPAR", "LSQB"})
            wanted = {supplied} if supplied else expected
            token.source.errors.append(explain(previous, token, wanted, bracket))
        if supplied:
            parser.feed_token(Token(supplied, "", token.start, token.source))
        else:
            going_on = _skip(parser, tokens, token, expected)
            if going_on is None:
                return None
            previous, token = going_on
        try:
            parser.feed_token(token)
        except UnexpectedToken:
            continue
        return token
    return None


def _missing(parser: Any, previous: Token | None, token: Token, expected: set[str]) -> str | None:
    """Return the type of the token that is missing before this one, None if no single one is."""
    if previous is None or token.type in {INVALID, UNTERMINATED}:
        return None
    if "LBRACE" in expected and token.type in {"IDENTIFIER", "LPAR", "LSQB"}:
        return "LBRACE"
    if "SEMICOLON" in expected:
        is_next_line = "\n" in token.source[previous.end : token.start]
        ends_body = token.type == "RBRACE" and _innermost(parser, {"LBRACE"})
        if is_next_line or ends_body or token.source.lenient:
            return "SEMICOLON"
    if "RBRACE" in expected and token.type in _DEFINITIONS and _is_header(token):
        return "RBRACE"
    return None


def _is_header(token: Token) -> bool:
    return _NAME_BEHIND.match(token.source, token.end) is not None


def _innermost(parser: Any, types: set[str]) -> Token | None:
    for value in reversed(parser.parser_state.value_stack):
        if isinstance(value, Token) and value.type in types:
            return value
    return None


def _skip(
    parser: Any, tokens: Iterator[Token], token: Token, expected: set[str]
) -> tuple[Token, Token] | None:
    """Give up what is under way; return the last token of it, and the one to be fed next."""
    previous = token
    if expected == {END}:
        return None
    wanted = expected & _DEFINITIONS
    if wanted or not _give_up(parser):
        while token.type != END and token.type not in wanted:
            previous, token = token, next(tokens)
        return None if token.type == END else (previous, token)
    stops = {"RBRACE"} if "RBRACE" in parser.accepts() else _DEFINITIONS
    parser.feed_token(Token(_MISTAKE, "", token.start, token.source))
    ends = parser.accepts()
    braces = 0
    while token.type not in ends:
        if token.type == END:
            return None
        is_stop = token.type in stops and (token.type == "RBRACE" or _is_header(token))
        if "SEMICOLON" in ends and (token.type == UNTERMINATED or (is_stop and not braces)):
            parser.feed_token(Token("SEMICOLON", "", token.start, token.source))
            return (token, next(tokens)) if token.type == UNTERMINATED else (previous, token)
        braces += (token.type == "LBRACE") - (token.type == "RBRACE")
        previous, token = token, next(tokens)
    return previous, token


def _give_up(parser: Any) -> bool:
    states, values = parser.parser_state.state_stack, parser.parser_state.value_stack
    table = parser.parser_state.parse_conf.parse_table.states
    kept = len(states)
    while kept and _MISTAKE not in table[states[kept - 1]]:
        kept -= 1
    if kept:
        del states[kept:], values[kept - 1 :]
    return kept > 0
