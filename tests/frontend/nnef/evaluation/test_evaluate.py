"""What expressions and fragments mean."""

import re

import numpy as np
import pytest

from nnef_hw.errors import ModelError
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor
from nnef_hw.frontend.nnef.evaluation import evaluation
from nnef_hw.frontend.nnef.evaluation.rules import LENIENT
from nnef_hw.frontend.nnef.language.parser import parse_document
from nnef_hw.frontend.nnef.lower import lower
from nnef_hw.ir import verify
from nnef_hw.reference import run_float

DOCUMENT = """version 1.0;
extension KHR_enable_fragment_definitions, KHR_enable_operator_expressions;
{fragments}
graph net({inputs}) -> ({outputs})
{{
    x = external(shape = [1, 4]);
    {body}
}}
"""


def graph_of(*body, fragments="", inputs="x", outputs="y", **options):
    text = DOCUMENT.format(
        fragments=fragments, inputs=inputs, outputs=outputs, body="\n    ".join(body)
    )
    graph = lower(parse_document(text, "graph.nnef"), **options)
    verify(graph)
    return graph


def operations(graph):
    return [f"{node.name} = {node.op}({', '.join(node.inputs)})" for node in graph.nodes]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("2 ^ 3 ^ 2", 64),
        ("2 * 3 ^ 2", 18),
        ("-2 ^ 2", -4),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("+3", 3),
        ("9223372036854775806 + 1", 9223372036854775807),
        ("-9223372036854775807 - 1", -9223372036854775808),
        ("(-1) ^ -3", -1),
        ("1 if 2 > 1 else 0", 1),
        ("1 if false else 2 if false else 3", 3),
        ("[5, 6, 7][1]", 6),
        ("[5, 6, 7][1:][1]", 7),
        ("[1, 2][1 / 0] if false else 4", 4),
        ("(5, 6)[1]", 6),
        ("length_of([1, 2, 3])", 3),
        ("length_of('ab' + 'c' * 3)", 5),
        ("length_of('abcd'[1:3])", 2),
        ("length_of([for i in [1, 2, 3], j in [4, 5, 6] if i + j != 7 yield i * j])", 2),
        ("[for (i, j) in [(1, 2), (3, 4)] yield i * j][1]", 12),
        ("([1] * 2 + [7])[2]", 7),
        ("length_of([] + [1] * 0)", 0),
        ("range_of('abc')[2]", 2),
        ("integer(3.7)", 3),
        ("integer(-3.7)", -4),
        ("integer('-12')", -12),
        ("integer(true) + integer('a' == 'a')", 2),
        ("1 if logical('') || logical(0.0) else 2", 2),
        ("1 if !(1 in [2, 3]) && ('a' in ['a']) else 2", 1),
        ("1 if (1, 'a') in [(1, 'b'), (1, 'a')] else 2", 1),
        ("1 if true || [true][1] else 2", 1),
        ("1 if string(1.5) + string(true) == '1.5true' else 2", 1),
    ],
)
def test_integers(expression, value):
    graph = graph_of(f"k = constant<integer>(shape = [1], value = [{expression}]); y = copy(x);")

    assert graph.constant("k").tolist() == [value]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1.0 / 4.0", 0.25),
        ("2.0 ^ -1.0", 0.5),
        ("-2.0 ^ 2.0", -4.0),
        ("1e-1 + 5.", 5.1),
        ("scalar(3) / 2.0", 1.5),
        ("scalar('2.5e1')", 25.0),
        ("scalar(true)", 1.0),
        ("-0.5 if 1.0 < 2.0 else 0.5", -0.5),
    ],
)
def test_scalars(expression, value):
    graph = graph_of(f"k = constant(shape = [1], value = [{expression}]); y = copy(x);")

    assert graph.constant("k") == np.float32(value)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("scalar(9223372036854775807 + 1)", "9223372036854775807 + 1 does not fit into 64 bits"),
        ("scalar(2 ^ 1000000000)", "2 ^ 1000000000 does not fit into 64 bits"),
        ("1e300 * 1e300", "1e+300 * 1e+300 is too large for a scalar"),
        ("0.0 / 0.0", "0.0 / 0.0 divides by zero"),
        ("(-1.0) ^ 0.5", "-1.0 ^ 0.5 is not a real number"),
        ("scalar(integer(1e300))", "1e+300 does not fit into 64 bits"),
        ("scalar(length_of('a' * 10000000))", "1 items 10000000 times are more than 1048576"),
        ("scalar(length_of('a' * -1))", "a string cannot be repeated -1 times"),
        ("scalar('1,5')", "the string '1,5' is not a scalar"),
        ("scalar('abc'[3])", "the index 3 is outside of the string of length 3"),
        ("scalar(length_of([1, 2][-1:]))", "the range [-1:2] is outside of the array of length 2"),
    ],
)
def test_values_that_do_not_exist(expression, reason):
    with pytest.raises(ModelError, match=re.escape(reason)):
        graph_of(f"y = x * ({expression});")


