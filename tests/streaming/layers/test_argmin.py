"""The index of the smallest channel: from NNEF and ONNX to codes and cycles of hardware."""

import numpy as np
import pytest
from sweeps import covering

from nnef_hw.arithmetic.numerics import argmin_codes
from nnef_hw.boards import find_board
from nnef_hw.frontend import load
from nnef_hw.reference import run_fixed
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 4

NNEF = """version 1.0;
graph net(x) -> (y)
{
    x = external<scalar>(shape = [1, 5, 3, 2]);
    y = argmin_reduce(x, axes = [1]);
}
"""
ONNX = """<ir_version: 9, opset_import: ["" : 18]>
net (float[1,5,3,2] x) => (int64[1,1,3,2] y) { y = ArgMin <axis = 1> (x) }
"""


def read_nnef(folder):
    (folder / "graph.nnef").write_text(NNEF)
    return load(folder)


def read_onnx(folder):
    onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")
    onnx.save(onnx.parser.parse_model(ONNX), folder / "net.onnx")
    return load(folder / "net.onnx")


@pytest.mark.parametrize(
    ("read", "symmetric", "bits"),
    covering([read_nnef, read_onnx], [True, False], [2, 8]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_from_a_file_to_hardware(read, symmetric, bits, tmp_path, fix, simulate):
    """Codes of two bits are full of ties; symmetric ones are signed."""
    graph = fix(read(tmp_path), activation_bits=bits, symmetric=symmetric)
    source = graph.tensor("x").qtype
    assert (source.bits, source.signed) == (bits, symmetric)
    plan = schedule(graph, find_board("ice40"))
    assert [block.kind for block in plan.blocks] == ["argmin"]
    simulate(plan, graph).check(FRAMES)


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("pysim", marks=pytest.mark.nightly),
        pytest.param("verilator", marks=pytest.mark.verilator),
    ],
)
def test_behind_a_layer_and_along_rows(engine, fix, simulate, rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 4, 3]), rng.normal(size=(3, 2, 2, 2)))
    nearest = g.op("argmin_reduce", x, axes=[1], name="nearest")
    lowest = g.op("argmin_reduce", x, axes=[2], name="lowest")
    graph = fix(g.build(nearest, lowest))
    plan = schedule(graph, find_board("icebreaker"))
    assert [block.kind for block in plan.blocks].count("argmin") == 2
    simulate(plan, graph, engine).check(FRAMES)


def test_the_lowest_of_several_minima(fix, tmp_path):
    graph = fix(read_nnef(tmp_path))
    codes = np.array([[7, 3, 3, 9, 3], [0, 0, 0, 0, 0], [9, 8, 7, 6, 5]])
    x = np.repeat(codes, 6, axis=1).reshape(3, 5, 3, 2)
    assert (run_fixed(graph, {"x": x})["y"] == argmin_codes(x)).all()
    assert argmin_codes(codes)[:, 0].tolist() == [1, 0, 4]
