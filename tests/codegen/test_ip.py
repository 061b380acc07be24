"""Plain IP: what is written, and that the AXI4-Stream wrapper carries the accelerator's frames."""

import re
from dataclasses import replace

import numpy as np
import pytest
from cli_cases import tiny_graph

from nnef_hw.build.fixed import fix_model
from nnef_hw.codegen.accelerator import Accelerator
from nnef_hw.codegen.ip import axi_width, axi_wrapper, fusesoc_core
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.devices import GENERIC, Target
from nnef_hw.quantize import Scheme
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.streams import to_stream
from nnef_hw.samples import Samples
from nnef_hw.schedule import Port, schedule
from nnef_hw.sim.cocotb_bench import run_tests
from nnef_hw.testing import GraphBuilder

TARGET = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)


def port(**changes):
    return Port(
        **{"name": "i", "tensor": "x", "image": (2, 2, 3), "bits": 8, "signed": False} | changes
    )


def two_by_two(rng):
    g = GraphBuilder()
    x, y = g.input("left image", [1, 2, 4, 4]), g.input("right", [1, 1, 4, 4])
    out = g.op("add", g.conv(x, rng.normal(size=[1, 2, 3, 3]), padding=1), y, name="sum")
    return g.build(out, g.op("tanh", out, name="tanh"))


@pytest.fixture
def make(rng):
    """Return ``make(graph)``: a network of 6-bit codes, and samples of it."""

    def make(graph):
        samples = Samples({
            name: rng.uniform(-1, 1, (20, *graph.tensor(name).shape[1:])) for name in graph.inputs
        })
        fixed, _ = fix_model(graph, samples, Scheme(activation_bits=6))
        return fixed, samples

    return make


@pytest.fixture
def network(make):
    """A network with one input and one output."""
    return make(tiny_graph())


def hexadecimal(codes, stream):
    kind = np.int8 if stream.signed else np.uint8
    return "".join(frame.astype(kind).tobytes().hex() + "\n" for frame in to_stream(codes, stream))


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("graph", "names"),
    [
        (lambda rng: tiny_graph(), ["m_axis", "s_axis"]),
        (two_by_two, ["m_axis_sum", "m_axis_tanh", "s_axis_left_image", "s_axis_right"]),
    ],
    ids=["one", "several"],
)
def test_frames_pass_the_wrapper_under_idle_and_back_pressure(graph, names, make, rng, tmp_path):
    pytest.importorskip("cocotbext.axi")
    fixed, samples = make(graph(rng))
    plan = schedule(fixed, TARGET)
    codes = quantize_inputs(fixed, samples[:6].inputs)
    for tensors, ports, tensor_codes in (
        (fixed.inputs, plan.inputs, codes),
        (fixed.outputs, plan.outputs, run_fixed(fixed, codes)),
    ):
        for tensor, port in zip(tensors, ports, strict=True):
            name = f"{'s' if port.name[0] == 'i' else 'm'}_axis{port.name[1:]}.hex"
            (tmp_path / name).write_text(hexadecimal(tensor_codes[tensor], port))
    assert sorted(path.stem for path in tmp_path.iterdir()) == names
    verilog = to_verilog(Accelerator(plan, fixed)) + axi_wrapper(plan, "axis")
    environment = {"AXI_BENCH_VECTORS": str(tmp_path)}
    assert run_tests(verilog, "axi_bench", tmp_path, top="axis", environment=environment) == 4


@pytest.mark.parametrize(
    ("changes", "width"), [({}, 8), ({"bits": 5, "lanes": 3}, 24), ({"bits": 9, "lanes": 2}, 32)]
)
def test_codes_are_in_whole_bytes(changes, width):
    assert axi_width(port(**changes)) == width


def test_signed_results_are_extended(network):
    plan = schedule(network[0], TARGET)
    plan = replace(plan, outputs=(port(name="o", bits=6, signed=True, lanes=2),))
    text = axi_wrapper(plan, "axis")
    assert "output [16-1:0] m_axis_tdata" in text
    assert "{{2{result[11]}}, result[6 +: 6], {2{result[5]}}, result[0 +: 6]}" in text
    plan = replace(plan, outputs=(port(name="o", bits=6, lanes=2),))
    text = axi_wrapper(plan, "axis")
    assert "{{2{1'b0}}, result[6 +: 6], {2{1'b0}}, result[0 +: 6]}" in text


def test_core_file_names_the_files(network):
    text = fusesoc_core(schedule(network[0], TARGET), "axis")
    assert text.startswith("CAPI=2:\n")
    assert re.search(r"files:\n +- \.\./rtl/top\.v\n +- axis\.v\n", text)
    assert "toplevel: axis" in text