def test_operators_on_tensors_are_nodes_called_after_the_statement():
    graph = graph_of("y = -x ^ 2.0 * 3.0 + (x - 1.0) / x;")

    assert operations(graph) == [
        "y_pow = pow(x, y_pow_y)",
        "y_neg = neg(y_pow)",
        "y_mul = mul(y_neg, y_mul_y)",
        "y_sub = sub(x, y_sub_y)",
        "y_div = div(y_sub, x)",
        "y = add(y_mul, y_div)",
    ]


@pytest.mark.parametrize(
    ("expression", "op"),
    [
        ("x < 0.0", "lt"),
        ("x <= 0.0", "le"),
        ("x > 0.0", "gt"),
        ("x >= 0.0", "ge"),
        ("x == 0.0", "eq"),
        ("x != 0.0", "ne"),
        ("!b", "not"),
        ("b && true", "and"),
        ("b || false", "or"),
        ("+b", "copy"),
    ],
)
def test_operators_with_logical_results(expression, op):
    graph = graph_of("b = lt(x, 1.0);", f"y = {expression};")

    assert graph.nodes[-1].op == op
    assert graph.tensor("y").dtype == "logical"


def test_identifiers_keep_their_names():
    graph = graph_of(
        "a, b = twice(x);",
        "[c, d] = [for f in [1.0, 2.0] yield f * a];",
        "e = [neg(c), exp(d)][1];",
        "same = e;",
        "y = same;",
        fragments="fragment twice(a: tensor<scalar>) -> (b: tensor<scalar>, c: tensor<scalar>)"
        "{ t = relu(a); b = t; c = t + t; }",
    )

    assert operations(graph) == [
        "a = relu(x)",
        "b = add(a, a)",
        "c = mul(c_x, a)",
        "d = mul(d_x, a)",
        "e_neg = neg(c)",
        "e = exp(d)",
        "y = copy(e)",
    ]


def test_two_identifiers_of_one_tensor():
    graph = graph_of(
        "y, z = both(x);",
        outputs="y, z",
        fragments="fragment both(a: tensor<scalar>) -> (b: tensor<scalar>, c: tensor<scalar>)"
        "{ t = relu(a); b = t; c = t; }",
    )

    assert operations(graph) == ["y = relu(x)", "z = copy(y)"]


RECURSIVE = """fragment steps(x: tensor<scalar>, h: tensor<scalar>, left: integer)
-> (a: tensor<scalar>, b: tensor<scalar>)
{
    z = x + h;
    a, b = steps(x, z, left = left - 1) if left > 1 else (z, h);
}"""


def test_recursion_and_tuples():
    graph = graph_of("y, z = steps(x, 0.0, left = 3);", outputs="y, z", fragments=RECURSIVE)
    result = run_float(graph, {"x": np.ones((1, 4))})

    assert operations(graph) == [
        "y_z = add(x, y_z_y)",
        "z = add(x, y_z)",
        "y = add(x, z)",
    ]
    assert (result["y"] == 3).all()
    assert (result["z"] == 2).all()


def test_recursion_may_be_deep():
    graph = graph_of("y, z = steps(x, 0.0, left = 900);", outputs="y, z", fragments=RECURSIVE)

    assert len(graph.nodes) == 900


