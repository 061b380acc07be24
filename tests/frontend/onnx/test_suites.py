"""The onnx wheel's own test cases, with the list of those that pass."""

import json

import pytest
from onnx_cases import cases, run_case
from pass_list import PassList

pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
LISTS = {kind: PassList(f"onnx-{kind}") for kind in KINDS}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in LISTS[kind].passing]
)
def test_case_passes(kind, name, tmp_path_factory):
    case = cases(kind).get(name)
    if case is None:
        pytest.skip("this version of onnx has no such case")
    run_case(case, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("kind", KINDS)
def test_every_case_passes_or_has_a_reason(kind):
    import onnx

    if not onnx.__version__.startswith("1.23."):
        pytest.skip("the lists are of onnx 1.23")
    assert LISTS[kind].missing(cases(kind)) == []


def test_operators_of_networks_pass_but_random_ones(suites):
    chosen = json.loads((suites / "onnx-backend" / "core_node_tests.json").read_text())
    names = {name for group in chosen.values() for name in group}
    failing = names - set(LISTS["node"].passing)
    reasons = {LISTS["node"].exceptions[name] for name in failing}
    assert len(names) - len(failing) >= 500
    assert all("at random" in reason for reason in reasons)
