import re
from dataclasses import replace
from pathlib import Path

import pytest

import nnef_hw
from nnef_hw.frontend.nnef.library import load_library
from nnef_hw.frontend.nnef.operators import standard_operators
from nnef_hw.ir import Node, Trait, verify
from nnef_hw.ir.operators import CanonicalOperator, PerOperator, canonical_operators, operator
from nnef_hw.ir.operators.registry import known_operators
from nnef_hw.passes import simplify
from nnef_hw.testing import GraphBuilder

NAMES = [found.name for found in canonical_operators()]


def test_operators_of_the_float_stage_alone_are_declared_in_a_library():
    declared = {*standard_operators(), *load_library("extended")}
    assert {found.name for found in known_operators()} - {*NAMES} <= declared


def test_canonical_operators_have_the_traits_asked_for():
    joined = canonical_operators(Trait.ARITHMETIC, Trait.ONE_FORMAT)
    assert {found.name for found in joined} == {"max", "min"}
    assert all(isinstance(found, CanonicalOperator) for found in canonical_operators())


def test_nothing_is_known_of_an_operator_that_nobody_asks_about():
    found = operator("moments")
    assert not found.traits
    assert not isinstance(found, CanonicalOperator)


def test_a_node_has_the_traits_of_its_operator():
    assert Node("conv", ("x",), ("y",)).has(Trait.WINDOW)
    assert not Node("linear", ("x",), ("y",)).has(Trait.WINDOW)


@pytest.mark.parametrize("forgotten", NAMES)
def test_an_operator_without_an_answer_is_an_error(forgotten):
    answers = PerOperator[str]("answer")
    answers(*(name for name in NAMES if name != forgotten))("yes")
    with pytest.raises(TypeError, match=re.escape(f"no answer of {forgotten}")):
        answers.require_all()


def test_an_answer_by_trait_is_one_for_every_operator_that_has_it():
    answers = PerOperator[str]("answer")
    answers(Trait.POOL)("window")
    assert {answers[name] for name in ("avg_pool", "box", "max_pool")} == {"window"}
    with pytest.raises(TypeError, match=re.escape("a second answer of box")):
        answers("box")("sum")


def test_an_answer_for_what_is_not_canonical_is_an_error():
    answers = PerOperator[str]("answer")
    with pytest.raises(TypeError, match=re.escape("answer of deconv, which is not canonical")):
        answers("deconv")("no")


def test_a_canonical_node_without_an_attribute_is_refused():
    g = GraphBuilder()
    graph = simplify(g.build(g.op("softmax", g.input("x", [1, 3]), axes=[1], name="y")))
    [node] = graph.nodes
    with pytest.raises(AssertionError, match=re.escape("y: no attribute ['axes']")):
        verify(graph.replaced(nodes=(replace(node, attrs={}),)))


@pytest.mark.parametrize(
    "package", ["ir", "quantize", "reference", "streaming", "codegen", "report", "run", "build"]
)
def test_nobody_but_passes_compares_operators_with_a_list_of_names(package):
    for path in Path(nnef_hw.__path__[0], package).rglob("*.py"):
        found = re.findall(r"\.op (?:not )?in \W*\w+", path.read_text())
        assert not found, f"{path}: ask for a trait"
