"""LUT weights are data: those of the fit, no worse on unseen cases than was published."""

import ast
import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.hardware import families
from nnef_hw.hardware.families import FAMILIES
from nnef_hw.hardware.families.lut_weights import lut_weights

ROOT = Path(__file__).parents[3]
ROUNDING = 5e-4
"""What processors may round differently."""
each_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)


@pytest.fixture(scope="module")
def lut_fit():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts" / "measure")
        yield importlib.import_module("lut_fit")


def entries_of(text):
    return json.loads(text)["parts"]


def exceeded(lut_fit, measured, entries):
    """Return the parts whose weights are worse on unseen cases than was published."""
    found = {name: lut_fit.published_error(part, entries[name]) for name, part in measured.items()}
    return {
        name for name, error in found.items()
        if (error is None) is not (entries[name]["error"] is None)
        or (error is not None and error > entries[name]["error"] + ROUNDING)
    }  # fmt: skip


@each_family
def test_no_fit_is_worse_on_unseen_cases_than_published(family, lut_fit):
    entries = entries_of(lut_fit.weights_file(family).read_text())
    assert exceeded(lut_fit, lut_fit.cases_of(family), entries) == set()


@each_family
def test_weights_are_those_of_the_fit(family, lut_fit):
    known = entries_of(lut_fit.weights_file(family).read_text())
    fitted = entries_of(lut_fit.fitted_text(family))
    for name, entry in fitted.items():
        assert entry["weights"] == known[name]["weights"], f"fit {family} --part '{name}' --write"
        assert entry["fitted to"] == known[name]["fitted to"]
    assert fitted.keys() == known.keys()


def test_a_component_that_has_grown_is_seen(lut_fit):
    """Two thirds of its cases take half as many LUTs again: no sum of its features tells which."""
    family, *_ = FAMILIES
    entries = entries_of(lut_fit.weights_file(family).read_text())
    part = lut_fit.cases_of(family)["line buffer"]
    grown = part.found * np.where(np.arange(len(part.found)) % 3, 1.5, 1)
    measured = {"line buffer": replace(part, found=grown)}
    assert exceeded(lut_fit, measured, entries) == {"line buffer"}


def test_weights_of_other_cases_become_those_of_the_components_when_it_is_asked(lut_fit):
    family, *_ = FAMILIES
    before = entries_of(lut_fit.weights_file(family).read_text())
    after = entries_of(lut_fit.fitted_text(family, ["array"]))
    assert before["array"]["fitted to"] == "elsewhere"
    assert after["array"]["fitted to"] == "components"
    part = lut_fit.cases_of(family)["array"]
    weights = np.array([after["array"]["weights"][name] for name in part.names])
    assert part.errors(weights).mean() == pytest.approx(part.errors(part.fitted()).mean(), abs=1e-3)
    del before["array"], after["array"]
    assert after == before


def test_a_lone_case_is_not_validated(lut_fit):
    lines = [{"features": {"bits": 3, "fixed": 1}, "found": {"lut": 9}}]
    part = lut_fit.PartCases.of(lines)
    assert part.cross_validated() is None
    twice = lut_fit.PartCases.of([*lines, {**lines[0], "found": {"lut": 18}}])
    # either case by the weights of the other: half and twice as much
    assert twice.cross_validated() == pytest.approx(0.75)


@each_family
def test_the_family_has_what_is_in_the_file(family):
    found = lut_weights(family.name)
    assert family.lut_weights == found.parts
    assert family.lut_multiplier == found.multiplier["luts"]
    with pytest.raises(TypeError):
        found.parts["array"]["fixed"] = 0.0


def test_no_weight_stands_in_a_module():
    for path in Path(families.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Dict):
                assert not [x for x in node.values if isinstance(x, ast.Constant)
                            and isinstance(x.value, float)], path.name  # fmt: skip
