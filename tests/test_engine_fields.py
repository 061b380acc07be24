"""The fields of an engine's instructions: the table in docs/engine.md, and who owns them."""

import importlib
from collections import Counter
from pathlib import Path

import pytest

from nnef_hw.parts.engine.feature import Feature
from nnef_hw.parts.engine.features import FEATURES

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts" / "generate")
    return importlib.import_module("engine_fields")


def test_table_of_fields_is_current(script):
    text = (ROOT / "docs" / "engine.md").read_text()
    assert text == script.make_text(text), "run python scripts/generate/engine_fields.py"


def test_every_field_has_one_owner():
    names = Counter(
        name for feature in FEATURES for record in feature.says for name in record.facts()
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_every_feature_is_listed():
    """Those that stand for several are not: they are bases of these."""

    def below(kind):
        return [kind, *(x for sub in kind.__subclasses__() for x in below(sub))]

    assert {kind for kind in below(Feature) if not kind.__subclasses__()} == set(FEATURES)
