"""graph.quant: what is read, what it does to tensors, and what is refused."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnef_hw.errors import ErrorGroup, ModelError, UnsupportedError
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.archive.archive import open_archive
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor
from nnef_hw.frontend.nnef.evaluation.quant_file import read_quantization
from nnef_hw.reference import run_float
from nnef_hw.reference.real.quantize import decode, fake_quantize

ZERO_POINT = "zero_point_linear_quantize(zero_point = {}, scale = {}, bits = {}, {})"
SIGNED = "signed = true, symmetric = false"
CONV = (
    "f = variable(shape = [2, 1, 1, 1], label = 'f');",
    "b = variable(shape = [1, 2], label = 'b');",
    "y = conv(x, f, b);",
)


@pytest.fixture
def read(tmp_path):
    """Read lines of a quantization file."""

    def read(*lines, **options):
        (tmp_path / "graph.nnef").write_text("")
        (tmp_path / "graph.quant").write_text("\n".join(lines))
        return read_quantization(open_archive(tmp_path), **options)

    return read


@pytest.fixture
def load(write_model):
    """Load a model with a quantization file."""

    def load(*lines, body=CONV, **arrays):
        path = write_model(*body, shape="[1, 1, 2, 2]", **arrays)
        (path / "graph.quant").write_text("\n".join(lines))
        return load_nnef(path)

    return load


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("linear_quantize(min = -2.0, max = 2.5, bits = 8)", {"min": -2.0, "max": 2.5, "bits": 8}),
        ("logarithmic_quantize(max = 2.0 ^ 3.0, bits = 4 * 2)", {"max": 8.0, "bits": 8}),
        (
            f"min_max_linear_quantize(bits = 3, max = +1.0, min = -(0.5 + 0.25), {SIGNED})",
            {"min": -0.75, "max": 1.0, "bits": 3, "signed": True, "symmetric": False},
        ),
        (
            ZERO_POINT.format("[1, 2]", "[[0.5], [0.25]]", 8, SIGNED),
            {"zero_point": [1, 2], "scale": [[0.5], [0.25]], "bits": 8, "signed": True,
             "symmetric": False},
        ),
    ],
    ids=["linear", "logarithmic", "min max", "zero point"],
)  # fmt: skip
@pytest.mark.parametrize("quote", ["'", '"'])
def test_lines_are_read(read, quote, text, args):
    (line,) = read("# a comment", "", f"{quote}t{quote}: {text};").values()

    assert line.name == "t"
    assert line.quantization.op == text.partition("(")[0]
    assert {key: np.asarray(x).tolist() for key, x in line.quantization.args.items()} == args
    assert (line.location.line, line.location.column) == (3, 1)


def test_a_model_without_the_file_is_not_quantized(tmp_path):
    (tmp_path / "graph.nnef").write_text("")

    assert read_quantization(open_archive(tmp_path)) == {}


def test_tract_reads_linear_quantize_as_signed_and_numbers_of_any_type(read):
    (one, two) = read(
        '"a": linear_quantize(min = -1, max = 1, bits = 8);',
        '"b": zero_point_linear_quantize(zero_point = 1.0, scale = 1, bits = 8);',
        tract=True,
    ).values()

    flags = {"signed": True, "symmetric": False}
    assert one.quantization.op == "min_max_linear_quantize"
    assert one.quantization.args == {"min": -1.0, "max": 1.0, "bits": 8, **flags}
    assert two.quantization.args == {"zero_point": 1, "scale": 1.0, "bits": 8, **flags}


RANGE = "min = 0.0, max = 1.0"
BAD_LINES = [
    (f"lineer_quantize({RANGE}, bits = 8)", 6, "unknown; did you mean 'linear_quantize'?"),
    ("tflite(scale = 1.0)", 6, "the quantization 'tflite' is unknown; use one of linear_quantize"),
    (f"linear_quantize(x, {RANGE}, bits = 8)", 22, "all arguments must be named"),
    (f"linear_quantize(x = 1.0, {RANGE}, bits = 8)", 22, "has no argument 'x' here"),
    (f"linear_quantize({RANGE}, bit = 8)", 44, "no argument 'bit' here; did you mean 'bits'?"),
    (f"linear_quantize({RANGE}, max = 2.0, bits = 8)", 44, "'max' is given twice"),
    ("linear_quantize(min = 0.0, max = 1.0)", 6, "the argument 'bits' is missing; add bits ="),
    ("linear_quantize(min = 0, max = 1.0, bits = 8)", 28, "must be scalar, not the integer 0; wri"),
    (f"linear_quantize({RANGE}, bits = 8.0)", 51, "'bits' must be integer, not the scalar 8.0"),
    (f"linear_quantize({RANGE}, bits = [8])", 51, "'bits' must be integer, not an array"),
    (f"linear_quantize({RANGE}, bits = 0)", 51, "'bits' must be in 1..64, not 0"),
    (f"linear_quantize({RANGE}, bits = 65)", 51, "'bits' must be in 1..64, not 65"),
    (f"linear_quantize({RANGE}, bits = b)", 51, "only numbers, logicals, arrays of them and"),
    ("linear_quantize(min = 1.0, max = 1.0, bits = 8)", 28, "'min' must be less than 'max'"),
    ("linear_quantize(min = 1.0 + 1, max = 9.0, bits = 8)", 28, "must be numbers of one type"),
    ("linear_quantize(min = 1.0 / 0.0, max = 1.0, bits = 8)", 32, "zero"),
    ("linear_quantize(min = [0.0, 0.0], max = [1.0, 1.0, 1.0], bits = 8)", 46, "not fit together"),
    ("linear_quantize(min = [[0.0], [0.0, 0.0]], max = 1.0, bits = 8)", 28, "'min' is jagged"),
    ("linear_quantize(min = [0.0, [0.0]], max = 1.0, bits = 8)", 28, "'min' is jagged"),
    ("linear_quantize(min = [], max = 1.0, bits = 8)", 28, "the array for 'min' is empty"),
    ("logarithmic_quantize(max = 0.0, bits = 8)", 33, "'max' must be positive"),
    (ZERO_POINT.format(0, "-1.0", 8, SIGNED), 57, "'scale' must be positive, not -1.0"),
    (ZERO_POINT.format(0, "[1.0, 0.0]", 8, SIGNED), 57, "must be positive, not [1.0, 0.0]"),
    (ZERO_POINT.format(0, "1.0", 8, "signed = 1, symmetric = true"), 81, "must be logical, not"),
]


@pytest.mark.parametrize(("text", "column", "message"), BAD_LINES, ids=[m for *_, m in BAD_LINES])
def test_bad_lines_are_refused_where_they_are_bad(read, text, column, message):
    with pytest.raises(ModelError, match=re.escape(message)) as info:
        read(f'"t": {text};')

    assert info.value.location.column == column
    assert info.value.location.line == 1


@pytest.mark.parametrize("value", ["[" * 5000 + "1.0" + "]" * 5000, "1.0" + " + 1.0" * 50000])
def test_deep_values_are_refused(read, value):
    with pytest.raises(ModelError, match=r"nested too deeply"):
        read(f'"t": linear_quantize(min = {value}, max = 1.0, bits = 8);')


def test_tract_takes_no_scalars_beyond_integers(read):
    with pytest.raises(ModelError, match="'zero_point' must be integer, not the scalar 1e"):
        read('"t": zero_point_linear_quantize(zero_point = 1e30, scale = 1, bits = 8);', tract=True)


TOKENS = ["[", "]", "(", ")", "1", "-1.0", "*", "^", "!", "true", "'t'", ";", ":", "=", "in", "x"]


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    places=st.lists(st.tuples(st.integers(0, 70), st.sampled_from(TOKENS)), max_size=4),
    tract=st.booleans(),
)
def test_random_changes_give_located_errors(read, places, tract):
    text = ZERO_POINT.format("[[1], [2]]", "[0.5 * 0.1]", 8, SIGNED)
    tokens = re.findall(r"\w+|\S|\s", f"'t': {text};")
    for place, token in places:
        tokens[place % len(tokens)] = token
    try:
        read("".join(tokens), tract=tract)
    except ModelError as error:
        assert_located(error)
    except ErrorGroup as group:
        for error in group.errors:
            assert_located(error)


def assert_located(error):
    assert error.location.file.endswith("graph.quant")
    assert error.location.line


def test_unknown_quantizations_are_unsupported_not_invalid(read):
    with pytest.raises(UnsupportedError):
        read('"t": tflite_quantize(scale = 1.0);')


def test_every_bad_line_is_reported(read):
    good = f"linear_quantize({RANGE}, bits = 8);"
    with pytest.raises(ErrorGroup) as info:
        read(f'"a": {good}', '"b": f();', f"'a': {good}", '"c": linear_quantize();')

    assert [error.location.line for error in info.value.errors] == [2, 3, 4]
    assert "'a' is quantized twice, first in line 1" in str(info.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: linear_quantize();", "expected a string at the beginning, found 'a'"),
        ('"a" linear_quantize();', "expected ':' after"),
        ('"a": linear_quantize()\n"b": x();', "expected ';' after the invocation"),
        ('"a": 3;', "expected a name after ':', found '3'"),
    ],
)
def test_syntax_errors_are_located(read, text, message):
    with pytest.raises(ModelError, match=re.escape(message)) as info:
        read(text)
    assert info.value.location.line == 1


def test_text_that_is_no_utf8_is_refused(tmp_path):
    (tmp_path / "graph.nnef").write_text("")
    (tmp_path / "graph.quant").write_bytes(b'"\xff"')

    with pytest.raises(ModelError, match="byte 1 is not UTF-8 text"):
        read_quantization(open_archive(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        ZERO_POINT.format("[0, 3]", "[0.5, 0.25]", 8, SIGNED),
        ZERO_POINT.format(0, "0.125", 8, SIGNED),
        f"min_max_linear_quantize(min = -1.0, max = [0.5, 2.0], bits = 8, {SIGNED})",
        "logarithmic_quantize(max = 8.0, bits = 8)",
    ],
    ids=["per channel", "per tensor", "min max", "logarithmic"],
)
def test_codes_of_variables_become_real_numbers(load, text):
    codes = np.array([-128, 127], np.int8).reshape(2, 1, 1, 1)
    graph = load(
        f'"f": {text};', f=write_tensor(codes, quantized=True), b=np.zeros((1, 2), np.float32)
    )
    tensor = graph.tensor("f")

    expected = decode(codes, tensor.quant, sign_bit=True)
    assert tensor.data.dtype == np.float64
    np.testing.assert_array_equal(tensor.data, expected)
    assert len(np.unique(tensor.data)) == 2


def test_floats_of_variables_and_constants_are_rounded_to_codes(load):
    line = ZERO_POINT.format(0, "0.5", 3, SIGNED)
    graph = load(
        *(f'"{name}": {line};' for name in ("f", "c")),
        body=("f = variable(shape = [2, 1, 1, 1], label = 'f');",
              "c = constant(shape = [1, 2], value = [0.3, -9.0]);", "y = conv(x, f, c);"),
        f=np.array([0.7, -0.2], np.float32).reshape(2, 1, 1, 1),
    )  # fmt: skip

    assert graph.tensor("f").data.reshape(-1).tolist() == [0.5, 0.0]
    assert graph.tensor("c").data.reshape(-1).tolist() == [0.5, -2.0]


def test_activations_are_quantized_after_they_are_computed(load, rng):
    weights = {"f": np.array([0.5, -2.0], np.float32).reshape(2, 1, 1, 1),
               "b": np.zeros((1, 2), np.float32)}  # fmt: skip
    line = ZERO_POINT.format(128, "0.1", 8, "signed = false, symmetric = false")
    graph = load(f'"x": {line};', f'"y": {line};', **weights)
    x = rng.uniform(-2, 2, (3, 1, 2, 2))

    quantized = fake_quantize(x, graph.tensor("x").quant)
    expected = fake_quantize(quantized * weights["f"].reshape(1, 2, 1, 1), graph.tensor("y").quant)
    np.testing.assert_array_equal(run_float(graph, {"x": x})["y"], expected)


def test_deprecated_ranges_of_tensor_files_are_obeyed(load):
    data = bytearray(write_tensor(np.array([0, 255], np.uint8).reshape(2, 1, 1, 1)))
    data[48] = 2
    data[52:60] = np.array([-1.0, 3.0], "<f4").tobytes()
    bias = np.zeros((1, 2), np.float32)

    tensor = load(f=bytes(data), b=bias).tensor("f")
    assert tensor.data.reshape(-1).tolist() == [-1.0, 3.0]
    assert tensor.quant.op == "linear_quantize"

    line = ZERO_POINT.format(0, "0.75", 2, SIGNED)
    assert load(f'"f": {line};', f=bytes(data), b=bias).tensor("f").data.max() == 0.75


def test_numbers_for_each_channel_stand_where_the_channels_are(load):
    """Khronos's converters write [C] for a bias [1, C], too."""
    line = ZERO_POINT.format("[0, 0]", "[0.5, 0.25]", 8, SIGNED)
    bias = np.array([[0.6, 0.6]], np.float32)
    filters = np.ones((2, 1, 1, 1), np.float32)
    tensor = load(f'"b": {line};', f=filters, b=bias).tensor("b")
    assert tensor.data.tolist() == [[0.5, 0.5]]
    assert tensor.quant.args["scale"].tolist() == [[0.5, 0.25]]


