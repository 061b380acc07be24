"""The IR chapter: what graphs may look like, and what is said of those that do not."""

import re

import numpy as np
import onnx
import pytest

from nnef_hw.errors import ErrorGroup, ModelError, UnsupportedError, UsageError
from nnef_hw.frontend import load
from nnef_hw.reference import run_float
from nnef_hw.report.inspection import inspect_model

RELU = "net (float[1,4] x) => (float[1,4] y) { y = Relu(x) }"


def problems(error):
    """Return the reasons of one or several errors."""
    return [each.reason for each in getattr(error, "errors", [error])]


def test_nodes_keep_names_and_say_where_they_stand(read):
    graph = read("net (float[1,4] x) => (float[1,4] y) { h = Relu(x)  y = Tanh(h) }")
    assert [(node.op, node.inputs, node.outputs) for node in graph.nodes] == [
        ("relu", ("x",), ("h",)),
        ("tanh", ("h",), ("y",)),
    ]
    assert graph.nodes[1].location.file.endswith("model.onnx")
    assert graph.nodes[1].location.text == "Tanh 'y'"


def test_attributes_are_the_decimal_numbers_their_author_wrote(read):
    graph = read("net (float[1,4] x) => (float[1,4] y) { y = LeakyRelu <alpha = 0.1> (x) }")
    assert graph.nodes[0].attrs == {"alpha": 0.1}


def test_names_become_identifiers(read, parse):
    model = parse(RELU)
    model.graph.input[0].name = model.graph.node[0].input[0] = "serving/in:0"
    model.graph.output[0].name = model.graph.node[0].output[0] = "/fc.1/Relu"
    graph = read(model)
    assert (graph.inputs, graph.outputs) == (("serving_in_0",), ("fc_1_Relu",))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "{ y = Add(x, h)  z = Neg(y)  h = Relu(z) }",
            "Add 'y' reads 'h', which is computed of itself: h -> y -> z -> h; make what a step",
        ),
        ("{ y = Relu(h) }", "Relu 'y' reads 'h', which nothing defines"),
        ("{ h = Relu(x) }", "the graph returns 'y', which nothing defines"),
        ("{ h = Relu(x)  h = Tanh(x)  y = Relu(h) }", "the value 'h' is defined twice"),
        ("{ x = Relu(x)  y = Relu(x) }", "the value 'x' is defined twice"),
    ],
    ids=["cyclic", "undefined", "no_result", "assigned_twice", "input_assigned"],
)
def test_graphs_have_no_cycles_and_single_assignment(read, text, reason):
    with pytest.raises(ModelError, match=re.escape(reason)):
        read(f"net (float[1,4] x) => (float[1,4] y) {text}")


def test_every_unsupported_node_is_listed(read):
    with pytest.raises(ErrorGroup) as caught:
        read(
            """net (float[1,4] x) => (float[1,4] y) {
              a = Foo(x)
              b = com.acme.Bar(a)
              c = Relu(b)
              [last] y = Det(c)
            }""",
            imports=', "com.acme" : 3',
        )
    assert problems(caught.value) == [
        "Foo 'a': there is no such operator in opset 21 of the domain 'ai.onnx'",
        "com.acme.Bar 'b': there is no such operator in opset 3 of the domain 'com.acme'",
        "Det 'last' of opset 21: the operator is not supported",
    ]


def test_a_domain_must_be_imported(read):
    with pytest.raises(UnsupportedError, match=r"the domain 'com\.acme' is not imported"):
        read("net (float[1,4] x) => (float[1,4] y) { y = com.acme.Foo(x) }")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"opset": 0}, "the model uses opset 0, but only 1 to"),
        ({"opset": 999}, "the model uses opset 999"),
        ({"ir": 99}, "the model has IR version 99"),
    ],
)
def test_versions_have_limits(read, options, reason):
    with pytest.raises(UnsupportedError, match=reason):
        read(RELU, **options)


