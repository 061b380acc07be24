"""Small ONNX models, written where a test wants them, most in ONNX's own text form."""

import pytest

from nnef_hw.cli import main
from nnef_hw.frontend import load

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

HEADER = """<ir_version: {ir}, opset_import: ["" : {opset}{imports}]>
"""


@pytest.fixture
def parse():
    """Return a ModelProto: ``net (float[1,4] x) => (float[1,4] y) { y = Relu(x) }``."""
    return _parse


def _parse(text, opset=21, ir=9, imports=""):
    return onnx.parser.parse_model(HEADER.format(ir=ir, opset=opset, imports=imports) + text)


@pytest.fixture
def write(tmp_path):
    """Write a model, given as message, bytes or text; return its path."""

    def write_model(model, name="model.onnx", **options):
        model = _parse(model, **options) if isinstance(model, str) else model
        content = model if isinstance(model, bytes) else model.SerializeToString()
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write_model


@pytest.fixture
def read(write):
    """Write a model and load it."""

    def read_model(model, *, dims=None, **options):
        return load(write(model, **options), dims=dims)

    return read_model


@pytest.fixture
def check_refused(write, capsys):
    """Return ``check_refused(model, operator, reason)``: one error, located at 'node'."""

    def check(model, operator, reason):
        path = write(model)
        assert main(["check", str(path)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"nnef-hw: {path}: {operator} 'node'")
        assert reason in line

    return check


@pytest.fixture
def make_node():
    """Return a model of one node: arrays are inputs, or initializers if their index is constant."""

    def make(op, *inputs, outputs=1, constant=(), opset=21, **attrs):
        names = [f"x{index}" if x is not None else "" for index, x in enumerate(inputs)]
        results = [f"y{index}" for index in range(outputs)]
        node = onnx.helper.make_node(op, names, results, name="node", **attrs)
        present = [(n, x) for n, x in zip(names, inputs, strict=True) if n]
        graph = onnx.helper.make_graph(
            [node],
            "net",
            [
                onnx.helper.make_tensor_value_info(
                    n, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
                )
                for n, x in present
                if int(n[1:]) not in constant
            ],
            [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in results],
            [onnx.numpy_helper.from_array(x, n) for n, x in present if int(n[1:]) in constant],
        )
        opsets = [onnx.helper.make_opsetid("", opset)]
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)

    return make
