"""How much of the code is typed: mypy checks the rest, this counts where it may not look."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "nnef_hw"
MOST_ANY = {"report": 2, "flow": 0, "api": 3, "": 116}
"""Lines that may name ``Any``, by room; of the whole package at last. Write fewer, never more."""


@pytest.mark.parametrize("room", MOST_ANY)
def test_most_values_have_types(room):
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\bAny\b", line) and "import" not in line
    ]
    assert len(found) <= MOST_ANY[room], "\n".join(found)
