import re

import numpy as np
import pytest

from nnef_hw.errors import ModelError
from nnef_hw.frontend.nnef.evaluation.operators import standard_operators
from nnef_hw.frontend.shapes import SHAPE_RULES
from nnef_hw.frontend.shapes.extended import EXTENDED_RULES

ZERO_PADDING = "padding = [(0,0),(0,0),(0,0),(0,0)]"


def constants(shapes):
    return [
        f"{name} = constant(shape = {list(shape)}, value = [1.0]);"
        for name, shape in shapes.items()
    ]


@pytest.mark.parametrize(
    ("source", "statement", "result"),
    [
        ([2, 3, 4], "y = tanh(x);", [2, 3, 4]),
        ([2, 3, 4], "y = add(x, 1.0);", [2, 3, 4]),
        ([2, 1, 4], "y = mul(x, a);", [2, 3, 4]),
        ([2, 3, 4, 1], "y = max(x, a);", [2, 3, 4, 1]),
        ([2, 3, 4], "y = softmax(x);", [2, 3, 4]),
        ([2, 3, 4], "y = sum_reduce(x, axes = [0, 2]);", [1, 3, 1]),
        ([2, 3, 4], "y, v = moments(x, axes = [1]);", [2, 1, 4]),
        ([2, 3, 4], "y = reshape(x, shape = [4, -1]);", [4, 6]),
        ([2, 3, 4], "y = reshape(x, shape = [0, 12]);", [2, 12]),
        ([2, 3, 4], "y = reshape(x, shape = [0, 2, -1], axis_start = 1);", [2, 3, 2, 2]),
        ([2, 3, 4], "y = reshape(x, shape = [-1], axis_start = 0, axis_count = 2);", [6, 4]),
        ([2, 3, 4], "y = reshape(x, shape = [1], axis_start = 1, axis_count = 0);", [2, 1, 3, 4]),
        ([2, 3, 4], "y = transpose(x, axes = [1, 0]);", [3, 2, 4]),
        ([2, 1, 4, 1], "y = squeeze(x, axes = [3, 1]);", [2, 4]),
        ([2, 4], "y = unsqueeze(x, axes = [0, 3]);", [1, 2, 4, 1]),
        ([2, 3, 4], "y = concat([x, a], axis = 2);", [2, 3, 8]),
        ([2, 3, 4], "y = stack([x, a], axis = 3);", [2, 3, 4, 2]),
        ([2, 3, 4], "[y, z] = split(x, axis = 2, ratios = [3, 1]);", [2, 3, 3]),
        ([2, 3, 4], "[y, z] = unstack(x, axis = 0);", [3, 4]),
        ([2, 9], "y = slice(x, axes = [1], begin = [1], end = [-1]);", [2, 7]),
        ([2, 9], "y = slice(x, axes = [1], begin = [-1], end = [0]);", [2, 1]),
        ([2, 9], "y = slice(x, axes = [1], begin = [0], end = [5], stride = [2]);", [2, 3]),
        ([2, 9], "y = slice(x, axes = [1], begin = [8], end = [-10], stride = [-1]);", [2, 9]),
        ([2, 3], "y = tile(x, repeats = [1, 3]);", [2, 9]),
        ([2, 5], "y = pad(x, padding = [(0, 0), (2, -1)]);", [2, 6]),
        ([2, 3, 4], "y = matmul(x, a, transposeB = true);", [2, 3, 3]),
        ([2, 3, 4], "y = matmul(x, a, transposeA = true);", [2, 4, 4]),
        ([5, 4], "y = linear(x, w, b);", [5, 7]),
        ([1, 3, 9], "y = batch_normalization(x, c, c, c, c, epsilon = 0.1);", [1, 3, 9]),
        ([1, 2, 6, 9], "y = nearest_upsample(x, factor = [2, 3]);", [1, 2, 12, 27]),
        ([1, 2, 6, 9], "y = area_downsample(x, factor = [2, 3]);", [1, 2, 3, 3]),
        ([1, 2, 6, 9], "y = nearest_downsample(x, factor = [2, 3]);", [1, 2, 3, 3]),
        (
            [1, 2, 6, 9],
            "y = max_pool(x, size = [1, 1, 2, 2], padding = [(0, 0), (0, 0), (-1, 0), (0, -2)]);",
            [1, 2, 4, 6],
        ),
        ([1, 4, 6], "y = separable_conv(x, p, q, padding = [(0, 0)]);", [1, 5, 4]),
        ([1, 4, 6], "y = separable_deconv(x, r, s, padding = [(0, 0)]);", [1, 2, 8]),
        ([2, 3, 4], "y = avg_roi_pool(x, rois, images, output_size = [5]);", [6, 3, 5]),
        ([1, 2, 6, 9], "y = multilinear_upsample(x, factor = [2, 2]);", [1, 2, 12, 18]),
        (
            [1, 2, 6, 9],
            "y = max_pool(x, size = [1, 1, 2, 2], stride = [1, 1, 2, 2]);",
            [1, 2, 3, 5],
        ),
        ([1, 2, 6, 9], f"y = max_pool(x, size = [1, 1, 3, 3], {ZERO_PADDING});", [1, 2, 4, 7]),
        ([1, 2, 6], "y = debox(x, size = [1, 1, 2], stride = [1, 1, 2]);", [1, 2, 12]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_shapes(load_model, source, statement, result):
    shapes = {
        "a": (2, 3, 4),
        "w": (7, 4),
        "b": (1, 7),
        "c": (1, 3),
        "p": (8, 1, 3),
        "q": (5, 8, 1),
        "r": (2, 1, 3),
        "s": (4, 2, 1),
        "rois": (6, 2),
    }
    images = "images = constant<integer>(shape = [6, 1], value = [0]);"
    graph = load_model(*constants(shapes), images, statement, shape=str(source))

    assert list(graph.tensor("y").shape) == result


def test_every_operator_of_the_standard_has_a_rule():
    sources = {"external", "variable", "constant", "update"}
    assert standard_operators().keys() - sources <= SHAPE_RULES.keys()
    beyond = {*EXTENDED_RULES, "scan"}
    assert SHAPE_RULES.keys() - beyond <= standard_operators().keys()


def brute_force_extent(extent, size, stride, dilation, padding):
    before, after = padding
    starts = range(-before, extent + after, stride)
    return sum(start + (size - 1) * dilation < extent + after for start in starts)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding", [(0, 0), (1, 0), (2, 3)], ids=str)
def test_conv_extents_are_the_windows_that_fit(load_model, stride, dilation, padding):
    graph = load_model(
        *constants({"w": (1, 1, 3)}),
        f"y = conv(x, w, stride = [{stride}], dilation = [{dilation}], padding = [{padding}]);",
        shape="[1, 1, 11]",
    )

    expected = brute_force_extent(11, 3, stride, dilation, padding)
    assert graph.tensor("y").shape == (1, 1, expected)


@pytest.mark.parametrize(
    ("extent", "size", "stride", "padding"),
    [(4, 3, 1, (1, 1)), (5, 2, 1, (0, 1)), (8, 3, 2, (0, 1)), (7, 1, 2, (0, 0)), (9, 5, 4, (2, 2))],
)
def test_automatic_padding_is_made_explicit(load_model, extent, size, stride, padding):
    graph = load_model(
        *constants({"w": (1, 1, size)}),
        f"y = conv(x, w, stride = [{stride}]);",
        shape=f"[1, 1, {extent}]",
    )

    assert graph.nodes[0].attrs["padding"] == [padding]
    assert graph.tensor("y").shape == (1, 1, -(-extent // stride))


@pytest.mark.parametrize(
    ("attributes", "extent"),
    [
        ("", 12),
        (", padding = [(1, 1)]", 11),
        (", padding = [(0, 0)]", 13),
        (", output_shape = [1, 4, 11]", 11),
    ],
)
def test_deconv_reverses_conv(load_model, attributes, extent):
    graph = load_model(
        *constants({"w": (2, 4, 3)}),
        f"y = deconv(x, w, stride = [2]{attributes});",
        shape="[1, 2, 6]",
    )

    assert graph.tensor("y").shape == (1, 4, extent)
    assert graph.nodes[0].attrs["output_shape"] == [1, 4, extent]


def test_depthwise_groups_are_made_explicit(load_model):
    graph = load_model(
        *constants({"w": (6, 1, 3)}), "y = conv(x, w, groups = 0);", shape="[1, 3, 5]"
    )

    assert graph.nodes[0].attrs["groups"] == 3
    assert graph.tensor("y").shape == (1, 6, 5)


def test_attributes_are_made_explicit(load_model):
    graph = load_model(
        "a = reshape(x, shape = [0, -1], axis_start = 1);",
        "b = transpose(x, axes = [1, 0]);",
        "y = slice(x, axes = [2], begin = [-3], end = [0]);",
    )

    assert graph.nodes[0].attrs == {"shape": [2, 16], "axis_start": 1, "axis_count": 3}
    assert graph.nodes[1].attrs == {"axes": [1, 0, 2, 3]}
    assert graph.nodes[2].attrs == {"axes": [2], "begin": [1], "end": [4], "stride": [1]}


@pytest.mark.parametrize("shape", ["[3]", "[1, 3]", "[1, 3, 1, 1]", "[1, 1]", "[]"])
def test_biases_of_every_tool_are_taken(load_model, shape):
    graph = load_model(
        *constants({"w": (3, 2, 1, 1)}),
        f"b = constant(shape = {shape}, value = [0.5]);",
        "y = conv(x, w, b);",
    )

    assert graph.tensor("y").shape == (1, 3, 4, 4)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y = conv(x, v);", "6:17: conv 'y': the filter 'v' has rank 3, the input 'x' has rank 4"),
        ("y = conv(m, w);", "conv 'y': the input has rank 2, but needs batch, channel and spatial"),
        (
            "y = conv(x, f);",
            "the filter 'f' of shape [3, 5, 3, 3] is for 5 input channels, but the input 'x' has 2",
        ),
        ("y = conv(x, w, groups = 3);", "groups = 3 does not divide 2 input and 3 output channels"),
        ("y = conv(x, g, groups = 2);", "is for 2 x 2 groups input channels, but the input 'x'"),
        ("y = conv(x, w, m);", "6:20: conv 'y': the bias 'm' has shape [2, 4], but there are 3"),
        ("y = conv(x, w, stride = [2]);", "6:29: conv 'y': stride must have 2 items, one per"),
        ("y = conv(x, w, stride = [0, 1]);", "conv 'y': stride [0, 1] must be positive"),
        ("y = conv(x, w, dilation = [1]);", "dilation must have 2 items, one per dimension of"),
        ("y = conv(x, w, dilation = [1, -1]);", "dilation [1, -1] must be positive"),
        ("y = conv(x, w, padding = [(1, 1)]);", "padding must have 2 items, one per dimension of"),
        (
            "y = conv(x, w, padding = [(1, 1), (-3, 0)]);",
            "the window covers 3 elements, but its input has only 1 in window dimension 1",
        ),
        (
            "y = area_downsample(x, factor = [2, 3]);",
            "6:37: area_downsample 'y': factor [2, 3] does not divide the extents [4, 4]",
        ),
        ("y = multilinear_upsample(x, factor = [0, 2]);", "factor [0, 2] must be positive"),
        (
            "y = multilinear_upsample(x, factor = [2, 2], method = 'cubic');",
            "method 'cubic' does not exist here; use one of 'symmetric', 'asymmetric', 'aligned'",
        ),
        ("y = separable_conv(x, w, w);", "plane filter 'w' of shape [3, 2, 3, 3] must begin with"),
        ("y = separable_conv(x, d, w);", "point filter 'w' of shape [3, 2, 3, 3] must cover one"),
        ("y = separable_deconv(x, d, w);", "point filter 'w' of shape [3, 2, 3, 3] must cover"),
        (
            "y = separable_deconv(x, w, e);",
            "plane filter 'w' of shape [3, 2, 3, 3] must begin with",
        ),
        (
            "y = max_roi_pool(x, m, i, output_size = [1, 1]);",
            "the batch index 'i' has shape [7, 1]",
        ),
        ("y = max_roi_pool(x, n, i, output_size = [1, 1]);", "the rois 'n' have shape [3, 5], not"),
        ("y = max_roi_pool(x, m, j, output_size = [1]);", "output_size [1] must have 2 positive"),
        ("y = max_roi_pool(m, m, j, output_size = []);", "the input has rank 2, but needs batch"),
        ("y = conv(x, w, border = 'ignore');", "border 'ignore' does not exist here; use one of"),
        (
            "y = conv(x, w, padding = [(0, 0), (0, 0)], dilation = [1, 2]);",
            "the window covers 5 elements, but its input has only 4 in window dimension 1",
        ),
        ("y = deconv(x, w);", "the filter 'w' of shape [3, 2, 3, 3] is for 3 input channels, but"),
        ("y = deconv(x, g, output_shape = [1, 3, 4, 4]);", "[1, 3, 4, 4] must begin with [1, 2]"),
        ("y = deconv(x, g, output_shape = [1, 2]);", "[1, 2] must have 4 positive items"),
        ("y = deconv(x, g, groups = 0, output_shape = [1, 0, 4, 4]);", "4 positive items"),
        ("y = separable_deconv(x, d, e, output_shape = [1, 0, 4, 4]);", "4 positive items"),
        ("y = debox(x, size = [1, 1, 1, 1], output_shape = [0]);", "4 positive items"),
        ("y = deconv(x, g, output_shape = [1, 2, 9, 4]);", "9 does not shrink back to 4 in window"),
        (
            "y = max_pool(x, size = [2, 2]);",
            "size must have 4 items like the rank of the input 'x'",
        ),
        ("y = max_pool(x, size = [1, 1, 0, 2]);", "size [1, 1, 0, 2] must be positive"),
        ("y = add(x, v);", "shapes [1, 2, 4, 4] and [3, 2, 3] do not go together in dimension 2"),
        ("y = softmax(x, axes = [4]);", "6:27: softmax 'y': axes [4] must be different numbers in"),
        ("y = sum_reduce(x, axes = [1, 1]);", "axes [1, 1] must be different numbers in 0..3"),
        (
            "y = reshape(x, shape = [1, 33]);",
            "shape [1, 33] does not have the 32 elements of [1, 2, 4, 4]; the input 'x' has shape",
        ),
        ("y = reshape(x, shape = [-1, 3]);", "shape [-1, 3] does not have the 32 elements"),
        ("y = reshape(x, shape = [-1, -1]);", "shape [-1, -1] must be positive, 0, or -1 once"),
        ("y = reshape(x, shape = [1, 2, 4, 4, 0]);", "copies dimension 4, which is not reshaped"),
        ("y = reshape(x, shape = [1], axis_start = 5);", "axis_start 5 must be in 0..4"),
        ("y = reshape(x, shape = [1], axis_count = 5);", "axis_count 5 does not fit rank 4 from"),
        ("y = transpose(x, axes = [2, 0]);", "axes [2, 0] must be a permutation of the first"),
        ("y = squeeze(x, axes = [1]);", "squeeze 'y': dimension 1 is 2, not 1"),
        ("y = unsqueeze(x, axes = [6]);", "axes [6] must be different numbers in 0..4"),
        ("y = concat([x, w], axis = 1);", "'w' of shape [3, 2, 3, 3] differs from [1, 2, 4, 4] in"),
        ("y = concat([], axis = 1);", "concat 'y': "),
        ("y = concat([x], axis = -1);", "concat 'y': axis -1 must be in 0..3"),
        ("[y] = split(x, axis = 1, ratios = [3]);", "ratios [3] do not divide the 2 elements"),
        ("y = slice(x, axes = [2], begin = [2], end = [2]);", "nothing is left of dimension 2"),
        ("y = slice(x, axes = [2], begin = [2], end = []);", "end must have 1 items like axes"),
        (
            "y = pad(x, padding = [(1, 1)]);",
            "padding must have 4 items like the rank of the input, not 1",
        ),
        ("y = linear(x, m);", "linear 'y': 'x' has rank 4 and 'm' has rank 2, but both must have"),
        ("y = linear(m, n);", "'m' of shape [2, 4] and 'n' of shape [3, 5] do not multiply: 4 is"),
        ("y = linear(m, m, v);", "the bias 'v' has shape [3, 2, 3], but the result [2, 2]; give"),
    ],
    ids=lambda value: value[:50],
)
def test_misfits_are_refused(load_model, statement, message):
    shapes = {
        "w": (3, 2, 3, 3),
        "v": (3, 2, 3),
        "f": (3, 5, 3, 3),
        "g": (2, 2, 3, 3),
        "m": (2, 4),
        "n": (3, 5),
        "d": (2, 1, 3, 3),
        "e": (2, 4, 1, 1),
    }
    indices = [
        f"{name} = constant<integer>(shape = [{count}, 1], value = [0]);"
        for name, count in {"i": 7, "j": 2}.items()
    ]
    declared = " ".join([*constants(shapes), *indices])
    with pytest.raises(ModelError, match=re.escape(message)):
        load_model(declared, statement)


def test_shape_inference_agrees_with_numpy(load_model, rng):
    for _ in range(50):
        extent = int(rng.integers(1, 12))
        begin, end = (int(value) for value in rng.integers(-extent, extent + 1, 2))
        stride = int(rng.choice([2, 3, -2, -3]))
        expected = len(np.arange(extent)[begin:end:stride])
        statement = (
            f"y = slice(x, axes = [0], begin = [{begin}], end = [{end}], stride = [{stride}]);"
        )
        if expected:
            assert load_model(statement, shape=f"[{extent}]").tensor("y").shape == (expected,)
        else:
            with pytest.raises(ModelError, match="nothing is left"):
                load_model(statement, shape=f"[{extent}]")