def test_a_removed_operator_is_refused(read):
    text = "net (float[1,1,2,2] x, float[4] s) => (float[1,1,4,4] y) { y = Upsample(x, s) }"
    with pytest.raises(UnsupportedError, match="the operator was removed in opset 10"):
        read(text, opset=11)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("y = Relu(x, x)", "Relu 'y': it has 2 inputs, but takes 1"),
        ("y = Relu <alpha = 1.0> (x)", "Relu 'y': there is no attribute 'alpha' in opset 21"),
        ("y = Elu <alpha = 1> (x)", "Elu 'y': the attribute 'alpha' is not of type FLOAT"),
        ("y = Concat(x, x)", "Concat 'y': the attribute 'axis' is missing"),
        ("y = MatMul(, x)", "MatMul 'y': input 0 is missing"),
        ("y = Softmax <axis = 2> (x)", "Softmax 'y': axis 2 is not in -2..1"),
        ("y = MatMul(x, x)", "MatMul 'y': matmul"),
    ],
)
def test_a_node_must_fit_its_operator(read, node, reason):
    with pytest.raises(ModelError, match=re.escape(reason)):
        read(f"net (float[1,4] x) => (float[1,4] y) {{ {node} }}")


def test_metadata_keys_are_unique(read, parse):
    model = parse(RELU)
    for _ in range(2):
        model.metadata_props.add(key="author", value="me")
    with pytest.raises(ModelError, match="the metadata key 'author' is defined twice"):
        read(model)


def test_a_domain_has_one_version(read, parse):
    model = parse(RELU)
    model.opset_import.add(domain="ai.onnx", version=13)
    with pytest.raises(ModelError, match=r"'ai.onnx' is imported in the versions 21 and 13"):
        read(model)


def test_an_initializer_may_be_an_input_too(read):
    graph = read(
        """net (float[1,2] x, float[2] w = {1, 2}) => (float[1,2] y) <float[2] b = {3, 4}> {
          h = Mul(x, w)  y = Add(h, b)
        }"""
    )
    assert graph.inputs == ("x",)
    assert {tensor.label for tensor in graph.tensors.values()} == {None, "w", "b"}
    np.testing.assert_array_equal(run_float(graph, {"x": np.ones((1, 2))})["y"], [[4, 6]])


def test_sparse_initializers_are_filled_with_zeros(read, parse):
    model = parse("net (float[1,4] x) => (float[1,4] y) { y = Add(x, w) }")
    values = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [5.0, 7.0])
    indices = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [2], [0, 3])
    sparse = onnx.helper.make_sparse_tensor(values, indices, [1, 4])
    model.graph.sparse_initializer.append(sparse)
    y = run_float(read(model), {"x": np.zeros((1, 4))})["y"]
    np.testing.assert_array_equal(y, [[5, 0, 0, 7]])


@pytest.mark.parametrize(
    ("result", "ops"), [("x", ["copy"]), ("c", []), ("h", ["relu"]), ("i", ["relu"])]
)
def test_a_graph_may_return_anything(read, result, ops):
    graph = read(
        f"""net (float[1,2] x) => (float[1,2] {result}) {{
          h = Relu(x)  i = Identity(h)  c = Constant <value = float[1,2] {{3, 4}}> ()
        }}"""
    )
    assert [node.op for node in graph.nodes] == ops
    x = np.array([[1.0, 2.0]])
    expected = {"c": [[3, 4]]}.get(result, x)
    np.testing.assert_array_equal(run_float(graph, {"x": x})[graph.outputs[0]], expected)


def test_optional_outputs_may_be_left_out(read):
    graph = read(
        """net (float[3,1,2] x) => (float[1,1,4] h)
        <float[1,4,2] w = {1,1,1,1,1,1,1,1}, float[1,4,4] r = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {
          , h = RNN <hidden_size = 4> (x, w, r)
        }"""
    )
    x = np.arange(6.0).reshape(3, 1, 2)
    np.testing.assert_allclose(run_float(graph, {"x": x})["h"], np.tanh(np.full((1, 1, 4), 9.0)))


