"""Text to tokens: one compiled pattern made of the grammar's terminals."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from lark.common import LexerConf
from lark.lexer import Lexer, TerminalDef

from nnef_hw.errors import Location, NnefHwError

__all__ = ["END", "INVALID", "UNTERMINATED", "Scanner", "Source", "Token"]

END = "$END"
INVALID = "INVALID"
UNTERMINATED = "UNTERMINATED"
_TRACT_LINE = re.compile(r"^\s*extension\s+tract_", re.MULTILINE)


class Source(str):
    """The text of a file.

    Attributes
    ----------
    file
        Its name in messages.
    lenient
        Whether legacy spellings are taken.
    errors
        The mistakes found so far.
    """

    file: str
    lenient: bool
    errors: list[NnefHwError]

    def __new__(cls, text: str, file: str, *, lenient: bool = False) -> Source:
        source = super().__new__(cls, text)
        source.file = file
        source.lenient = lenient
        source.errors = []
        return source

    @cached_property
    def is_tract(self) -> bool:
        """Whether the document is written in tract's dialect."""
        return _TRACT_LINE.search(self) is not None

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return [line.rstrip("\r") for line in self.split("\n")]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self))]

    def locate(self, offset: int) -> Location:
        """Return the place of a character."""
        line = bisect_right(self._starts, offset)
        text = self.lines[line - 1]
        return Location(self.file, line, offset - self._starts[line - 1] + 1, text)


class Token:
    """A word or a sign of the language."""

    __slots__ = ("source", "start", "text", "type")

    def __init__(self, type_: str, text: str, start: int, source: Source) -> None:
        self.type = type_
        self.text = text
        self.start = start
        self.source = source

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.start + len(self.text)

    @property
    def location(self) -> Location:
        """Where it stands."""
        return self.source.locate(self.start)


class Scanner(Lexer):
    """The lexer that lark is given: one compiled pattern made of the grammar's terminals.

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
        patterns += [rf"(?P<{UNTERMINATED}>['\"][^\n]*)", rf"(?P<{INVALID}>\S)", r"\Z"]
        self._pattern = re.compile(f"(?:{'|'.join(ignored)})*(?:{'|'.join(patterns)})")

    def lex(self, source: Source) -> Iterator[Token]:
        """Yield the tokens."""
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


def _order(terminal: TerminalDef) -> tuple[int, int, int, str]:
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name
