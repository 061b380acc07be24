"""Write the fields of instructions in docs/engine.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nnef_hw.parts.engine.features import FEATURES
from nnef_hw.parts.engine.fields import Fact

__all__ = ["TARGET", "make_text"]

TARGET = Path(__file__).resolve().parents[2] / "docs" / "engine.md"
_BEGIN, _END = "<!-- fields: generated -->\n", "<!-- end of fields -->\n"


def make_text(text: str) -> str:
    """Return the document with the table as it is now."""
    assert _BEGIN in text, "docs/engine.md has no place for fields"
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    return pattern.sub(lambda _: _BEGIN + "".join(_rows()) + _END, text)


def _rows() -> Iterator[str]:
    yield "| field | what it says | of | bits | late | constant |\n|---|---|---|---|---|---|\n"
    for feature in FEATURES:
        for record in feature.says:
            for name, fact in record.facts().items():
                late, constant = ("x" if is_so else "" for is_so in (fact.late, fact.constant))
                yield (
                    f"| `{name}` | {fact.summary} | {feature.label} | {_bits(fact)} | {late} | "
                    f"{constant} |\n"
                )


def _bits(fact: Fact) -> str:
    if fact.bits is not None:
        return str(fact.bits)
    return "greatest" if fact.counted else "size"


if __name__ == "__main__":
    TARGET.write_text(make_text(TARGET.read_text()))