class TestSymbols:
    TEXT = "net (float[{x}] x, float[{z}] z) => (float[?] y) {{ y = Add(x, z) }}"

    def shapes(self, read, x, z, **dims):
        graph = read(self.TEXT.format(x=x, z=z), dims=dims)
        return [graph.tensor(name).shape for name in graph.inputs]

    def test_the_batch_is_one(self, read):
        assert self.shapes(read, "N,4", "N,4") == [(1, 4), (1, 4)]

    def test_the_batch_can_be_given(self, read):
        assert self.shapes(read, "N,4", "N,4", N=3) == [(3, 4), (3, 4)]

    def test_other_symbols_must_be_given(self, read):
        message = (
            r"the shape \[N, T, 4\] of the input 'x' is not known; give the numbers .*: --dim T=X"
        )
        with pytest.raises(UsageError, match=message):
            self.shapes(read, "N,T,4", "1,1,4")
        assert self.shapes(read, "N,T,4", "1,1,4", T=5) == [(1, 5, 4), (1, 1, 4)]

    def test_a_symbol_that_is_not_only_the_batch_must_be_given(self, read):
        with pytest.raises(ErrorGroup, match="--dim N=X") as caught:
            self.shapes(read, "N,4", "1,N")
        assert [type(error) for error in caught.value.errors] == [UsageError] * 2
        assert self.shapes(read, "N,4", "1,N", N=4) == [(4, 4), (1, 4)]

    def test_extents_without_a_name_are_called_after_their_input(self, read):
        with pytest.raises(UsageError, match=r"--dim x.1=X"):
            self.shapes(read, "?,?", "1,4")
        assert self.shapes(read, "?,?", "1,4", **{"x.1": 4}) == [(1, 4), (1, 4)]

    def test_unknown_symbols_are_refused(self, read):
        with pytest.raises(
            UsageError, match="no input's shape has a symbol 'M'; the symbols are N"
        ):
            self.shapes(read, "N,4", "N,4", M=3)


class TestFunctions:
    MODEL = """net (float[1,4] x) => (float[1,4] y) {{ y = my.f {attr} (x) }}
    <domain: "my", opset_import: ["" : 21]>
    f <a: float = 2.0> (v, w) => (r) {{
      c = Constant <value_float: float = @a> ()
      h = Mul(v, c)
      r = {body}
    }}"""

    @pytest.mark.parametrize(("attr", "factor"), [("", 2.0), ("<a = 3.0>", 3.0)])
    def test_functions_are_inlined(self, read, attr, factor):
        graph = read(self.MODEL.format(attr=attr, body="Relu(h)"), imports=', "my" : 1')
        assert [node.op for node in graph.nodes] == ["mul", "relu"]
        assert graph.outputs == ("y",)
        x = np.array([[-1.0, 0.0, 1.0, 2.0]])
        np.testing.assert_array_equal(run_float(graph, {"x": x})["y"], np.maximum(x * factor, 0))

    def test_arguments_left_out_are_left_out_inside(self, read):
        text = self.MODEL.format(attr="", body="Clip(h, w)")
        assert [node.op for node in read(text, imports=', "my" : 1').nodes] == ["mul"]

    def test_a_function_must_not_call_itself(self, read):
        text = self.MODEL.format(attr="", body="my.f(h)")
        with pytest.raises(UnsupportedError, match="nested more than 32 deep"):
            read(text, imports=', "my" : 1')

    def test_errors_inside_name_the_call(self, read):
        text = self.MODEL.format(attr="", body="Det(h)")
        with pytest.raises(UnsupportedError, match=r"my.f 'y': Det 'r' of opset 21: the operator"):
            read(text, imports=', "my" : 1')


