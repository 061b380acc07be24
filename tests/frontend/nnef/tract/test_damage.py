"""Damaged documents of tract's dialect: any mistake is an error of ours, never a traceback."""

import contextlib
import random
import re

import pytest
from tract_operators import CASES, document_of

from nnef_hw.errors import NnefHwError
from nnef_hw.frontend.nnef.language.parser import parse_document
from nnef_hw.frontend.nnef.lower import lower
from nnef_hw.frontend.nnef.tract import TRACT

TOKEN = re.compile(r"'[^']*'|[\w.]+|\S")
VALUES = (
    "0", "-1", "3.5", "true", "'f32'", "[]", "[1]", "[[1.0]]", "[1, 2]", "(1, 2)", "inf",
    "99999999", "x", "[[0, 0]]", "[x]", "",
)  # fmt: skip


def damaged(text, rng):
    for _ in range(rng.choice([1, 1, 2, 3])):
        token = rng.choice(list(TOKEN.finditer(text, text.find("{"))))
        text = text[: token.start()] + rng.choice(VALUES) + text[token.end() :]
    return text


@pytest.mark.parametrize("name", CASES)
def test_damage_is_no_traceback(name):
    rng = random.Random(name)
    text, _ = document_of(CASES[name][0])
    for _ in range(20):
        with contextlib.suppress(NnefHwError):
            lower(parse_document(damaged(text, rng), "graph.nnef"), rules=TRACT)
