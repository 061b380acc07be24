"""The onnx wheel's own test cases: those that no pattern of ``onnx.txt`` names pass."""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from string import ascii_lowercase

import pytest
from onnx_cases import cases, run_case

from nnef_hw.errors import NnefHwError

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")
pytestmark = pytest.mark.skipif(
    not onnx.__version__.startswith("1.23."), reason="the list is of the cases of onnx 1.23"
)

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
CASES_OF_1_23 = {"node": 1884, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35}
LINES = (Path(__file__).parents[2] / "cases" / "suites" / "onnx.txt").read_text().splitlines()
ERRORS = dict(line.split(": ", 1) for line in LINES if line and not line.startswith("#"))
"""What the error of a case says, by patterns of the names."""


def expected(name):
    """Return what the error of a case says, None if it passes: by the first pattern."""
    return next((error for pattern, error in ERRORS.items() if fnmatchcase(name, pattern)), None)


def found(case, folder):
    """Return what a case is refused for or misses, None if it passes."""
    try:
        run_case(case, folder)
    except (NnefHwError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def as_listed(error, wanted):
    """Return whether a case fails if it has to, and says so."""
    return error is None if wanted is None else error is not None and wanted in error


@pytest.mark.parametrize("initial", ascii_lowercase)
@pytest.mark.parametrize("kind", KINDS)
def test_cases_pass_or_fail_as_listed(kind, initial, tmp_path):
    named = {n: x for n, x in cases(kind).items() if n.removeprefix("test_")[0].lower() == initial}
    errors = {name: found(case, tmp_path) for name, case in named.items()}
    assert {name: e for name, e in errors.items() if not as_listed(e, expected(name))} == {}


def test_every_case_has_an_initial_and_every_pattern_a_case():
    assert {kind: len(cases(kind)) for kind in KINDS} == CASES_OF_1_23
    names = [name for kind in KINDS for name in cases(kind)]
    assert all(name.removeprefix("test_")[0].lower() in ascii_lowercase for name in names)
    for pattern in ERRORS:
        assert any(fnmatchcase(name, pattern) for name in names), pattern


def test_operators_of_networks_pass_but_random_ones(suites):
    chosen = json.loads((suites / "onnx-backend" / "core_node_tests.json").read_text())
    names = {name for group in chosen.values() for name in group}
    errors = {error for name in names if (error := expected(name)) is not None}
    assert sum(expected(name) is None for name in names) >= 500
    assert errors == {"it is in training mode"}
