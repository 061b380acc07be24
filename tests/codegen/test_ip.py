"""Plain IP: what is written, and that the AXI4-Stream wrapper carries the accelerator's frames."""

import re

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

TARGET = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)


def port(**changes):
    return Port(**{"tensor": "x", "image": (2, 2, 3), "bits": 8, "signed": False} | changes)


@pytest.fixture
def network(rng):
    """A network of 6-bit codes, and samples of it."""
    graph = tiny_graph()
    shape = graph.tensor(graph.inputs[0]).shape
    samples = Samples({graph.inputs[0]: rng.uniform(-1, 1, (20, *shape[1:]))})
    fixed, _ = fix_model(graph, samples, Scheme(activation_bits=6))
    return fixed, samples


def hexadecimal(codes, stream):
    kind = np.int8 if stream.signed else np.uint8
    return "".join(frame.astype(kind).tobytes().hex() + "\n" for frame in to_stream(codes, stream))


@pytest.mark.verilator
def test_frames_pass_the_wrapper_under_idle_and_back_pressure(network, tmp_path):
    pytest.importorskip("cocotbext.axi")
    fixed, samples = network
    plan = schedule(fixed, TARGET)
    wrapper = axi_wrapper(plan, plan.input, plan.output, "axis")
    codes = quantize_inputs(fixed, samples[:6].inputs)
    expected = run_fixed(fixed, codes)[fixed.outputs[0]]
    (tmp_path / "input.hex").write_text(hexadecimal(codes[fixed.inputs[0]], plan.input))
    (tmp_path / "expected.hex").write_text(hexadecimal(expected, plan.output))
    verilog = to_verilog(Accelerator(plan, fixed)) + wrapper
    environment = {"AXI_BENCH_VECTORS": str(tmp_path)}
    assert run_tests(verilog, "axi_bench", tmp_path, top="axis", environment=environment) == 4


@pytest.mark.parametrize(
    ("changes", "width"), [({}, 8), ({"bits": 5, "lanes": 3}, 24), ({"bits": 9, "lanes": 2}, 32)]
)
def test_codes_are_in_whole_bytes(changes, width):
    assert axi_width(port(**changes)) == width


def test_signed_results_are_extended(network):
    plan = schedule(network[0], TARGET)
    text = axi_wrapper(plan, port(), port(bits=6, signed=True, lanes=2), "axis")
    assert "output [16-1:0] m_axis_tdata" in text
    assert "{{2{result[11]}}, result[6 +: 6], {2{result[5]}}, result[0 +: 6]}" in text
    text = axi_wrapper(plan, port(), port(bits=6, lanes=2), "axis")
    assert "{{2{1'b0}}, result[6 +: 6], {2{1'b0}}, result[0 +: 6]}" in text


def test_core_file_names_the_files(network):
    text = fusesoc_core(schedule(network[0], TARGET), "axis")
    assert text.startswith("CAPI=2:\n")
    assert re.search(r"files:\n +- \.\./rtl/top\.v\n +- axis\.v\n", text)
    assert "toplevel: axis" in text
