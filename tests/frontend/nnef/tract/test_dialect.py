"""Where tract's dialect differs from the specification."""

import json

import numpy as np
import pytest

from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.frontend import load
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor
from nnef_hw.frontend.nnef.reader import detect_dialect
from nnef_hw.frontend.nnef.tract import TRACT
from nnef_hw.reference import run_float

PROPERTIES = """fragment tract_core_properties() -> (properties: (string, tensor<scalar>)[]) {
    properties = [("torch_to_nnef_version", "0.24"), ("n", tract_core_cast(7, to = "i64"))];
}"""


def net(body, inputs="x", outputs="y", shape="[2, 3]"):
    externals = "".join(f"{name} = external(shape = {shape});" for name in inputs.split(", "))
    return f"graph net({inputs}) -> ({outputs}) {{ {externals} {body} }}"


def run(graph, *arrays):
    found = run_float(graph, dict(zip(graph.inputs, arrays, strict=True)))
    return [found[name] for name in graph.outputs]


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ("version 1.0; graph g(x) -> (y) { x = external(shape = [2]); y = relu(x); }",
         "NNEF 1.0.5"),
        (("version 1.0; extension tract_symbol B; "
         "graph g(x) -> (y) { x = external(shape = [2]); y = relu(x); }"), "tract"),
        ("version 1.0; graph g(x) -> (y) { x = external(shape = [2]); y = tract_core_erf(x); }",
         "tract"),
        ((f"version 1.0; {PROPERTIES} "
         "graph g(x) -> (y) { x = external(shape = [2]); y = relu(x); }"),
         "tract (torch_to_nnef)"),
    ],
    ids=["standard", "extension", "operator", "exporter"],
)  # fmt: skip
def test_the_dialect_is_seen_in_the_document(tmp_path, document, name):
    (tmp_path / "graph.nnef").write_text(document)

    assert detect_dialect(tmp_path) == name


def test_fragments_of_the_document_go_before_operators(load_tract):
    graph = load_tract(
        "fragment silu(x: tensor<scalar>) -> (y: tensor<scalar>) { y = 2.0 * x; }"
        + net("y = silu(x);")
    )

    assert [node.op for node in graph.nodes] == ["mul"]


def test_fragments_of_the_document_are_not_seen_by_the_library(load_tract, rng):
    graph = load_tract(
        "fragment clamp(x: tensor<scalar>, a: tensor<scalar>, b: tensor<scalar>) ->"
        " (y: tensor<scalar>) { y = x * 0.0; }"
        + net("y = tract_core_hard_swish(x);")
    )  # fmt: skip
    x = rng.normal(size=(2, 3))

    (y,) = run(graph, x)

    np.testing.assert_allclose(y, x * np.clip(x + 3, 0, 6) / 6, atol=1e-6)


def test_an_attribute_may_be_a_variable(load_tract, tmp_path):
    (tmp_path / "eps.dat").write_bytes(write_tensor(np.float32(0.5)))

    graph = load_tract(
        net("eps = variable<scalar>(label = 'eps', shape = []);"
            "y = l2_normalization(x, axes = [1], epsilon = eps);")
    )  # fmt: skip

    assert graph.nodes[0].attrs["epsilon"] == 0.5


def test_variables_may_stand_in_fragments(load_tract, tmp_path):
    (tmp_path / "w.dat").write_bytes(write_tensor(np.ones((2, 3), np.float32)))

    graph = load_tract(
        "fragment plus(x: tensor<scalar>) -> (y: tensor<scalar>)"
        " { w = variable<scalar>(label = 'w', shape = [2, 3]); y = x + w; }" + net("y = plus(x);")
    )

    assert graph.tensor(graph.nodes[0].inputs[1]).label == "w"


def test_arrays_and_numbers_are_tensors(load_tract):
    graph = load_tract(net("w = [[1.0], [2.0]]; z = x * w; y = z - 1;"))

    assert graph.constant(graph.nodes[0].inputs[1]).tolist() == [[1.0], [2.0]]
    assert graph.tensor(graph.nodes[1].inputs[1]).dtype == "scalar"


def test_infinity_has_a_name(load_tract):
    (y,) = run(load_tract(net("y = max(x, -inf) + 0.0 * x;")), np.ones((2, 3)))

    assert (y == 1).all()


def test_identifiers_may_be_assigned_again(load_tract):
    graph = load_tract(net("y = relu(x); y = y + 1.0; y = exp(y);"))

    assert graph.outputs == ("y",)
    assert [node.op for node in graph.nodes] == ["relu", "add", "exp"]
    assert graph.nodes[-1].outputs == ("y",)


def test_axes_of_elementwise_operators_are_dropped(load_tract):
    assert load_tract(net("y = sigmoid(x, axes = [1]);")).nodes[0].attrs == {}


def test_data_types_in_angle_brackets_do_not_count(load_tract):
    graph = load_tract(net("y = reshape<integer>(x, shape = [-1]);"))

    assert graph.tensor("y").dtype == "scalar"