def test_long_expressions_take_no_longer_than_short_ones():
    graph = graph_of(f"y = {' + '.join(['x'] * 90)};")

    assert len(graph.nodes) == 89


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y = f(x, n = 40);", "fragments and comprehensions take more than 1000 steps"),
        ("y = g(x, s = 'a', n = 40);", "1048576 and 1048576 items are more than 1048576"),
        (
            "y = x * scalar([for i in [0] * 99 yield length_of([for j in [0] * 99 yield j])][0]);",
            "fragments and comprehensions take more than 1000 steps",
        ),
    ],
    ids=["doubling", "growing", "nested loops"],
)
def test_documents_cannot_run_for_ever(monkeypatch, body, reason):
    monkeypatch.setattr(evaluation, "_MAX_STEPS", 1000)
    with pytest.raises(ModelError, match=reason):
        graph_of(
            body,
            fragments="fragment f(a: tensor<scalar>, n: integer) -> (b: tensor<scalar>) "
            "{ b = f(f(a, n = n - 1), n = n - 1) if n > 0 else a; } "
            "fragment g(a: tensor<scalar>, s: string, n: integer) -> (b: tensor<scalar>) "
            "{ b = g(a, s = s + s, n = n - 1) if n > 0 else a; }",
        )


def test_nodes_of_fragments_are_located_in_the_graph():
    graph = graph_of(
        "y = 2.0 * f(x);",
        fragments="fragment f(a: tensor<scalar>) -> (b: tensor<scalar>) { b = relu(a + 1.0); }",
    )

    assert operations(graph) == [
        "y_f_add = add(x, y_f_add_y)",
        "y_f = relu(y_f_add)",
        "y = mul(y_x, y_f)",
    ]
    assert {str(node.location) for node in graph.nodes} == {"graph.nnef:7:5"}


def test_errors_in_fragments_say_where_it_was_called():
    with pytest.raises(ModelError) as info:
        graph_of(
            "a = relu(x);",
            "y = outer(a);",
            fragments="fragment inner(a: tensor<scalar>) -> (b: tensor<scalar>)\n"
            "{ b = matmul(a, a); }\n"
            "fragment outer(a: tensor<scalar>) -> (b: tensor<scalar>)\n{ b = inner(a); }",
        )

    assert str(info.value.location) == "graph.nnef:4:7"
    assert info.value.reason.endswith(
        "4 is not 1, in fragment 'inner' called in line 6, in fragment 'outer' called in line 11"
    )


GENERIC = "fragment same<?>(a: tensor<?>, b: ? ) -> (c: tensor<?>) { c = select(true, a, b); }"


@pytest.mark.parametrize(
    ("argument", "other", "dtype"),
    [("x", "1.0", "scalar"), ("x < 0.0", "true", "logical"), ("cast<integer>(x)", "1", "integer")],
)
def test_generic_fragments_take_the_type_of_their_arguments(argument, other, dtype):
    graph = graph_of(f"y = same({argument}, b = {other});", fragments=GENERIC)

    assert graph.tensor("y").dtype == dtype


def test_generic_types_are_given_or_have_defaults():
    graph = graph_of(
        "a = filled(shape = [2]);",
        "b = filled<integer>(shape = [2]);",
        "y = copy(x);",
        fragments="fragment filled<? = scalar>(shape: integer[]) -> (a: tensor<?>) "
        "{ n = [for shape in shape yield shape]; "
        "a = cast<?>(constant<integer>(shape = shape + [for n in n if n > 2 yield n], "
        "value = [n[0]])); }",
    )

    assert [graph.tensor(name).dtype for name in "ab"] == ["scalar", "integer"]


def test_arrays_of_compounds_may_have_one_name():
    graph = graph_of(
        "y = tree(x, n = 3);",
        fragments="fragment tree(a: tensor<scalar>, n: integer) -> (b: tensor<scalar>) "
        "{ c = copy_n(a, times = n); b = concat([for i in range_of(c) "
        "yield c[i] * scalar(i)], axis = 1); }",
    )

    assert graph.tensor("y").shape == (1, 12)
    assert [node.op for node in graph.nodes] == ["copy_n", "mul", "mul", "mul", "concat"]


