"""Files that lie, are cut off, or point elsewhere: one clear error, never a traceback."""

import random
import sys

import numpy as np
import onnx
import pytest

from nnef_hw.cli import main
from nnef_hw.errors import ModelError, NnefHwError, UnsupportedError, UsageError
from nnef_hw.frontend import load
from nnef_hw.reference import run_float

MODELS = [
    """net (float[1,2,5,5] x) => (float[1,3] y)
    <float[3,2,3,3] w = {{{}}}, float[3] b = {{1, 2, 3}}> {{
      c = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w, b)
      p = MaxPool <kernel_shape = [2,2], ceil_mode = 1> (c)
      g = GlobalAveragePool(p)
      y = Flatten <axis = 1> (g)
    }}""".format(", ".join(["0.5"] * 54)),
    """net (float[3,1,2] x) => (float[1,3,4] y)
    <float[1,16,2] w = {{{}}}, float[1,16,4] r = {{{}}}, int64[3] shape = {{1, 3, 4}}> {{
      a, , c = LSTM <hidden_size = 4, direction = "reverse"> (x, w, r)
      s = Squeeze(a)
      u = Reshape(s, shape)
      y = Identity(u)
    }}""".format(", ".join(["0.1"] * 32), ", ".join(["0.2"] * 64)),
    """net (float[2,6] x) => (float[2,3] y)
    <int64[1] starts = {0}, int64[1] ends = {6}, int64[1] axes = {1}, int64[1] steps = {2},
     int64[1] k = {2}, float[3,3] m = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
      s = Slice(x, starts, ends, axes, steps)
      n = Shape(s)
      e = ConstantOfShape(n)
      t = Gemm <alpha = 0.5, transB = 1> (s, m)
      v, i = TopK <axis = 1> (t, k)
      h = Add(t, e)
      y = Einsum <equation = "ij,jk->ik"> (h, m)
    }""",
    """net (float[1,2] x) => (float[1,3] y)
    <float[1] s = {0.5}, float[1] z = {0}, float[1] b = {4}, float[1] c = {8},
     float[3,2] w = {1, 2, -3, 4, -5, 6}, float[3,2] t = {1, 2, 3, 4, 5, 6}> {
      q = qonnx.custom_op.general.Quant <signed = 1, narrow = 0> (x, s, z, b)
      v = onnx.brevitas.BipolarQuant (w, s)
      g = com.microsoft.FusedGemm <transB = 1, activation = "Relu"> (q, v)
      r = finn.MultiThreshold <out_scale = 0.5, out_bias = -0.5> (g, t)
      m = qonnx.custom_op.general.Trunc <rounding_mode = "FLOOR"> (r, s, z, c, b)
      n = RequantShift <div = float {16}, n_levels = float {256}, signed = float {1}> (m, b, c)
      y = Round (n)
    }""",
]
"""Convolution and pooling, a recurrent layer, shape arithmetic, and operators of other tools."""


def messages():
    """Return the models."""
    return [parse(text) for text in MODELS]


def parse(text):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}')


def test_the_models_are_valid(read):
    for model in messages():
        read(model)


@pytest.mark.parametrize("seed", range(6))
def test_mutated_files_give_a_graph_or_an_error_of_ours(seed, write):
    rng = random.Random(seed)
    for _ in range(60):
        mutate = rng.choice([_mutate_bytes, _mutate_message, _mutate_message])
        error = _problem(write(mutate(rng.choice(messages()), rng)))
        assert error is None or error.exit_status == 2


def _problem(path):
    """Return the error of ours that loading gives, None if it gives a graph."""
    try:
        load(path)
    except NnefHwError as error:
        return error
    return None


def _mutate_bytes(model, rng):
    content = bytearray(model.SerializeToString())
    if rng.random() < 0.3:
        del content[rng.randrange(len(content)) :]
    for _ in range(rng.randrange(1, 6)):
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content)


