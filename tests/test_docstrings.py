"""First sentences of docstrings can be read alone: whole, short, about things that they name.

They stand alone in an editor's hint, in a list of names and on the site.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_WORDS = 25
MOST_BEFORE_SUBJECT = 8
"""Words of a clause in front of the subject."""

FRAGMENTS = re.compile(
    r"(Return|Yield|Give|Say|List|Tell|Take|Write|Print|Show|Read|Find) what\b|What\b|How\b|So\b"
    r"|The same\b|Those\b|That of\b|As \w+"
)
"""Beginnings of sentences that are none, or that lead to another sentence."""
STANDING_ALONE = re.compile(r"(that|those)( (of|at|from|with|in)\b|$)|(it|its|they|them|their)\b")
"""Pronouns; "that" is one only in front of these words."""
NAMELESS = {
    "a", "all", "an", "and", "any", "are", "as", "at", "by", "can", "each", "every", "for", "from",
    "has", "have", "how", "if", "in", "is", "no", "not", "of", "on", "one", "only", "or", "other",
    "others", "so", "than", "the", "to", "what", "when", "where", "whether", "which", "while",
    "who", "with", "without",
}  # fmt: skip
"""Words that name nothing: a pronoun behind no others has no noun."""
CLAUSES = {
    "After", "As", "Before", "Beside", "Besides", "For", "From", "If", "In", "Of", "On", "Since",
    "Unless", "Until", "When", "Where", "While", "With", "Without",
}  # fmt: skip


def first_sentence(doc):
    """Return the first sentence of a docstring."""
    text = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?;:])\s+(?=[A-Z`*])|(?<=[.!?])$", text)[0]


def fault(sentence):
    """Return what is wrong with a first sentence; nothing if it can be read alone."""
    words = [word.strip("`'(),.:;") for word in sentence.split()]
    words = [word for word in words if word]
    if len(words) > MOST_WORDS:
        return f"{len(words)} words"
    if FRAGMENTS.match(sentence):
        return "a fragment"
    clause = sentence.partition(", ")
    if words[:1] and words[0] in CLAUSES and len(clause[0].split()) > MOST_BEFORE_SUBJECT:
        return "a long way to its subject"
    return _lone_pronoun(words)


def _lone_pronoun(words):
    """Return what is wrong with a pronoun in front of every noun."""
    lower = [word.lower() for word in words]
    # The first word is a verb, or a noun: of these only plurals tell.
    named = len(lower[0]) > 3 and lower[0].endswith("s") and not lower[0].endswith("ss")
    for place, word in enumerate(lower):
        if named:
            return ""
        if STANDING_ALONE.match(" ".join(lower[place : place + 2])):
            return f"{word!r} has no noun"
        named = bool(place) and word not in NAMELESS
    return ""


def docstrings():
    """Yield (place, docstring) of everything public or documented."""
    for package in ("nnef_hw", "rtl", "sim", "boards"):
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    doc = ast.get_docstring(node)
                    if doc:
                        yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", doc


def test_first_sentences_can_be_read_alone():
    found = [
        f"{place}: {wrong}: {sentence}"
        for place, doc in docstrings()
        if (wrong := fault(sentence := first_sentence(doc)))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        ("Return the layers of a graph.", ""),
        ("Layers, from their first begin.", ""),
        ("Return what every layer does.", "a fragment"),
        ("What pools have in common.", "a fragment"),
        ("Its name.", "'its' has no noun"),
        ("Return that of a board.", "'that' has no noun"),
        ("Check that a board has pins.", ""),
        ("Take it from a report.", "'it' has no noun"),
        ("Of a network with states that a user has named by hand, return names.", "a long way"),
        ("Return " + "a very " * 13 + "long list.", "29 words"),
    ],
)
def test_faults_are_found(sentence, wrong):
    found = fault(sentence)
    assert found.startswith(wrong) if wrong else found == ""