def test_attributes_of_one_call_are_not_those_of_the_next():
    graph = graph_of(
        "y = cut(x, begin = [-3]);",
        fragments="fragment cut(a: tensor<scalar>, begin: integer[]) -> (b: tensor<scalar>) "
        "{ c = slice(a, axes = [1], begin = begin, end = [0]); "
        "b = slice(c, axes = [1], begin = begin, end = [0]); }",
    )

    assert graph.tensor("y").shape == (1, 3)


@pytest.fixture
def load_with_state(tmp_path):
    def load(body, outputs="y"):
        text = DOCUMENT.format(fragments="", inputs="x", outputs=outputs, body=body)
        (tmp_path / "graph.nnef").write_text(text)
        for label, value in {"v": 1.0, "w": 2.0}.items():
            data = np.full((1, 4), value, np.float32)
            (tmp_path / f"{label}.dat").write_bytes(write_tensor(data))
        return load_nnef(tmp_path)

    return load


def test_updates_make_states(load_with_state):
    graph = load_with_state(
        "v = variable(shape = [1, 4], label = 'v'); s = v + x; u = update(v, s); y = 2.0 * u;"
    )
    result = run_float(graph, {"x": np.ones((3, 1, 4))})["y"]

    assert graph.states["v"].result == "s"
    assert graph.states["v"].label == "v"
    assert graph.tensor("v").data is None
    assert result[:, 0, 0].tolist() == [4, 6, 8]


def test_states_may_be_swapped(load_with_state):
    graph = load_with_state(
        "v = variable(shape = [1, 4], label = 'v'); w = variable(shape = [1, 4], label = 'w');"
        "a = update(v, w); b = update(w, v); y = v + 0.0 * x;"
    )
    result = run_float(graph, {"x": np.ones((3, 1, 4))})["y"]

    assert (graph.states["v"].result, graph.states["w"].result) == ("w", "v")
    assert result[:, 0, 0].tolist() == [1, 2, 1]


def test_variables_of_one_label_are_updated_together(load_with_state):
    graph = load_with_state(
        "v = variable(shape = [1, 4], label = 'v'); w = variable(shape = [1, 4], label = 'V');"
        "y = update(v, v + x); z = copy(w);",
        outputs="y, z",
    )
    result = run_float(graph, {"x": np.ones((3, 1, 4))})

    assert result["z"][:, 0, 0].tolist() == [1, 2, 3]


def test_provisional_fragments_may_result_in_attributes():
    text = DOCUMENT.format(
        fragments="fragment sum_of(items: scalar[]) -> (sum: scalar) "
        "{ sum = items[0] + sum_of(items = items[1:]) if length_of(items) > 0 else 0.0; }",
        inputs="x",
        outputs="y",
        body="y = x * sum_of(items = [0.5, 1.0, 2.0]);",
    )
    graph = lower(parse_document(text, "graph.nnef", lenient=True), rules=LENIENT)

    assert graph.constant("y_y") == 3.5


def test_legacy_documents_know_shapes_and_make_variables_in_fragments():
    text = DOCUMENT.replace(
        "extension KHR_enable_fragment_definitions, KHR_enable_operator_expressions;", ""
    ).format(
        fragments="fragment layer(a: tensor<scalar>, n: integer, scope: string) -> "
        "(b: tensor<scalar>) { w = variable(shape = [n, shape_of(a)[1]], label = scope + '/w'); "
        "b = linear(a, w); }",
        inputs="x",
        outputs="y",
        body="h = layer(x, n = 3, scope = 'one'); y = layer(h, n = 2, scope = 'two');",
    )
    graph = lower(parse_document(text, "graph.nnef", lenient=True), rules=LENIENT)

    assert {tensor.label: tensor.shape for tensor in graph.tensors.values() if tensor.label} == {
        "one/w": (3, 4),
        "two/w": (2, 3),
    }
    assert [node.name for node in graph.nodes] == ["h", "y"]
