"""Every number by which nextpnr is used says where it comes from."""

import ast
from itertools import pairwise
from pathlib import Path

from nnef_hw.place.nextpnr import policy

SOURCES = "Measured", "Chosen", "From"
FOLDER = Path(policy.__file__).parent


def test_every_number_has_its_source():
    body = ast.parse(Path(policy.__file__).read_text()).body
    told = set()
    for number, text in pairwise(body):
        if isinstance(number, ast.Assign) and isinstance(text, ast.Expr):
            names = {x.id for target in number.targets for x in ast.walk(target)
                     if isinstance(x, ast.Name)}  # fmt: skip
            assert any(f"{source} " in text.value.value or f"{source}:" in text.value.value
                       for source in SOURCES), names  # fmt: skip
            told |= names
    assert told == set(policy.__all__)


def test_every_number_is_used_by_a_name():
    """Whoever decides imports it; none stands in two files."""
    texts = {path.name: path.read_text() for path in FOLDER.glob("*.py")}
    del texts["policy.py"]
    for name in policy.__all__:
        assert any(name in text for text in texts.values()), name
        assert not any(f"\n{name} = " in text for text in texts.values()), name
