"""Text to tokens: one compiled pattern made of the grammar's terminals."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from lark.common import LexerConf
from lark.lexer import Lexer, TerminalDef

from nnef_hw.errors import Location, ModelError, NnefHwError

__all__ = ["END", "INVALID", "UNTERMINATED", "Scanner", "SourceText", "Token"]

END = "$END"
INVALID = "INVALID"
UNTERMINATED = "UNTERMINATED"

_logger = logging.getLogger(__name__)


class SourceText(str):
    """The text of a file and the mistakes found in it.

    Attributes
    ----------
    file
        Name of the file in messages.
    lenient
        Whether legacy spellings are accepted.
    is_tract
        Whether an extension line said so far that this is tract's dialect.
    errors
        The mistakes found so far.
    """

    __slots__ = ("__dict__",)

    file: str
    lenient: bool
    is_tract: bool
    errors: list[NnefHwError]
    _warned: set[str]

    def __new__(cls, text: str, file: str, *, lenient: bool = False) -> SourceText:
        """Make a source without mistakes."""
        source = super().__new__(cls, text)
        source.file = file
        source.lenient = lenient
        source.is_tract = False
        source.errors = []
        source._warned = set()
        return source

    @cached_property
    def _lines(self) -> list[str]:
        return [line.rstrip("\r") for line in self.split("\n")]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self))]

    def locate(self, offset: int) -> Location:
        """Return the place of a character."""
        line = bisect_right(self._starts, offset)
        return Location(self.file, line, offset - self._starts[line - 1] + 1, self._lines[line - 1])

    def legacy(self, reason: str, remedy: str, where: Location) -> None:
        """Note a spelling that NNEF 1.0 does not have any more.

        An error, or if the source is read leniently one warning for each reason.
        """
        if not self.lenient:
            self.errors.append(ModelError(reason, remedy=remedy, location=where))
        elif reason not in self._warned:
            self._warned.add(reason)
            _logger.warning("%s: %s; %s", where, reason, remedy)


class Token:
    """A word or a sign of the language."""

    __slots__ = ("source", "start", "text", "type")

    def __init__(self, type_: str, text: str, start: int, source: SourceText) -> None:
        self.type = type_
        self.text = text
        self.start = start
        self.source = source

    @property
    def end(self) -> int:
        """Offset of the character after the token."""
        return self.start + len(self.text)

    @property
    def location(self) -> Location:
        """Location of the token."""
        return self.source.locate(self.start)


class Scanner(Lexer):
    """The lexer that lark is given.

    The terminals are tried in the order of lark's own lexers, words win over names. What begins
    no token becomes one of the type UNTERMINATED or INVALID; the last token is of the type END.
    """

    def __init__(self, conf: LexerConf) -> None:
        ignored: list[str] = []
        patterns: list[str] = []
        self._words: dict[str, str] = {}
        for terminal in sorted(conf.terminals, key=_order):
            pattern = terminal.pattern.to_regexp()
            words = pattern.removeprefix("(?:").removesuffix(")").split("|")
            if terminal.name in conf.ignore:
                ignored.append(pattern)
            elif all(word.isidentifier() for word in words):
                self._words.update(dict.fromkeys(words, terminal.name))
            else:
                patterns.append(f"(?P<{terminal.name}>{pattern})")
        patterns += [rf"(?P<{UNTERMINATED}>['\"][^\n]*)", rf"(?P<{INVALID}>(?s:.))", r"\Z"]
        self._pattern = re.compile(f"(?:{'|'.join(ignored)})*(?:{'|'.join(patterns)})")

    # The wrapper that lark puts around custom lexers hands over nothing but the text.
    def lex(self, source: SourceText) -> Iterator[Token]:  # type: ignore[override]
        """Return the tokens, one after another."""
        tokens = self._scan(source)
        return map(_modern, tokens) if source.lenient else tokens

    def _scan(self, source: SourceText) -> Iterator[Token]:
        words = self._words
        for match in self._pattern.finditer(source):
            kind = match.lastgroup
            if kind is None:
                break
            text, start = match[kind], match.start(kind)
            if kind == "IDENTIFIER":
                kind = words.get(text, kind)
            yield Token(kind, text, start, source)
        yield Token(END, "", len(source), source)


def _modern(token: Token) -> Token:
    if token.text != "extent":
        return token
    token.source.legacy("the type extent is called integer", "write integer", token.location)
    return Token("PRIMITIVE", "integer", token.start, token.source)


def _order(terminal: TerminalDef) -> tuple[int, int, int, str]:
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name
