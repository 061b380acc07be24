"""The driver for AXI DMA with an accelerator and its registers, in a simulated AXI system."""

import json

import numpy as np
import pytest
from plain_ip import TARGET, six_bits, two_by_two, with_files

from nnef_hw.boards.interfaces import PlainStreams, find_bus
from nnef_hw.codegen.bus import bus_files
from nnef_hw.codegen.ip import axi_name, bus_module
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.host.manifest import manifest_hash
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.sim.cocotb_bench import run_tests
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

pytestmark = pytest.mark.system

FRAMES = 5


@pytest.mark.verilator
def test_a_program_gets_the_integers_of_the_model(rng, tmp_path):
    """Two inputs and two outputs, each with a channel; codes of 6 bits in bytes."""
    pytest.importorskip("cocotbext.axi")
    fixed, samples = six_bits(two_by_two(rng), rng)
    plan, streams = schedule(fixed, TARGET), PlainStreams(find_bus("axi4-lite"))
    manifest = make_manifest(fixed, plan, generator="test", link=streams, module="my")
    manifest |= {"files": {"ip": "ip"}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    accelerator = to_verilog(Accelerator(plan, fixed), name="my", prefix="my")
    files = bus_files(plan, "my", streams, manifest_hash(manifest), accelerator)
    verilog = with_files(accelerator, files)
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
