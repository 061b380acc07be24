"""Messages for syntax errors."""

from __future__ import annotations

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.language.scanner import END, INVALID, UNTERMINATED, Token

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
    "ANY": "'?'",
    "IN": "'in'",
    "YIELD": "'yield'",
    "ELSE": "'else'",
    "IDENTIFIER": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "PRIMITIVE": "a data-type (scalar, integer, logical, string)",
    "EXTENSION": "'extension'",
    "FRAGMENT": "'fragment'",
    "GRAPH": "'graph'",
    "VERSION": "'version'",
}
# What can stand behind any value is not worth telling.
_AFTER_VALUE = {"OPERATOR", "LESSTHAN", "MORETHAN", "MINUS", "PLUS", "IN", "LSQB", "LPAR"}
# A phrase for what these types begin; it stands for the hidden types, too.
_PHRASES = [
    ({"NUMBER", "STRING", "LOGICAL"}, "a value"),
    ({"PRIMITIVE", "TENSOR"}, "a type"),
    ({"RBRACE", "IDENTIFIER"}, "an assignment"),
]
_HIDDEN = {"NUMBER", "STRING", "IDENTIFIER", "LPAR", "LSQB", "PRIMITIVE", "ANY", "IN"}
_BRACES = ({"LBRACE"}, {"RBRACE"})
_CLOSING = {";", ")", "]", "}"}
# If this type is expected, behind this text, instead of that text.
_REMEDIES = [
    ("NUMBER", ",", ")", "remove the ','"),
    ("NUMBER", ",", "]", "remove the ','"),
    ("NUMBER", "", "{", "an array is written [1, 2]"),
    ("RBRACE", ";", ";", "remove one"),
    ("RBRACE", "", "/", "a comment begins with #"),
    ("NUMBER", "/", "/", "a comment begins with #"),
    ("PRIMITIVE", "", "extent", "extent is called integer since NNEF 1.0"),
    ("EQUAL", "", "-", "a name consists of letters, digits and _"),
    ("EQUAL", "", ":", "write ="),
    ("RPAR", "", ":", "only the parameters and results of fragments have types"),
    ("SEMICOLON", "", ")", "remove it"),
    ("SEMICOLON", "", "]", "remove it"),
    ("LSQB", "", "=", "only parameters have default values"),
    ("COMMA", "", ")", "a tuple has two or more items"),
    ("RPAR", "", ",", "these parentheses can hold only one value"),
]
_REPLACEMENTS = {
    "&": "write &&",
    "|": "write ||",
    ".": "a number begins with a digit, and a name has no dots",
    "%": "there is no remainder operator",
    "\u201c": "write ' or \"",
    "\u201d": "write ' or \"",
    "\u2018": "write ' or \"",
    "\u2019": "write ' or \"",
    "\u2212": "write -",
}


def explain(
    previous: Token | None, token: Token, expected: set[str], bracket: Token | None
) -> ModelError:
    """Return the error for a token that cannot stand where it does.

    Parameters
    ----------
    previous
        The token before it.
    expected
        The types of the tokens that could stand there.
    bracket
        The innermost bracket that is open.
    """
    if token.type in {INVALID, UNTERMINATED}:
        return _unreadable(token)
    if "OPERATOR" in expected:
        expected = expected - _AFTER_VALUE
    if previous is None and token.type == END:
        return ModelError(
            "the document is empty",
            remedy="begin it with: version 1.0;",
            location=Location(token.source.file),
        )
    place = token.location
    if previous is not None and (
        token.type == END or expected & {"SEMICOLON", "RPAR", "RSQB"} or expected in _BRACES
    ):
        place = token.source.locate(previous.end)
    words = "nothing after the graph" if expected == {END} else _describe(expected)
    is_late = token.type == END or place.line != token.location.line
    remedy = _remedy(previous, token, expected)
    if bracket is not None and expected & {"RPAR", "RSQB"} and (is_late or token.text in _CLOSING):
        where = bracket.location
        remedy = f"close the {bracket.text!r} of line {where.line}, column {where.column}"
    if token.type == END:
        return ModelError(
            f"the document ends too early: expected {words}",
            remedy=remedy or "is the file complete?",
            location=place,
        )
    reason = f"expected {words}{_after(previous, expected)}"
    if is_late:
        return ModelError(reason, remedy=remedy, location=place)
    return ModelError(f"{reason}, found {token.text!r}", remedy=remedy, location=token.location)


def _unreadable(token: Token) -> ModelError:
    if token.type == UNTERMINATED:
        reason = "the string has no end on its line"
        remedy = f"close it with {token.text[0]}"
    else:
        reason = f"the character {token.text!r} means nothing in NNEF"
        remedy = _REPLACEMENTS.get(token.text, "remove it")
    return ModelError(reason, remedy=remedy, location=token.location)


def _describe(expected: set[str]) -> str:
    for types, phrase in _PHRASES:
        if expected >= types:
            words = [word for name, word in _WORDS.items() if name in expected - _HIDDEN]
            words.append(phrase)
            break
    else:
        hidden = {"COMMA"} if "SEMICOLON" in expected and "IDENTIFIER" not in expected else set()
        hidden |= {"EQUAL"} if "RPAR" in expected else set()
        hidden |= {"ANY"} if "PRIMITIVE" in expected else set()
        words = [word for name, word in _WORDS.items() if name in expected - hidden]
    if len(words) < 2:
        return "".join(words) or "something else"
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _after(previous: Token | None, expected: set[str]) -> str:
    if previous is None:
        return " at the beginning"
    if expected == {END}:
        return ""
    if previous.type == "RPAR" and "SEMICOLON" in expected:
        return " after the invocation"
    return f" after {previous.text!r}"


def _remedy(previous: Token | None, token: Token, expected: set[str]) -> str | None:
    if previous is None:
        return "begin the document with: version 1.0;" if "VERSION" in expected else None
    if expected == {END} or (token.text == "}" and "FRAGMENT" in expected):
        return "remove it"
    if "IDENTIFIER" in expected and token.text.isidentifier() and token.type != "IDENTIFIER":
        return f"{token.text!r} is a keyword and cannot be a name"
    if "IDENTIFIER" in expected and token.type == "NUMBER":
        return "a name does not begin with a digit"
    for type_, before, text, remedy in _REMEDIES:
        if type_ in expected and before in {"", previous.text} and text == token.text:
            return remedy
    return None
