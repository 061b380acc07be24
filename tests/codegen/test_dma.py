"""The driver for AXI DMA with an accelerator and its registers, in a simulated AXI system."""

import json

import numpy as np
import pytest

from nnef_hw.boards.interfaces import PlainStreams, find_bus
from nnef_hw.codegen.bus import bus_files
from nnef_hw.codegen.ip import axi_name, bus_module
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.flow.fixed import fix_model
from nnef_hw.hardware.devices import GENERIC, Target
from nnef_hw.host.manifest import manifest_hash
from nnef_hw.quantize import Scheme
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.samples.samples import Samples
from nnef_hw.sim.cocotb_bench import run_tests
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

TARGET = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)
FRAMES = 5


@pytest.mark.verilator
def test_a_program_gets_the_integers_of_the_model(rng, tmp_path):
    """Two inputs and two outputs, each with a channel; codes of 6 bits in bytes."""
    pytest.importorskip("cocotbext.axi")
    g = GraphBuilder()
    x, y = g.input("left image", [1, 2, 3, 3]), g.input("right", [1, 1, 3, 3])
    out = g.op("add", g.conv(x, rng.normal(size=[1, 2, 3, 3]), padding=1), y, name="sum")
    graph = g.build(out, g.op("tanh", out, name="tanh"))
    samples = Samples({
        tensor: rng.uniform(-1, 1, (20, *graph.tensor(tensor).shape[1:])) for tensor in graph.inputs
    })
    fixed, _ = fix_model(graph, samples, Scheme(activation_bits=6))
    plan, streams = schedule(fixed, TARGET), PlainStreams(find_bus("axi4-lite"))
    manifest = make_manifest(fixed, plan, generator="test", link=streams, module="my")
    manifest |= {"files": {"ip": "ip"}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    accelerator = to_verilog(Accelerator(plan, fixed), name="my", prefix="my")
    files = bus_files(plan, "my", streams, manifest_hash(manifest), accelerator)
    verilog = accelerator + "".join(x for path, x in files.items() if path.suffix == ".v")
    codes = quantize_inputs(fixed, samples[:FRAMES].inputs)
    bench = {
        "build": str(tmp_path),
        "inputs": {name: codes[name].tolist() for name in fixed.inputs},
        "outputs": {
            name: np.asarray(run_fixed(fixed, codes)[name]).tolist() for name in fixed.outputs
        },
        "sources": [axi_name(port) for port in plan.inputs],
        "sinks": [axi_name(port) for port in plan.outputs],
    }
    environment = {"DMA_BENCH": json.dumps(bench)}
    top = bus_module("my", streams.bus)
    assert run_tests(verilog, "dma_bench", tmp_path, top=top, environment=environment) == 2
