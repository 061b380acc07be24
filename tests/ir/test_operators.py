import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nnef_hw
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.evaluation.operators import standard_operators
from nnef_hw.ir import Node, Trait, verify
from nnef_hw.ir.operators import (
    CanonicalOperator,
    ConvAttributes,
    FactorAttributes,
    PadAttributes,
    PerOperator,
    PoolAttributes,
    SliceAttributes,
    WeightsAttributes,
    canonical_operators,
    operator,
)
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


def canonical_node(op, shape, **attrs):
    """Simplify one operator; return its graph and its node."""
    g = GraphBuilder()
    graph = simplify(g.build(g.op(op, g.input("x", shape), name="y", **attrs)))
    [node] = [node for node in graph.nodes if node.op == op]
    return graph, node


POOL = {
    "size": [1, 1, 2, 3],
    "stride": [1, 1, 2, 1],
    "dilation": [1, 1, 1, 2],
    "padding": [(0, 0), (0, 0), (1, 0), (0, 2)],
    "border": "ignore",
}
PAD = {"padding": [(0, 0), (0, 0), (1, 2), (3, 4)], "border": "constant", "value": 0.5}
SLICE = {"axes": [2], "begin": [1], "end": [3], "stride": [1]}


def test_a_pool_is_read_as_one_of_rows_and_columns():
    _, node = canonical_node("max_pool", [1, 2, 6, 6], **POOL)
    assert node.attributes(PoolAttributes) == PoolAttributes(
        size=(2, 3), stride=(2, 1), dilation=(1, 2), padding=((1, 0), (0, 2)), border="ignore"
    )
    assert node.attributes(PoolAttributes).taps == 6


def test_a_convolution_of_a_signal_is_read_as_one_of_an_image():
    g = GraphBuilder()
    filter_, bias = np.ones((4, 1, 3)), np.zeros((1, 4))
    y = g.conv(g.input("x", [1, 2, 8]), filter_, bias, groups=2, padding=[(2, 1)], stride=2)
    [node] = [node for node in simplify(g.build(y)).nodes if node.has(Trait.WEIGHTS)]
    assert node.attributes(ConvAttributes) == ConvAttributes(
        groups=2, stride=(2, 1), dilation=(1, 1), padding=((2, 1), (0, 0)), border="constant"
    )
    assert node.attributes(WeightsAttributes).groups == 2


def test_a_linear_layer_is_one_group():
    assert Node("linear", ("x",), ("y",)).attributes(WeightsAttributes).groups == 1


def test_moves_are_read_as_what_they_do():
    _, pad = canonical_node("pad", [1, 2, 6, 6], **PAD)
    assert pad.attributes(PadAttributes) == PadAttributes(padding=((1, 2), (3, 4)), value=0.5)
    _, part = canonical_node("slice", [1, 2, 6, 6], **SLICE)
    assert part.attributes(SliceAttributes) == SliceAttributes(axis=2, begin=1, end=3)
    _, larger = canonical_node("nearest_upsample", [1, 2, 6, 6], factor=[2, 3])
    assert larger.attributes(FactorAttributes) == FactorAttributes(factor=(2, 3))


def test_attributes_of_another_operator_are_not_read():
    with pytest.raises(AssertionError, match="conv has no PoolAttributes"):
        Node("conv", ("x",), ("y",), POOL).attributes(PoolAttributes)
    with pytest.raises(AssertionError, match="relu has no parsed attributes"):
        Node("relu", ("x",), ("y",)).attributes(WeightsAttributes)


@pytest.mark.parametrize(
    ("op", "attrs", "wrong", "message"),
    [
        ("max_pool", POOL, {"size": [1, 2, 2, 3]}, "y: size extends over batch or channels"),
        ("max_pool", POOL, {"stride": [1, 1, 2]}, "y: [2] are not a pair"),
        ("max_pool", POOL, {"padding": [(0, 0), (0, 1), (0, 0), (0, 0)]}, "y: padding of batch"),
        ("pad", PAD, {"border": "replicate"}, "y: border replicate"),
        ("pad", PAD, {"padding": [(0, 0), (0, 0), (1, 1), (-1, 1)]}, "y: padding [(1, 1), (-1, 1)"),
        ("slice", SLICE, {"end": [0]}, "y: a slice from 1 to 0"),
        ("slice", SLICE, {"stride": [2]}, "y: a slice with stride 2"),
        ("slice", SLICE, {"axes": [2, 3]}, "y: a slice along several axes"),
    ],
)
def test_a_form_that_is_not_canonical_is_refused(op, attrs, wrong, message):
    graph, node = canonical_node(op, [1, 2, 6, 6], **attrs)
    with pytest.raises(AssertionError, match=re.escape(message)):
        verify(graph.replaced(nodes=(node.with_attrs(**wrong),)))


@pytest.mark.parametrize(
    "package", ["ir", "quantize", "reference", "streaming", "codegen", "report", "run", "flow"]
)
def test_nobody_but_passes_compares_operators_with_a_list_of_names(package):
    for path in Path(nnef_hw.__path__[0], package).rglob("*.py"):
        found = re.findall(r"\.op (?:not )?in \W*\w+", path.read_text())
        assert not found, f"{path}: ask for a trait"