def _mutate_message(model, rng):
    graph = model.graph
    node, tensor = rng.choice(graph.node), rng.choice(graph.initializer)
    names = [*(n for item in graph.node for n in item.output), "x", "", "nothing", tensor.name]
    numbers = [-1, 0, 1, 3, -(2**63), 2**62]

    def change_operator():
        node.op_type = rng.choice(["Conv", "Add", "Nothing", "LSTM", "Loop", "Resize", "MaxPool"])

    def change_argument():
        node.input[rng.randrange(len(node.input))] = rng.choice(names)

    def change_result():
        node.output[0] = rng.choice(names)

    def change_attribute():
        for item in node.attribute:
            if item.ints:
                item.ints[rng.randrange(len(item.ints))] = rng.choice(numbers)
            item.i, item.f, item.s = rng.choice(numbers), float("nan"), b"\xff"

    def change_shape():
        tensor.dims[:] = [*tensor.dims[1:], rng.choice(numbers)]

    def change_input():
        dims = graph.input[0].type.tensor_type.shape.dim
        dims[rng.randrange(len(dims))].dim_value = rng.choice(numbers)

    def change_type():
        tensor.data_type = rng.randrange(30)

    def change_values():
        tensor.float_data[:] = [float("inf")] * len(tensor.float_data)
        tensor.int64_data[:] = [-7] * len(tensor.int64_data)

    def shuffle():
        nodes = sorted(graph.node, key=lambda _: rng.random())
        del graph.node[:]
        graph.node.extend(nodes)

    def change_opset():
        model.opset_import[0].version = rng.choice([0, 6, 7, 9, 11, 13, 21, 99])

    changes = [
        change_operator, change_argument, change_result, change_attribute, change_shape,
        change_input, change_type, change_values, shuffle, change_opset,
    ]  # fmt: skip
    for change in rng.sample(changes, rng.choice([1, 1, 2])):
        change()
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x12", "the file is not an ONNX model, or it is damaged"),
        (b"version 1.0; graph net", "the file is not an ONNX model, or it is damaged"),
        (b"", "the file holds no ONNX graph"),
    ],
)
def test_other_files_are_refused(write, content, reason, capsys):
    path = write(content)
    assert main(["inspect", str(path)]) == 2
    assert reason in capsys.readouterr().err


def test_a_missing_file_is_the_users_mistake(tmp_path):
    with pytest.raises(UsageError, match="there is no model"):
        load(tmp_path / "model.onnx")


def test_the_package_to_install_is_named(write, monkeypatch):
    path = write(messages()[0])
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UsageError, match=r"pip install onnx"):
        load(path)


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        ([1 << 40, 1 << 40], "has shape"),
        ([-1, 4], "has shape"),
        ([2, 4], "do not have the 8 float"),
    ],
)
def test_shapes_of_tensors_are_checked(read, dims, reason):
    model = parse("net (float[1,4] x) => (float[1,4] y) <float[4] w = {1,2,3,4}> { y = Add(x, w) }")
    model.graph.initializer[0].dims[:] = dims
    with pytest.raises(ModelError, match=reason):
        read(model)


def test_results_of_impossible_size_are_refused(read):
    text = "net (float[1] x) => (float[?] y) <int64[2] s = {1000000, 1000000}> { y = Expand(x, s) }"
    with pytest.raises(ModelError, match=r"the result has shape \[1000000, 1000000\]"):
        read(text)
    with pytest.raises(ModelError, match="is not possible"):
        read(text.replace("Expand(x, s)", "ConstantOfShape(s)"))