BAD_MODELS = [
    ("z", ZERO_POINT.format(0, "1.0", 8, SIGNED), "names 'z', which is not a tensor of the graph"),
    ("ff", ZERO_POINT.format(0, "1.0", 8, SIGNED), "did you mean 'f'?"),
    ("f", ZERO_POINT.format(0, "[1.0, 1.0, 1.0]", 8, SIGNED), "does not broadcast"),
    ("y", ZERO_POINT.format(0, "[1.0, 1.0]", 8, SIGNED), "'y' has shape [1, 2, 2, 2], to which"),
    ("f", ZERO_POINT.format(0, "1.0", 4, SIGNED), "the code -128, but its quantization has -8..7"),
    ("f", ZERO_POINT.format(0, "1.0", 8, "signed = true, symmetric = true"), "the code -128, but"),
    ("b", ZERO_POINT.format(0, "1.0", 8, SIGNED), "nothing says which numbers they stand for"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD_MODELS, ids=[m for *_, m in BAD_MODELS])
def test_lines_that_do_not_fit_the_graph_are_refused(load, name, text, message):
    codes = write_tensor(np.array([-128, 100], np.int8).reshape(2, 1, 1, 1), quantized=True)
    lines = {"f": ZERO_POINT.format(0, "1.0", 8, SIGNED), name: text}
    if name == "b":
        del lines["f"]
    with pytest.raises(ModelError, match=re.escape(message)):
        load(
            *(f'"{key}": {line};' for key, line in lines.items()),
            f=codes, b=np.zeros((1, 2), np.float32),
        )  # fmt: skip


def test_integers_are_not_quantized(load):
    body = ("i = argmax_reduce(x, axes = [1]);", "y = copy(x);")
    line = '"i": zero_point_linear_quantize(zero_point = 0, scale = {}, bits = 4, {});'

    assert load(line.format("1.0", SIGNED), body=body).tensor("i").quant is None
    with pytest.raises(ModelError, match="'i' is a tensor<integer>, only scalars are quantized"):
        load(line.format("2.0", SIGNED), body=body)
