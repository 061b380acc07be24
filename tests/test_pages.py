"""Pages are written in short sentences: at most 22 words on average.

Pages that are above that today are listed with their number, which can only become smaller.
"""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_WORDS = 22
"""Words of a sentence, on average over a page."""

LEFT: dict[str, int] = {}
"""Words of a sentence of pages that are above the limit: write fewer, never more."""
SLACK = 5
"""Words that a page's average may fall before its number has to be lowered."""

NO_PROSE = re.compile(r"```.*?```|<!--.*?-->", re.DOTALL)
OTHER_LINES = ("    ", "|", "#", "<", "![")
"""Beginnings of lines of code, tables, headings, HTML, pictures."""
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]*`")
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\* |- |\d+\. )")
"""Between paragraphs, or points of a list."""
END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z*\"(0-9])")
FEWEST_WORDS = 3
"""Words of a sentence: what has fewer is a label."""


def sentences(text):
    """Return the sentences of a page's prose; a link counts as its text, code as one word."""
    lines = NO_PROSE.sub("", text).split("\n")
    prose = "\n".join(line for line in lines if not line.startswith(OTHER_LINES))
    prose = CODE.sub("x", LINK.sub(r"\1", prose))
    found = (
        sentence
        for paragraph in PARAGRAPH.split(prose)
        for sentence in END.split(" ".join(paragraph.split()))
    )
    return [sentence for sentence in found if len(sentence.split()) >= FEWEST_WORDS]


@cache
def averages():
    """Return the words of a sentence of each page, on average."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = {}
    for page in pages:
        if words := [len(x.split()) for x in sentences(page.read_text(encoding="utf-8"))]:
            found[page.relative_to(ROOT).as_posix()] = sum(words) / len(words)
    return found


def test_sentences_of_pages_are_short():
    long = {
        page: round(words, 1)
        for page, words in averages().items()
        if words > LEFT.get(page, MOST_WORDS)
    }
    assert not long, f"words of a sentence: {long}"


def test_the_numbers_become_smaller():
    fewer = {page: averages()[page] for page in LEFT if averages()[page] < LEFT[page] - SLACK}
    assert not fewer, f"these are shorter today: {fewer}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# A heading of words\n\nOne two three. Four five six seven.\n", [3, 4]),
        ("One two three.\n\n    code that is not read\n\n| a | b | c d |\n", [3]),
        ("```python\na = 1 + 2 + 3\n```\n\nCall `f(a, b, c)` and read it.\n", [5]),
        ("See [a long title](a.md) now.\n", [5]),
        ("* one two three\n* four five six\n  seven\n", [4, 5]),
        ("Yes, no.\n\n<!-- one two three four -->\n", []),
        ("A list follows: One two three, 3.5 of 4 e.g. this.\n", [3, 8]),
    ],
)
def test_words_are_counted(text, words):
    assert [len(sentence.split()) for sentence in sentences(text)] == words
