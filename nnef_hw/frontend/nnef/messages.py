"""Syntax errors in human words."""

from __future__ import annotations

from collections.abc import Sequence

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.scanner import END, INVALID, UNTERMINATED, Token

__all__ = ["explain"]

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
    "STRING": "a string",
    "PRIMITIVE": "a data-type (scalar, integer, logical, string)",
    "IN": "'in'",
    "YIELD": "'yield'",
    "ELSE": "'else'",
    "GRAPH": "'graph'",
    "VERSION": "'version'",
    "EXTENSION": "'extension'",
    "FRAGMENT": "'fragment'",
}
_VALUE_STARTS = {"NUMBER", "STRING", "LOGICAL"}
_VALUE_TOKENS = {"NUMBER", "STRING", "IDENTIFIER", "LPAR", "LSQB", "PRIMITIVE"}
_AFTER_VALUE = {"OPERATOR", "LESSTHAN", "MORETHAN", "IN", "LSQB", "LPAR"}


def explain(tokens: Sequence[Token], expected: set[str]) -> ModelError:
    """Return the error for the last token, where the others were right.

    Parameters
    ----------
    expected
        The types of the tokens that could stand there.
    """
    token = tokens[-1]
    previous = tokens[-2] if len(tokens) > 1 else None
    if token.type == UNTERMINATED:
        return ModelError("the string has no end on its line", location=token.location)
    if token.type == INVALID:
        return ModelError(
            f"the character {token.text!r} means nothing in NNEF",
            remedy="remove it",
            location=token.location,
        )
    if "OPERATOR" in expected:
        expected -= _AFTER_VALUE
    if token.type == END:
        return _unexpected_end(token, previous, expected)
    if previous is not None and "SEMICOLON" in expected:
        before, here = previous.source.locate(previous.end), token.location
        if before.line != here.line:
            return ModelError(f"expected ';'{_after(previous, expected)}", location=before)
    if expected == {END}:
        return ModelError(
            f"expected nothing after the graph, found {token.text!r}",
            remedy="remove it",
            location=token.location,
        )
    return ModelError(
        f"expected {_describe(expected)}{_after(previous, expected)}, found {token.text!r}",
        remedy=_remedy(token) if "IDENTIFIER" in expected else None,
        location=token.location,
    )


def _unexpected_end(token: Token, previous: Token | None, expected: set[str]) -> ModelError:
    source = token.source
    if previous is None:
        return ModelError(
            "the document is empty",
            remedy="begin it with: version 1.0;",
            location=Location(source.file),
        )
    return ModelError(
        f"the document ends too early: expected {_describe(expected)}",
        remedy="is the file complete?",
        location=source.locate(previous.end),
    )


def _describe(expected: set[str]) -> str:
    words = [word for name, word in _WORDS.items() if name in expected]
    if expected >= _VALUE_STARTS:
        words = [word for name, word in _WORDS.items() if name in expected - _VALUE_TOKENS]
        words.append("a value")
    if not words:
        return "something else"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _after(previous: Token | None, expected: set[str]) -> str:
    if previous is None:
        return " at the beginning"
    if previous.type == "RPAR" and "SEMICOLON" in expected:
        return " after the invocation"
    return f" after {previous.text!r}"


def _remedy(token: Token) -> str | None:
    if token.text.isidentifier() and token.type != "IDENTIFIER":
        return f"{token.text!r} is a keyword, it cannot be a name"
    return None
