"""Operator declarations that come with the package: NNEF text, parsed when first needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from nnef_hw.frontend.nnef.language.parser import parse_library
from nnef_hw.frontend.nnef.language.syntax import Declaration

__all__ = ["Library", "load_library"]

_START = re.compile(r"^fragment (\w+)", re.MULTILINE)


class Library(Mapping[str, Declaration]):
    """Declarations by operator name.

    Only the text of operators that are looked up is parsed: a fragment begins a line with
    ``fragment NAME`` and ends before the next one.
    """

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        starts = list(_START.finditer(text))
        ends = [*(match.start() for match in starts[1:]), len(text)]
        self._spans = {
            match[1]: (match.start(), end) for match, end in zip(starts, ends, strict=False)
        }
        self._text = text
        self._parsed: dict[str, Declaration] = {}

    def __getitem__(self, name: str) -> Declaration:
        if name not in self._parsed:
            start, end = self._spans[name]
            (self._parsed[name],) = parse_library(self._text[start:end], self.file)
        return self._parsed[name]

    def __contains__(self, name: object) -> bool:
        return name in self._spans

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


@cache
def load_library(name: str) -> Library:
    """Return a library of the package: ``standard``, or one of a dialect."""
    file = f"{name}.nnef"
    text = (resources.files(__package__) / "library" / file).read_text(encoding="utf-8")
    return Library(file, text)
