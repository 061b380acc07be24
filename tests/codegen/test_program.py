"""Programs of engines that a processor loads through registers: AXI4-Lite, Wishbone, C."""

import json
import subprocess

import numpy as np
import pytest
from plain_ip import check_lints, register_facts, with_files
from sweeps import few
from written_engines import every_memory, with_other_weights

from nnef_hw.boards.interfaces import PlainStreams, find_bus
from nnef_hw.codegen.bus import bus_files, bus_registers
from nnef_hw.codegen.ip import axi_name, axi_wrapper, bus_module
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.hardware.devices import GENERIC, Target
from nnef_hw.host.manifest import PROGRAM, manifest_hash
from nnef_hw.host.streams import to_stream
from nnef_hw.reference import run_fixed
from nnef_hw.sim.cocotb_bench import run_tests

pytestmark = pytest.mark.system

TARGET = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0, loads_program=True)
HASH = bytes(range(0x10, 0x30))
FRAMES = 3


class Loadable:
    """An engine behind a bus, with two programs: that of its Verilog and that of other weights."""

    def __init__(self, fix, rng, bus, with_data=False, build_hash=HASH):
        self.streams = PlainStreams(find_bus(bus), with_data, with_program=True)
        graph = fix(every_memory(rng))
        plan = schedule_engine(graph, TARGET, target_fps=1000)
        self.plans = {"first": plan}
        self.graphs = {"first": graph}
        self.plans["second"], self.graphs["second"] = with_other_weights(plan, fix, rng)
        qtype = graph.tensor("x").qtype
        self.codes = {"x": rng.integers(qtype.lo, qtype.hi + 1, (FRAMES, 4, 3, 3))}
        self.accelerator = to_verilog(EngineAccelerator(plan), name="my", prefix="my")
        self.files = bus_files(plan, "my", self.streams, build_hash, self.accelerator)
        self.registers = bus_registers(plan, "my", self.streams, build_hash)

    @property
    def verilog(self):
        """All that the module with the bus consists of."""
        return with_files(self.accelerator, self.files)

    def results(self, name):
        """Return the results of a program, by tensor."""
        return run_fixed(self.graphs[name], self.codes)

    def _frames(self, tensors, ports, codes):
        return {
            axi_name(port): [
                frame.tobytes().hex()
                for frame in to_stream(codes[tensor], port).astype(
                    np.int8 if port.signed else np.uint8
                )
            ]
            for tensor, port in zip(tensors, ports, strict=True)
        }

    def bench(self):
        """Return the files that the bench reads."""
        plan, graph = self.plans["first"], self.graphs["first"]
        expected = {
            name: self._frames(graph.outputs, plan.outputs, self.results(name))
            for name, graph in self.graphs.items()
        }
        return register_facts(self.registers) | {
            "holes": [],
            "frames": self._frames(graph.inputs, plan.inputs, self.codes) | expected["first"],
            "expected": expected, "clock": self.streams.bus.clock, "latency": plan.latency,
            "programs": {name: plan.loaded.hex() for name, plan in self.plans.items()},
        }  # fmt: skip


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("bus", "with_data"), few([("axi4-lite", False), ("wishbone", True)], [("wishbone", True)])
)
def test_software_loads_programs(bus, with_data, fix, rng, tmp_path):
    pytest.importorskip("cocotbext.axi")
    pytest.importorskip("cocotbext.wishbone")
    built = Loadable(fix, rng, bus, with_data)
    first, second = (built.results(name) for name in built.graphs)
    assert any((first[a] != second[b]).any() for a, b in zip(first, second, strict=True))
    environment = {"BUS_BENCH": json.dumps(built.bench())}
    top = bus_module("my", built.streams.bus)
    tests = run_tests(built.verilog, "program_bench", tmp_path, top=top, environment=environment)
    assert tests == 3


@pytest.mark.verilator
def test_a_program_on_a_zynq_loads_the_weights_of_another_build(fix, rng, tmp_path):
    pytest.importorskip("cocotbext.axi")
    built = Loadable(fix, rng, "axi4-lite")
    base = None
    for name, plan in built.plans.items():
        graph = built.graphs[name]
        manifest = make_manifest(
            graph, plan, generator="test", link=built.streams, module="my", bitstream=base
        ) | {"files": {"ip": "ip"}}
        base = base or manifest_hash(manifest)
        (tmp_path / name / "ip").mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_text(json.dumps(manifest))
        (tmp_path / name / PROGRAM).write_bytes(plan.loaded)
    files = bus_files(built.plans["first"], "my", built.streams, base, built.accelerator)
    verilog = with_files(built.accelerator, files)
    codes = {name: x.tolist() for name, x in built.codes.items()}
    bench = {
        "build": str(tmp_path / "first"), "other": str(tmp_path / "second"), "inputs": codes,
        "outputs": {k: v.tolist() for k, v in built.results("first").items()},
        "other_outputs": {k: v.tolist() for k, v in built.results("second").items()},
        "sources": ["s_axis"], "sinks": ["m_axis"],
    }  # fmt: skip
    environment = {"DMA_BENCH": json.dumps(bench)}
    top = bus_module("my", built.streams.bus)
    assert run_tests(verilog, "dma_bench", tmp_path, top=top, environment=environment) == 2


@pytest.mark.verilator
@pytest.mark.icarus
def test_lints_warn_of_nothing_that_is_not_meant(fix, rng, tmp_path):
    """Of the module with the bus, and of that without, which writes no program."""
    built = Loadable(fix, rng, "axi4-lite")
    axis = axi_wrapper(built.plans["first"], built.graphs["first"], "my")
    check_lints(built.verilog + axis, ["my_axi4_lite", "my_axis"], tmp_path)


def test_c_writes_a_program_to_the_registers(compiler, fix, rng, tmp_path):
    """In memory that keeps what was written last: the order is the bench's to see."""
    built = Loadable(fix, rng, "wishbone")
    for path, text in built.files.items():
        if path.suffix == ".h":
            (tmp_path / path.name).write_text(text)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "program.h"\n'
        "static volatile uint32_t registers[64];\n"
        "int main(void) {\n"
        "    registers[MY_CONTROL / 4] = MY_CONTROL_RUN_MASK;\n"
        "    registers[MY_PROGRAM_LEFT / 4] = 7;\n"
        '    printf("%u %u ", my_load_program(registers, MY_PROGRAM_IMAGE), MY_PROGRAM_WORDS);\n'
        '    printf("%u %u\\n", registers[MY_CONTROL / 4], registers[MY_PROGRAM / 4]);\n'
        "    return fwrite(MY_PROGRAM_IMAGE, 4, MY_PROGRAM_WORDS, stdout) == 0;\n}\n"
    )
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "main"], check=True, capture_output=True).stdout
    line, image = said.split(b"\n", 1)
    loaded = built.plans["first"].loaded
    last = int.from_bytes(loaded[-4:], "little")
    assert line.decode() == f"7 {len(loaded) // 4} 5 {last}"
    assert image == loaded
