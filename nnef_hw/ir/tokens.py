"""The words that the text of a graph is made of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from nnef_hw.errors import Location, ModelError

__all__ = ["Tokens"]

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|\#[^\n]*)+)
    | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    | (?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|-inf\b)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<omitted><\d[^<>\n]*>)
    | (?P<mark><-|[][(){},:=@])""",
    re.VERBOSE | re.ASCII,
)


@dataclass(slots=True)
class Tokens:
    """A text, token by token; ``first_line`` is that of the text in its file."""

    text: str
    file: str
    first_line: int
    _items: list[tuple[str, str, int]] = field(init=False)
    _place: int = 0

    def __post_init__(self) -> None:
        self._items = [*self._scan()]

    def _scan(self) -> Iterator[tuple[str, str, int]]:
        start = 0
        while start < len(self.text):
            match = _TOKEN.match(self.text, start)
            if match is None:
                reason = f"{self.text[start]!r} begins nothing that a graph is made of"
                raise ModelError(reason, location=self.location(start))
            if match.lastgroup != "space":
                yield str(match.lastgroup), match[0], start
            start = match.end()
        yield "end", "the end", start
        yield "end", "the end", start

    def location(self, start: int) -> Location:
        """Return where a character stands."""
        before = self.text[:start].split("\n")
        line = self.text.split("\n")[len(before) - 1]
        return Location(
            self.file, self.first_line + len(before) - 1, len(before[-1]) + 1, line.rstrip("\r")
        )

    @property
    def kind(self) -> str:
        """Kind of the next token: string, number, name, omitted, mark or end."""
        return self._items[self._place][0]

    @property
    def word(self) -> str:
        """The next token."""
        return self._items[self._place][1]

    @property
    def next_word(self) -> str:
        """The token behind it."""
        return self._items[self._place + 1][1]

    @property
    def start(self) -> int:
        """Where the next token begins."""
        return self._items[self._place][2]

    def take(self) -> str:
        """Go on behind the next token; return it."""
        word = self.word
        self._place += 1
        return word

    def accept(self, word: str) -> bool:
        """Whether the next token is this one, which is then taken."""
        found = self.kind in {"name", "mark"} and self.word == word
        self._place += found
        return found

    def expect(self, word: str) -> None:
        """Take this very token."""
        if not self.accept(word):
            self.fail(repr(word))

    def fail(self, wanted: str) -> NoReturn:
        """Raise the error that something else is expected here."""
        reason = f"{wanted} is expected instead of {self.word!r}"
        raise ModelError(reason, location=self.location(self.start))

    def string(self) -> str:
        """Take a quoted text; return what it quotes."""
        try:
            return str(ast.literal_eval(self.word))
        except SyntaxError:
            self.fail("a string")
        finally:
            self.take()

    def identifier(self, what: str) -> str:
        """Take a name that is not quoted."""
        if self.kind != "name":
            self.fail(what)
        return self.take()
