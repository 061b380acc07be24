"""docs/tflite.md names the operators that are lowered."""

import re
from pathlib import Path

from nnef_hw.frontend.tflite.lowering.registry import known_operators

DOCUMENT = Path(__file__).parents[3] / "docs" / "tflite.md"


def test_every_operator_is_listed():
    text = DOCUMENT.read_text()
    listed = text.partition("<!-- operators -->")[2].partition("<!-- end of operators -->")[0]
    assert re.findall(r"`(\w+)`", listed) == sorted(known_operators())
