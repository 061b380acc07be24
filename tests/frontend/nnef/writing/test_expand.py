import numpy as np
import pytest

from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.evaluation.operators import standard_operators
from nnef_hw.frontend.nnef.writing.expand import expand_compounds
from nnef_hw.frontend.shapes import SHAPE_RULES
from nnef_hw.ir import verify
from nnef_hw.reference import run_float

CASES = {
    "sqr": "y = sqr(x);",
    "sqrt": "p = abs(x); y = sqrt(p);",
    "rsqr": "y = rsqr(x);",
    "rsqrt": "p = abs(x); y = rsqrt(p);",
    "log2": "p = abs(x); y = log2(p);",
    "min": "y = min(x, 0.25);",
    "max": "y = max(x, 0.25);",
    "clamp": "y = clamp(x, -0.5, 0.5);",
    "sigmoid": "y = sigmoid(x);",
    "relu": "y = relu(x);",
    "prelu": "a = constant(shape = [1, 4], value = [0.1, 0.2, 0.3, -0.4]); y = prelu(x, a);",
    "leaky_relu": "y = leaky_relu(x, alpha = 0.1);",
    "elu": "y = elu(x, alpha = 1.5);",
    "selu": "y = selu(x);",
    "silu": "y = silu(x);",
    "softmax": "y = softmax(x, axes = [1, 3]);",
    "softplus": "y = softplus(x);",
    "linear": "w = constant(shape = [1, 1, 3, 6], value = [0.5]); y = linear(x, w, -1.0);",
    "separable_conv": "p = constant(shape = [4, 1, 3, 3], value = [0.5]); "
    "q = constant(shape = [3, 4, 1, 1], value = [-1.5]); y = separable_conv(x, p, q, 0.5);",
    "separable_deconv": "p = constant(shape = [4, 1, 3, 3], value = [0.5]); "
    "q = constant(shape = [4, 4, 1, 1], value = [-1.5]); y = separable_deconv(x, p, q, 0.5);",
    "max_pool_with_index": "y, i = max_pool_with_index(x, size = [1, 1, 2, 2]);",
    "max_pool": "y = max_pool(x, size = [1, 1, 3, 3], border = 'ignore');",
    "avg_pool": "y = avg_pool(x, size = [1, 1, 3, 3], border = 'ignore');",
    "rms_pool": "y = rms_pool(x, size = [1, 1, 3, 3], stride = [1, 1, 2, 2]);",
    "nearest_downsample": "y = nearest_downsample(x, factor = [2, 3]);",
    "area_downsample": "y = area_downsample(x, factor = [2, 3]);",
    "nearest_upsample": "y = nearest_upsample(x, factor = [2, 3]);",
    "mean_reduce": "y = mean_reduce(x, axes = [0, 2]);",
    "moments": "m, y = moments(x, axes = [2, 3]);",
    "local_response_normalization": "y = local_response_normalization(x, size = [1, 3, 1, 1]);",
    "local_mean_normalization": "y = local_mean_normalization(x, size = [1, 1, 3, 3]);",
    "local_variance_normalization": "y = local_variance_normalization(x, size = [1, 1, 3, 3], "
    "bias = 0.25, epsilon = 0.5);",
    "local_contrast_normalization": "y = local_contrast_normalization(x, size = [1, 1, 3, 3], "
    "bias = 0.25, epsilon = 0.5);",
    "l1_normalization": "y = l1_normalization(x, axes = [1], bias = 0.5);",
    "l2_normalization": "y = l2_normalization(x, axes = [1], epsilon = 1.5);",
    "batch_normalization": "a = constant(shape = [1, 4], value = [0.1, 0.2, 0.3, 0.4]); "
    "y = batch_normalization(x, a, a, 0.5, -2.0, epsilon = 0.01);",
    "avg_roi_align": "r = constant(shape = [1, 4], value = [0.0, 0.0, 3.0, 4.0]); "
    "b = constant<integer>(shape = [1, 1], value = [0]); "
    "y = avg_roi_align(x, r, b, output_size = [2, 2], sampling_rate = [2, 1]);",
    "max_roi_align": "r = constant(shape = [1, 4], value = [0.0, 0.0, 3.0, 4.0]); "
    "b = constant<integer>(shape = [1, 1], value = [0]); "
    "y = max_roi_align(x, r, b, output_size = [2, 2], sampling_rate = [2, 1]);",
    "min_max_linear_quantize": "y = min_max_linear_quantize(x, -1.0, 0.75, bits = 4, "
    "signed = true, symmetric = true);",
    "zero_point_linear_quantize": "z = constant<integer>(shape = [], value = [3]); "
    "y = zero_point_linear_quantize(x, z, 0.25, bits = 4, signed = true, symmetric = false);",
    "linear_quantize": "y = linear_quantize(x, -1.0, 0.75, bits = 3);",
    "logarithmic_quantize": "y = logarithmic_quantize(x, 1.5, bits = 3);",
    "copy_n": "[y, z] = copy_n(x, times = 2);",
    "add_n": "s = sqr(x); y = add_n([x, s, x]);",
}


def compounds():
    operators = standard_operators()
    return {name for name in operators if operators[name].body is not None}


@pytest.mark.parametrize("op", CASES)
def test_the_definition_computes_what_the_operator_does(load_model, rng, op):
    graph = load_model(CASES[op], shape="[1, 4, 6, 6]")
    expanded = expand_compounds(graph)
    sample = {"x": rng.normal(size=(1, 4, 6, 6))}

    verify(expanded)
    assert not compounds() & {node.op for node in expanded.nodes}
    np.testing.assert_allclose(
        run_float(expanded, sample)["y"], run_float(graph, sample)["y"], rtol=1e-6, atol=1e-9
    )


def test_gelu_is_only_approximated_by_its_definition(load_model, rng):
    graph = load_model("y = gelu(x);")
    sample = {"x": rng.normal(size=(1, 2, 4, 4))}
    exact, approximate = (
        run_float(version, sample)["y"] for version in (graph, expand_compounds(graph))
    )

    assert 0 < np.abs(exact - approximate).max() < 0.025


def test_every_compound_with_a_shape_rule_is_compared():
    assert compounds() & SHAPE_RULES.keys() - CASES.keys() == {"gelu"}


def test_quantizations_stay(write_model):
    path = write_model("y = sigmoid(x);")
    (path / "graph.quant").write_text('"y": linear_quantize(min = 0.0, max = 1.0, bits = 8);')
    expanded = expand_compounds(load_nnef(path))

    assert expanded.nodes[-1].op == "div"
    assert expanded.tensor("y").quant.op == "linear_quantize"


def test_primitives_keep_names_and_data(load_model, rng):
    weights = rng.normal(size=(3, 2, 1, 1)).astype(np.float32)
    graph = load_model(
        "w = variable(shape = [3, 2, 1, 1], label = 'w');",
        "c = conv(x, w);",
        "y = softmax(c);",
        w=weights,
    )
    expanded = expand_compounds(graph)

    assert [(node.op, node.name) for node in expanded.nodes] == [
        ("conv", "c"),
        ("max_reduce", "y_m"),
        ("sub", "y_e_sub"),
        ("exp", "y_e"),
        ("sum_reduce", "y_sum_reduce"),
        ("div", "y"),
    ]
    assert expanded.tensor("w").label == "w"
    assert expanded.nodes[-1].location == graph.nodes[-1].location