class TestSubgraphs:
    @pytest.mark.parametrize("extent", [1, 2])
    def test_a_condition_on_a_shape_is_decided(self, read, extent):
        """Exporters squeeze an axis if it has one element, and branches differ in rank."""
        text = f"""net (float[1,{extent},2] x) => (float[N] y)
          <int64[1] one = {{1}}, int64[1] two = {{2}}> {{
          shape = Shape(x)
          extent = Gather <axis = 0> (shape, one)
          single = Equal(extent, one)
          z = If (single) <then_branch = g () => (p) {{ p = Squeeze(x, one) }},
                           else_branch = h () => (p) {{ p = Neg(x) }}>
          y = Relu(z)
        }}"""
        graph = read(text)
        x = np.array([-2.0, 2.0] if extent == 1 else [2.0, -2.0, 2.0, -2.0])
        found = run_float(graph, {"x": x.reshape(1, 1, extent, 2)})["y"]
        expected = np.maximum(x if extent == 1 else -x, 0)
        np.testing.assert_array_equal(found.ravel(), expected)
        assert graph.tensor("y").shape == ((1, 2) if extent == 1 else (1, 2, 2))

    IF = """net (float[1,2] x{inputs}) => (float[1,2] y) <bool c0 = {{1}}> {{
      {before}
      y = If ({condition}) <
        then_branch = g () => (float[1,2] t) {{ t = Relu(x) }},
        else_branch = h () => (float[1,2] e) {{ e = Det(x) }}
      >
    }}"""

    def test_a_constant_condition_chooses(self, read):
        text = self.IF.format(inputs="", before="c = Identity(c0)", condition="c")
        assert [node.op for node in read(text).nodes] == ["relu"]

    def test_shapes_decide_conditions(self, read):
        before = "s = Shape(x)  n = ReduceSum<keepdims=0>(s)  l = CastLike(s, s)  c = Greater(n, z)"
        text = self.IF.format(inputs="", before=before, condition="c")
        text = text.replace("<bool c0 = {1}>", "<int64 z = {2}>")
        assert [node.op for node in read(text).nodes] == ["relu"]

    def test_a_condition_of_the_run_is_refused(self, read):
        text = self.IF.format(inputs=", bool c", before="", condition="c")
        message = r"If 'y' of opset 21: the condition 'c' is computed when the network runs"
        with pytest.raises(UnsupportedError, match=message):
            read(text)

    LOOP = """net (float[1,2] x) => (float[1,2] y, float[3,1,2] all)
    <int64 count = {{{count}}}, bool go = {{1}}> {{
      y, all = Loop (count, {go}, x) <
        body = b (int64 i, bool c, float[1,2] v) => (bool d, float[1,2] w, float[1,2] k) {{
          d = {condition}
          f = Cast <to = 1> (i)
          w = Add(v, f)
          k = Mul(w, x)
        }}
      >
    }}"""

    def test_loops_with_a_constant_number_of_turns_unroll(self, read):
        graph = read(self.LOOP.format(count=3, go="go", condition="Identity(c)"))
        x = np.array([[1.0, 2.0]])
        y = run_float(graph, {"x": x})
        np.testing.assert_array_equal(y["y"], x + 3)
        expected = np.stack([x * x, (x + 1) * x, (x + 3) * x])
        np.testing.assert_array_equal(y["all"].reshape(3, 1, 2), expected)

    @pytest.mark.parametrize(
        ("count", "condition", "reason"),
        [
            (5000, "Identity(c)", "it runs more than 1024 iterations"),
            (0, "Identity(c)", "it collects values, but never runs"),
            (3, "Cast <to = 9> (z)", "its condition is computed when the network runs"),
        ],
    )
    def test_other_loops_are_refused(self, read, count, condition, reason):
        text = self.LOOP.format(count=count, go="", condition=condition)
        text = text.replace("f = Cast", "s = ReduceSum<keepdims=0>(v)  f = Cast")
        text = text.replace(
            "d = Cast <to = 9> (z)", "z = ReduceSum<keepdims=0>(v)  d = Cast<to=9>(z)"
        )
        with pytest.raises(UnsupportedError, match=reason):
            read(text)

    def test_scans_become_loops_that_see_what_is_around_them(self, read):
        graph = read(
            """net (float[3,2] x, float[2] s, float[2] b) => (float[2] last, float[2,3] all) {
              last, all = Scan (s, x) <
                num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
                body = g (float[2] state, float[2] v) => (float[2] next, float[2] out) {
                  h = Mul(state, b)  next = Add(h, v)  out = Identity(next)
                }
              >
            }"""
        )
        assert "scan" in [node.op for node in graph.nodes]
        x, s, b = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0]), np.array([0.5, 2.0])
        states = [s]
        for row in x[::-1]:
            states.append(states[-1] * b + row)
        y = run_float(graph, {"x": x, "s": s, "b": b})
        np.testing.assert_array_equal(y["last"], states[-1])
        np.testing.assert_array_equal(y["all"], np.stack(states[1:], axis=1))


def test_an_extent_of_minus_one_is_open(write, parse):
    model = parse("net (float[7,4] x) => (float[7,4] y) { y = Relu(x) }")
    for axis in range(2):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = -1
    path = write(model)
    assert load(path, dims={"x.1": 4}).tensor("x").shape == (1, 4)
    assert load(path, dims={"x.0": 3, "x.1": 4}).tensor("x").shape == (3, 4)
    with pytest.raises(UsageError, match=r"\[\?, \?\] of the input 'x' is not known.*--dim x.1=X"):
        load(path)


def test_weights_in_constant_nodes_are_parameters(read):
    graph = read(
        "net (float[1,2] z, float[1,2] a) => (float[1,2] y) {"
        " w = Constant <value = float[2,2] {1.0, 2.0, 3.0, 4.0}> ()"
        " p = MatMul(z, w)"
        " y = Add(p, a)"
        "}"
    )
    description = inspect_model(graph)
    assert description.parameters == 4
    assert list(description.inputs) == ["z", "a"]