@pytest.mark.parametrize("bias", ["[1.0, 2.0]", "[[1.0, 2.0]]", "[[[1.0, 2.0]]]"])
def test_dimensions_of_1_do_not_matter_in_a_bias(load_tract, bias):
    graph = load_tract(
        net(f"y = conv(x, [[[0.0]], [[0.0]]], {bias}, padding = [(0, 0)]);", shape="[1, 1, 3]")
    )

    (y,) = run(graph, np.ones((1, 1, 3)))

    assert y.tolist() == [[[1, 1, 1], [2, 2, 2]]]


@pytest.mark.parametrize("output_shape", ["[8, 8]", "[1, 3, 8, 8]", "[]"])
def test_output_shape_of_deconv_may_be_spatial(load_tract, output_shape):
    graph = load_tract(
        "graph net(x, k) -> (y) { x = external(shape = [1, 2, 4, 4]);"
        "k = external(shape = [3, 2, 2, 2]); y = deconv(x, k, stride = [2, 2],"
        f" padding = [(0, 0), (0, 0)], output_shape = {output_shape}); }}"
    )

    assert graph.tensor("y").shape == (1, 3, 8, 8)


@pytest.mark.parametrize(("kind", "dtype"), [
    ("f16", "scalar"), ("f64", "scalar"), ("TDim", "integer"), ("u8", "integer"),
    ("bool", "logical"),
])  # fmt: skip
def test_inputs_have_tracts_types(load_tract, kind, dtype):
    graph = load_tract(
        f"graph g(x) -> (y) {{ x = tract_core_external(datum_type = '{kind}', shape = [2]);"
        "y = x; }"
    )

    assert graph.tensor("x").dtype == graph.tensor("y").dtype == dtype


def test_a_quantized_type_is_kept(load_tract):
    graph = load_tract(net("y = tract_core_cast(x, to = 'QU8(Z:3 S:0.5)');"))

    (y,) = run(graph, np.full((2, 3), 0.7))

    assert (y == 0.5).all()
    assert graph.tensor("y").quant.args["zero_point"] == 3


def test_codes_with_explicit_scales_are_real_numbers_in_between(load_tract):
    graph = load_tract(
        "graph g(x) -> (y) { x = tract_core_external(datum_type = 'i8', shape = [1, 2]);"
        "y = tract_core_qmatmul(x, [[1, 2], [3, 4]], bias = 2, axes = [0, 1, 0, 1, 0, 1],"
        " a0 = 1, a_scale = 0.5, b0 = 1, b_scale = 2.0, c0 = 3, c_scale = 0.5,"
        " output_type = 'i8'); }"
    )

    (y,) = run(graph, np.array([[3, 101]]))

    # (2 * 0 + 100 * 2 + 2) / 0.5 + 3 is clamped, as is (2 * 1 + 100 * 3 + 2) / 0.5 + 3
    assert y.tolist() == [[127, 127]]
    (y,) = run(graph, np.array([[3, 2]]))
    assert y.tolist() == [[(2 * 0 + 1 * 2 + 2) * 2 + 3, (2 * 1 + 1 * 3 + 2) * 2 + 3]]


def test_the_scales_of_a_deconv_filter_are_those_of_its_outputs(tmp_path, rng):
    codes = rng.integers(-9, 9, (3, 2, 2, 2)).astype(np.int8)
    (tmp_path / "w.dat").write_bytes(write_tensor(codes))
    (tmp_path / "graph.quant").write_text(
        '"w": zero_point_linear_quantize(zero_point = [0, 0, 0], scale = [0.5, 1.0, 2.0],'
        " bits = 8, signed = true, symmetric = false);"
    )
    (tmp_path / "graph.nnef").write_text(
        "version 1.0; extension tract_registry tract_core; graph g(x) -> (y) {"
        "x = external(shape = [1, 2, 1, 1]); w = variable(label = 'w', shape = [3, 2, 2, 2]);"
        "y = deconv(x, w, stride = [2, 2], padding = [(0, 0), (0, 0)]); }"
    )

    graph = load(tmp_path)
    (y,) = run(graph, np.reshape([1.0, 10.0], (1, 2, 1, 1)))

    real = codes * np.reshape([0.5, 1, 2], (3, 1, 1, 1))
    np.testing.assert_allclose(y[0], real[:, 0] + 10 * real[:, 1])
    quant = graph.tensor(graph.nodes[0].inputs[1]).quant
    assert quant.args["scale"].tolist() == [[0.5, 1, 2]]


def test_a_template_is_filled_in_from_json_files(tmp_path):
    (tmp_path / "net.json").write_text(json.dumps({"width": 5}))
    (tmp_path / "graph.nnef").write_text(
        "version 1.0; extension tract_registry tract_core; "
        "graph g(x) -> (y) { x = external(shape = [{{ net.width }}]);"
        "y = x; {% for _ in range(2) %} y = relu(y); {% endfor %} }"
    )

    graph = load(tmp_path)

    assert graph.tensor("y").shape == (5,)
    assert [node.op for node in graph.nodes] == ["relu", "relu"]


