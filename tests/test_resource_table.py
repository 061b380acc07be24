"""The tables of docs/resources.md are those of what was measured and of the weights."""

import importlib
from pathlib import Path

import pytest

from nnef_hw.hardware.families import FAMILIES

ROOT = Path(__file__).parents[1]


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts" / "measure")


def test_resource_tables_are_current(scripts):
    script = importlib.import_module("resource_table")
    text = (ROOT / "docs" / "resources.md").read_text()
    assert text == script.make_text(text), "run python scripts/measure/resource_table.py"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_weight_was_measured(scripts, family):
    script = importlib.import_module("measured_cases")
    measured = {case.part.costs for case, _ in script.measured_cases(family)}
    assert measured == set(family.lut_weights)