class TestExternalData:
    VALUES = np.arange(8, dtype=np.float32).reshape(2, 4)

    def model(self, location, **keys):
        """Return ``y = x + w`` with w in another file."""
        model = parse("net (float[2,4] x) => (float[2,4] y) { y = Add(x, w) }")
        tensor = model.graph.initializer.add(name="w", dims=[2, 4], data_type=1, data_location=1)
        for key, value in {"location": location, **keys}.items():
            tensor.external_data.add(key=key, value=str(value))
        return model

    def test_files_beside_the_model_are_read(self, write, tmp_path):
        (tmp_path / "parts").mkdir()
        (tmp_path / "parts" / "w.bin").write_bytes(b"1234" + self.VALUES.tobytes() + b"567")
        path = write(self.model("parts/w.bin", offset=4, length=32, checksum="unused"))
        y = run_float(load(path), {"x": np.zeros((2, 4))})["y"]
        np.testing.assert_array_equal(y, self.VALUES)

    @pytest.mark.parametrize(
        ("location", "keys", "reason"),
        [
            ("../w.bin", {}, "are at '../w.bin'; they must be in the folder of the model"),
            ("parts/../../w.bin", {}, "they must be in the folder of the model"),
            ("/etc/passwd", {}, "they must be in the folder of the model"),
            ("C:\\w.bin", {}, "they must be in the folder of the model"),
            ("..\\w.bin", {}, "they must be in the folder of the model"),
            ("", {}, "they must be in the folder of the model"),
            ("link.bin", {}, "a link to"),
            ("none.bin", {}, "there is no file 'none.bin'"),
            ("parts", {}, "there is no file 'parts'"),
            ("w.bin", {"offset": 8}, "reach beyond the end of 'w.bin'"),
            ("w.bin", {"length": 31}, "have 31 bytes, but its shape needs 32"),
            ("w.bin", {"offset": "-4"}, "offset is '-4'"),
            ("w\0.bin", {}, "cannot be read"),
        ],
    )
    def test_other_places_are_refused(self, write, tmp_path, location, keys, reason):
        folder = tmp_path / "model"
        folder.mkdir()
        (folder / "parts").mkdir()
        (folder / "w.bin").write_bytes(self.VALUES.tobytes())
        (tmp_path / "w.bin").write_bytes(self.VALUES.tobytes())
        (folder / "link.bin").symlink_to(tmp_path / "w.bin")
        with pytest.raises(ModelError) as caught:
            load(write(self.model(location, **keys), name="model/model.onnx"))
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("float", [1.5, -2.0, 3.0]), ("double", [1.5, -2.0, 3.0]), ("float16", [1.5, -2.0, 3.0]),
        ("bfloat16", [1.5, -2.0, 3.0]), ("int8", [1, -2, 127]), ("uint8", [1, 2, 255]),
        ("int16", [1, -2, 3]), ("uint16", [1, 2, 65535]), ("int32", [1, -2, 3]),
        ("uint32", [1, 2, 2**32 - 1]), ("int64", [1, -2, 3]), ("uint64", [1, 2, 3]),
        ("int4", [1, -8, 7]), ("uint4", [1, 15, 7]), ("bool", [True, False, True]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("raw", [False, True])
def test_every_element_type_is_decoded(read, name, values, raw):
    code = getattr(onnx.TensorProto, name.upper())
    typed = onnx.helper.make_tensor("w", code, [3], values)
    if raw:
        typed = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(typed), "w")
    model = parse("net (float[3] x) => (float[3] y) { c = Cast <to = 1> (w)  y = Add(x, c) }")
    model.graph.initializer.append(typed)
    y = run_float(read(model), {"x": np.zeros(3)})["y"]
    np.testing.assert_array_equal(y, np.array(values, np.float32))


@pytest.mark.parametrize("name", ["STRING", "COMPLEX64", "FLOAT8E4M3FN", "FLOAT4E2M1"])
def test_other_element_types_are_refused(read, name):
    model = parse("net (float[3] x) => (float[3] y) { y = Add(x, w) }")
    model.graph.initializer.add(name="w", dims=[0], data_type=getattr(onnx.TensorProto, name))
    message = f"'w' has the element type {name.lower()}, which is not supported"
    with pytest.raises(UnsupportedError, match=message):
        read(model)