@pytest.mark.parametrize(("template", "message"), [
    ("{{ other.width }}", "the template is wrong: 'other' is undefined"),
    ("{% endfor %}", "the template is wrong: Encountered unknown tag 'endfor'"),
    ("{{ ''.__class__.__mro__ }}", "the template is wrong: .*unsafe"),
])  # fmt: skip
def test_wrong_templates_are_refused(tmp_path, template, message):
    (tmp_path / "graph.nnef").write_text(f"version 1.0;\n{template}\n")

    with pytest.raises(ModelError, match=message):
        load(tmp_path)


@pytest.mark.parametrize("operator", sorted(TRACT.refused))
def test_operators_out_of_reach_are_refused_with_a_reason(load_tract, operator):
    with pytest.raises(UnsupportedError, match=f"{operator}' is not supported: [a-z]"):
        load_tract(net(f"y = {operator}(x);"))


@pytest.mark.parametrize(("body", "message"), [
    ("y = tract_core_cast(x, to = 'cf32');", "tensors of 'cf32' are not supported"),
    ("y = tract_core_range(0, 0, 1) + x;", "there are no numbers, or too many, from 0 to 0"),
    ("y = slice(x, axes = [1], begin = [2], end = [2]);", "nothing is left of dimension 1"),
    ("y = tract_core_einsum([x, x], expr = 'ab,b->a');", "must have 2 letters"),
    ("y = tract_core_einsum(x, expr = 'ab');", "must have 1 terms and a '->'"),
    ("y = tract_core_resize(x);", "give either scales or sizes"),
    ("y = tract_core_resize(x, [2.0]);", "1 scales are given for the 2 dimensions"),
    ("y = tract_core_fft(x, axis = 0, inverse = false);", "cannot be transformed along 0"),
    ("y = tract_core_downsample(x, axis = 5, stride = 2);", "there is no dimension 5"),
    ("y = tract_core_gather(x, 3, axis = 1);", None),
    ("y = tract_core_topk(x, k = x, axis = 1, largest = true);", "'k' must be integer"),
    ("y = tract_core_matmul(x, x, axes = [0, 1]);", "must be six numbers"),
    ("y = tract_core_grid_sample(x, x, mode = 'bicubic');", "mode 'bicubic'"),
    ("y = tract_core_scan(body = 'f', scan = [], full = [], state = [], output = []);",
     "there is no fragment 'f'"),
    ("y = tract_core_cast(x);", "graph.quant has no line for 'y'"),
    ("y = (x, x);", "'y' is a tuple, not a tensor"),
    ("y = x + [1.0, [2.0]];", "must hold numbers"),
    ("y = [x] * 2.0;", "must hold numbers"),
    ("y = x + [];", "must hold numbers"),
    ("y = x + 'one';", r"'one' cannot be an operand of '\+'"),
    ("y = -(x, x);", "cannot be an operand of '-'"),
    ("y = x + x[0];", "the tensor 'x' is not an array"),
    ("y = x + [1.0, 2.0][0.5];", "0.5 is not an index"),
    ("y = tract_core_range(inf, 2, 1);", "no numbers, or too many"),
    ("y = tract_core_range([1, 2], 2, 1);", "'start' must be one number, not 2"),
    ("y = tract_core_broadcast(x, shape = [2, inf]);", "has the item inf, which is not an integer"),
    ("y = tract_core_broadcast(x, shape = [2, -3]);", "must be positive"),
    ("y = tract_shl(x, 1);", "scalars have no bits"),
    ("y = tract_core_bitand(x, 1);", "scalars have no bits"),
    ("y = tract_core_resize(x, [-1.0, 1.0]);", "must be positive"),
    ("y = tract_transformers_sdpa(x, x, x);", "must all have rank 3 or 4, not 2"),
    ("y = tract_core_matmul(x, x, axes = [0, 1, 2, 3, 4, 5]);", "must be six numbers in 0..1"),
    ("y = tract_core_einsum_q([x], expr = 'a->a');", "it multiplies two tensors"),
    ("y = tract_core_resize(x, [2.0, 3.0], sizes = [2, 2]);", "give either scales or sizes"),
    ("y = tract_onnx_resize(x, [1.0, 1.0], coord_transformer = 'tf_crop_and_resize');",
     "'tf_crop_and_resize' is not supported"),
    ("y = deconv(x, x);", "both have batch, channels and spatial dimensions"),
    ("y = tract_core_gru_seq(x, x, x, x, x, hidden = 3, projected = 1);",
     "projected = True is not supported"),
    ("y = tract_extra_exp_mean_norm(x, x, axis = 0, alpha = 0.5, skip = 1, scaling_factor = 1.0);",
     "skip = 1 is not supported"),
    ("y = relu(x, slope = 1.0);", "there is no argument 'slope'"),
    ("y = tract_core_cast('x', to = 'f32');", "must be tensor<>, not 'x'"),
])  # fmt: skip
def test_mistakes_have_one_located_error(load_tract, body, message):
    if message is None:
        graph = load_tract(net(body))
        with pytest.raises(ModelError, match="outside"):
            run(graph, np.ones((2, 3)))
        return
    with pytest.raises((ModelError, UnsupportedError), match=message) as caught:
        load_tract(net(body))
    assert caught.value.location.line == 3
