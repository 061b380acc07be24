"""Weights of LUTs are of rows that were measured."""

import importlib
from pathlib import Path

import pytest

from nnef_hw.hardware.families import FAMILIES

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_weight_was_measured(family, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts" / "measure")
    script = importlib.import_module("measured_cases")
    measured = {case.part.costs for case, _ in script.measured_cases(family)}
    assert measured == set(family.lut_weights)
