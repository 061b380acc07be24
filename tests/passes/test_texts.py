"""What every pass makes of small graphs: the cases of tests/passes/texts."""

import re

import pytest
from pass_texts import (
    FOLDER,
    UNCHANGED,
    assert_same_function,
    complete,
    outcome,
    passes,
    read_cases,
)  # fmt: skip

from nnef_hw.ir import verify
from nnef_hw.passes.pipeline import phases

PASSES = passes()
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_graph_and_what_becomes_of_it(case, rng):
    graph = case.graph()
    verify(graph)
    result, text = outcome(PASSES[case.path.stem], graph)
    assert case.after, f"{case} does not say what becomes of it; `make passes` writes it"
    assert text == case.expected()
    if result is not None:
        assert_same_function(graph, result, rng)


def test_every_pass_of_the_pipeline_has_a_name_here():
    kinds = {type(each) for phase in phases() for each in phase.passes}
    assert kinds <= {type(rewrite) for rewrite in PASSES.values()}


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_cases_that_it_rewrites_and_leaves_alone(name):
    afters = [case.after == UNCHANGED for case in read_cases(FOLDER / f"{name}.txt")]
    assert {True, False} == set(afters)


def test_every_file_belongs_to_a_pass_and_every_title_to_one_case():
    assert {case.path.stem for case in CASES} == PASSES.keys()
    assert len({str(case) for case in CASES}) == len(CASES)


def test_what_is_missing_is_written(tmp_path):
    whole = (FOLDER / "lower_clamp.txt").read_text()
    path = tmp_path / "lower_clamp.txt"
    path.write_text(re.sub(r"(?s)\n--\n.*?(\n== |\Z)", r"\n--\n\1", whole))
    assert len(path.read_text()) < len(whole) - 200
    complete(path, PASSES["lower_clamp"])
    assert path.read_text() == whole
