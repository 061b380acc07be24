"""What is printed of a graph can be read back."""

import collections
import zlib
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from random_graphs import MADE_BY_PASSES, OPERATORS, RandomGraph
from streamable_graphs import random_networks

from nnef_hw.arithmetic.numerics import QType, Requant
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant
from nnef_hw.errors import ErrorGroup, Location, ModelError, UnsupportedError
from nnef_hw.frontend import load, save
from nnef_hw.ir import Graph, Node, Quantization, Stage, State, Tensor, format_graph, parse_graph
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize

SEEDED = settings(derandomize=True, database=None, deadline=None)


def assert_equal(one, other, path="graph"):
    """Compare everything, types and the order of names too."""
    if isinstance(one, np.generic):
        one = one.item()
    assert type(one) is type(other), path
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, path
        np.testing.assert_array_equal(one, other, path, strict=True)
        assert (np.signbit(one) == np.signbit(other)).all() if one.dtype.kind == "f" else True, path
    elif is_dataclass(one):
        for field in fields(one):
            if field.init:
                key = field.name
                assert_equal(getattr(one, key), getattr(other, key), f"{path}.{key}")
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for key, value in one.items():
            assert_equal(value, other[key], f"{path}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), path
        for place, (item, twin) in enumerate(zip(one, other, strict=True)):
            assert_equal(item, twin, f"{path}[{place}]")
    else:
        assert one == other or one != one, path


def assert_reads_back(graph):
    text = format_graph(graph)
    again = parse_graph(text)
    assert_equal(graph, again)
    assert format_graph(again) == text


@pytest.mark.parametrize("op", [*OPERATORS, *MADE_BY_PASSES])
def test_every_operator_reads_back(op):
    rng = np.random.default_rng(zlib.crc32(op.encode()))
    for _ in range(5):
        net = RandomGraph(rng)
        net.apply(op)
        net.keep_state()
        assert_reads_back(net.build())


def test_every_stage_reads_back():
    stages = collections.Counter()

    @settings(SEEDED, max_examples=25, suppress_health_check=list(HealthCheck))
    @given(network=random_networks())
    def run(network):
        graph = network.graph
        rng = np.random.default_rng(network.seed)
        samples = {
            name: rng.normal(size=(2, *graph.tensor(name).shape[1:])) for name in graph.inputs
        }
        assert_reads_back(graph)
        try:
            canonical = simplify(graph)
            fixed = quantize(canonical, samples, Scheme(**network.scheme))
        except (ErrorGroup, UnsupportedError):
            return
        for stage in (canonical, fixed):
            assert_reads_back(stage)
            stages[stage.stage] += 1

    run()
    assert stages["canonical"] == stages["fixed"] > 20


def everything():
    """A graph with everything that graphs can have."""
    quant = Quantization("linear_quantize", {"min": -1.0, "max": np.ones((2, 1)), "bits": 8})
    body = Graph("body", ("a",), ("a",), {"a": Tensor("a", ())}, ())
    place = Location("dir/it's.nnef", 3, 7, 'y = "f"(x);\\')
    tensors = [
        Tensor("x", (1, 2), qtype=QType(8, signed=True, scale=0.1, zero_point=-3)),
        Tensor("output", (2, 1), quant=quant, location=Location("a file")),
        Tensor("weights/0 é", (2, 0), data=np.zeros((2, 0)), label="l"),
        Tensor("f", (3,), data=np.array([0.1, -np.inf, np.nan], np.float32)),
        Tensor("z", (2,), data=np.array([0.0, -0.0])),
        Tensor("one", (2, 2), "integer", np.full((2, 2), -7, np.int8)),
        Tensor("b", (), "logical", np.array(True)),
        Tensor("s", (1, 2)),
        Tensor("y", (1, 2), location=place),
        Tensor("lonely", (4,)),
        Tensor("scales", (2,), qtype=QType(9, False, (0.5, 0.25), 0, narrow=False)),
    ]
    attrs = {
        "body": body, "list": [1, (2,), ()], "none": None, "table": np.arange(3), "text": "a'b\n",
        "flag": True, "low": -np.inf, "high": np.inf, "small": 1e-300, "nan": float("nan"),
        "requant": Requant((1, 2), 3, 0, -8, 7),
        "add": TfliteAddRequant((1, 2, 3), (0, -1, 2), 0, -128, 127),
    }  # fmt: skip
    return Graph(
        "the net", ("x",), ("y", "x", "y"), {tensor.name: tensor for tensor in tensors},
        (Node("f", ("x", "weights/0 é", "f"), ("y", "output", "scales"), attrs, place),),
        states={"s": State(np.array([[0.5, 2.0]], np.float32), "y", "kept/s")},
    )  # fmt: skip


def test_everything_reads_back():
    assert_reads_back(everything())


@SEEDED
@example(0x15AE43FD)  # its shortest text, 7.038531e-26, is another one's, rounded twice
@given(st.integers(0, 2**31 - 1))
def test_every_float_reads_back(bits):
    value = np.array([bits, 0], np.uint32).view(np.float32)
    graph = Graph("net", (), (), {"x": Tensor("x", (2,), data=value)}, ())
    if not np.isnan(value).any():
        assert_reads_back(graph)


def test_the_authors_rounding_reads_back():
    graph = parse_graph("float graph net rounding='tflite' { input x: scalar[1, 2] output x }")
    assert graph.rounding == parse_graph(format_graph(graph)).rounding == "tflite"


def test_ties_to_even_read_back(tmp_path):
    quant = Quantization("zero_point_linear_quantize", {"scale": 0.5, "bits": 8}, True)
    tensors = {"x": Tensor("x", (2,), quant=quant), "y": Tensor("y", (2,))}
    graph = Graph("net", ("x",), ("y",), tensors, (Node("relu", ("x",), ("y",)),))
    assert_reads_back(graph)
    assert parse_graph(format_graph(graph)).tensor("x").quant.ties_to_even
    save(graph.replaced(stage=Stage.CANONICAL), tmp_path / "net.nnef.tgz")
    assert load(tmp_path / "net.nnef.tgz").tensor("x").quant.ties_to_even


def test_large_constants_can_be_left_out():
    graph = Graph("net", (), (), {"x": Tensor("x", (3,), data=np.arange(3.0))}, ())
    other = replace(graph, tensors={"x": Tensor("x", (3,), data=np.arange(3.0)[::-1])})
    texts = [format_graph(each, most_values=2) for each in (graph, other, graph)]
    assert "= <3 values, " in texts[0]
    assert texts[0] == texts[2] != texts[1]
    assert format_graph(graph, most_values=3) == format_graph(graph)
    with pytest.raises(ModelError, match="left out when it was printed; print it whole"):
        parse_graph(texts[0])


LINES = """float graph net {
  input x: scalar[1, 2]
  constant k: scalar[2] = [0.5, 1.0]
  y: scalar[1, 2] = add(x, k, n=3)
  output y
}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "reason"),
    [
        ("float", "double", 1, 1, "float, canonical or fixed is expected instead of 'double'"),
        ("graph", "net", 1, 7, "'graph' is expected instead of 'net'"),
        ("scalar[1, 2]\n", "real[1, 2]\n", 2, 12, "scalar, integer or logical is expected"),
        ("x: scalar[1, 2]\n", "x: scalar[1, -2]\n", 2, 22, "an extent is expected"),
        ("[0.5, 1.0]", "[0.5]", 3, 27, "not values of float64[2]: their shape is [1]"),
        ("[0.5, 1.0]", "[0.5, None]", 3, 27, "not values of float64[2]: they are not numbers"),
        ("[0.5, 1.0]", "int8 [0.5, 1.0]", 3, 32, "int8 cannot hold all of them"),
        ("[0.5, 1.0]", "int8 [500, 1]", 3, 32, "not values of int8[2]"),
        ("[0.5, 1.0]", "[0.5 1.0]", 3, 32, "',' is expected instead of '1.0'"),
        ("k: scalar[2]", "k: scalar[2] size=3", 3, 25, "label or qtype or quant is expected"),
        ("k: scalar[2]", "k: scalar[2] qtype=QType(bits=99)", 3, 31, "QType: "),
        ("constant k", "constant x", 3, 12, "there are two tensors 'x'"),
        ("add(x, k", "add(x, q", 4, 28, "there is no tensor 'q' in graph 'net'"),
        ("n=3", "n=three", 4, 33, "a value is expected instead of 'three'"),
        ("n=3)", "n=3) @(3)", 4, 37, "a place is (file, line, column, text)"),
        ("n=3", r"n='\x'", 4, 33, "a string is expected instead of"),
        ("n=3", "n=$", 4, 33, "'$' begins nothing that a graph is made of"),
        ("output y", "output z", 5, 10, "there is no tensor 'z' in graph 'net'"),
        ("}\n", "", 6, 1, "is expected instead of 'the end'"),
        ("}\n", "}\nx", 7, 1, "the end of the text is expected instead of 'x'"),
    ],
)  # fmt: skip
def test_errors_have_line_and_column(old, new, line, column, reason):
    assert_reads_back(parse_graph(LINES))
    with pytest.raises(ModelError) as caught:
        parse_graph(LINES.replace(old, new, 1), "cases.txt", 11)
    assert reason in str(caught.value)
    place = caught.value.location
    assert (place.file, place.line, place.column) == ("cases.txt", line + 10, column)
