"""Registers on a bus beside plain IP: driven by other people's models of AXI4-Lite and Wishbone."""

import json
import re
import subprocess
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from cli_cases import tiny_graph
from recurrent_graphs import delay_line
from sweeps import few

from nnef_hw.boards.interfaces import BUSES, PlainStreams, find_bus
from nnef_hw.codegen.bus import MOST_WORDS, bus_files, bus_registers
from nnef_hw.codegen.ip import axi_name, bus_module
from nnef_hw.codegen.ipxact import component_xml
from nnef_hw.codegen.lint import lint_waivers
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError
from nnef_hw.flow.fixed import fix_model
from nnef_hw.hardware.devices import GENERIC, Target
from nnef_hw.host.streams import to_stream
from nnef_hw.quantize import Scheme
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.registers.table import CONSTANT, WRITE
from nnef_hw.samples.samples import Samples
from nnef_hw.sim.cocotb_bench import run_tests
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.system.tools import find_tool
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

TARGET = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)
HASH = bytes(range(0xA0, 0xC0))
FRAMES = 6


def several(rng):
    """Two inputs and two outputs, the widths of whose frames are no multiples of a word."""
    g = GraphBuilder()
    x, y = g.input("left image", [1, 2, 3, 3]), g.input("right", [1, 1, 3, 3])
    out = g.op("add", g.conv(x, rng.normal(size=[1, 2, 3, 3]), padding=1), y, name="sum")
    return g.build(out, g.op("tanh", out, name="tanh"))


class Built:
    """A network as plain IP with registers, and what software has to know of it."""

    def __init__(self, graph, streams, rng, name="my"):
        self.name, self.streams = name, streams
        samples = Samples({
            tensor: rng.uniform(-1, 1, (20, *graph.tensor(tensor).shape[1:]))
            for tensor in graph.inputs
        })
        self.fixed, _ = fix_model(graph, samples, Scheme(activation_bits=6))
        self.plan = schedule(self.fixed, TARGET)
        self.codes = quantize_inputs(self.fixed, samples[:FRAMES].inputs)
        self.accelerator = to_verilog(Accelerator(self.plan, self.fixed), name=name, prefix=name)
        self.files = bus_files(self.plan, name, streams, HASH, self.accelerator)
        self.registers = bus_registers(self.plan, name, streams, HASH)

    @property
    def verilog(self):
        """Return all that the module with the bus consists of."""
        texts = [text for path, text in self.files.items() if path.suffix == ".v"]
        return "".join([self.accelerator, *texts])

    def bench(self):
        """Return what the bench reads."""
        frames = {}
        for tensors, ports, codes in (
            (self.fixed.inputs, self.plan.inputs, self.codes),
            (self.fixed.outputs, self.plan.outputs, run_fixed(self.fixed, self.codes)),
        ):
            for tensor, port in zip(tensors, ports, strict=True):
                kind = np.int8 if port.signed else np.uint8
                stream = to_stream(codes[tensor], port).astype(kind)
                frames[axi_name(port)] = [frame.tobytes().hex() for frame in stream]
        words = dict(self.registers.addressed())
        first = {access: {} for access in (CONSTANT, WRITE)}
        for register in words.values():
            if register.fields[0].access in first:
                first[register.fields[0].access][register.name] = register.init
        end = 1 << self.registers.address_bits
        return {
            "addresses": {register.name: address for address, register in words.items()},
            "constants": first[CONSTANT], "inits": first[WRITE],
            "holes": list(range(4 * len(words), end, 4)), "frames": frames,
            "clock": self.streams.bus.clock, "latency": self.plan.latency,
        }  # fmt: skip


NETWORKS = {"one": lambda rng: tiny_graph(), "several": several, "states": lambda rng: delay_line()}
CASES = [
    ("one", "axi4-lite", False), ("several", "axi4-lite", True),
    ("states", "wishbone", False), ("one", "wishbone", True),
]  # fmt: skip


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("network", "bus", "with_data"), few(CASES, [case for case in CASES if case[0] != "one"])
)
def test_software_gets_the_integers_of_the_model(network, bus, with_data, rng, tmp_path):
    pytest.importorskip("cocotbext.axi")
    pytest.importorskip("cocotbext.wishbone")
    built = Built(NETWORKS[network](rng), PlainStreams(find_bus(bus), with_data), rng)
    top = bus_module("my", built.streams.bus)
    environment = {"BUS_BENCH": json.dumps(built.bench())}
    tests = run_tests(built.verilog, "bus_bench", tmp_path, top=top, environment=environment)
    assert tests == 5


@pytest.mark.verilator
@pytest.mark.icarus
@pytest.mark.parametrize(("bus", "with_data"), list(zip(BUSES, [False, True], strict=True)))
def test_lints_warn_of_nothing_that_is_not_meant(bus, with_data, rng, tmp_path):
    built = Built(several(rng), PlainStreams(bus, with_data), rng)
    source, waivers = tmp_path / "top.v", tmp_path / "waivers.vlt"
    source.write_text(built.verilog)
    waivers.write_text(lint_waivers((source.name,)))
    tool, top = find_tool("verilator"), bus_module("my", bus)
    for command, environment in (
        ([*tool.command, "--lint-only", "-Wall", "--top-module", top, waivers, source],
         dict(tool.environment)),
        (["iverilog", "-Wall", "-g2012", "-s", top, "-o", tmp_path / "out", source], None),
    ):  # fmt: skip
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        warnings = [line for line in run.stderr.splitlines() if "timescale" not in line]
        assert (run.returncode, "\n".join(warnings)) == (0, "")


def test_registers_have_a_name_that_no_layer_has(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 4]), name="registers_front")
    built = Built(g.build(x), PlainStreams(find_bus("wishbone")), rng)
    assert "module my_registers_front" in built.accelerator
    [text] = [text for path, text in built.files.items() if path.suffix == ".v"]
    assert "module my_registers2_front" in text


def test_long_frames_are_refused_with_numbers(rng):
    g = GraphBuilder()
    graph = g.build(g.op("tanh", g.input("x", [1, 1, 1, 4 * MOST_WORDS + 1])))
    with pytest.raises(TargetError, match=r"frames of 4,097 words .* take 4,096"):
        Built(graph, PlainStreams(find_bus("wishbone"), with_data=True), rng)


@pytest.mark.parametrize("with_data", [False, True])
def test_a_component_has_registers_and_the_ports_of_the_module(with_data, rng):
    built = Built(several(rng), PlainStreams(find_bus("axi4-lite"), with_data), rng)
    text = component_xml(built.plan, built.fixed, "my", built.streams, built.registers)
    root = ET.fromstring(text.encode())
    spirit = {"s": "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"}
    found = {
        port.findtext("s:name", None, spirit): (
            port.findtext("s:wire/s:direction", None, spirit),
            int(port.findtext("s:wire/s:vector/s:left", "0", spirit)) + 1,
        )
        for port in root.findall("s:model/s:ports/s:port", spirit)
    }
    [verilog] = [text for path, text in built.files.items() if path.suffix == ".v"]
    head = re.search(r"module my_axi4_lite \((.*?)\);", verilog, re.DOTALL)[1]
    assert found == {
        name: (direction, int(width or 1))
        for direction, width, names in re.findall(
            r"(in|out)put (?:\[(\d+)-1:0\] )?((?:\w+(?:, )?)+)", head
        )
        for name in names.split(", ")
    }
    mapped = [
        x.text for x in root.findall("s:busInterfaces/*/s:portMaps/*/s:physicalPort/s:name", spirit)
    ]
    assert sorted(mapped) == sorted(found)
    registers = {
        x.findtext("s:name", None, spirit): int(x.findtext("s:addressOffset", None, spirit), 16)
        for x in root.iter(f"{{{spirit['s']}}}register")
    }
    assert registers == {x.name: address for address, x in built.registers.addressed()}
    [slave] = root.iter(f"{{{spirit['s']}}}memoryMapRef")
    assert slave.get(f"{{{spirit['s']}}}memoryMapRef") == "s_axi"
    values = {x.get(f"{{{spirit['s']}}}id"): x.text for x in root.iter(f"{{{spirit['s']}}}value")}
    buses = values["BUSIFPARAM_VALUE.ACLK.ASSOCIATED_BUSIF"].split(":")
    assert (len(buses) == 1) == with_data
    assert buses[-1] == "s_axi"
    files = {x.text for x in root.findall("s:fileSets/s:fileSet/s:file/s:name", spirit)}
    assert files == {"rtl/top.v", "ip/my_axi4_lite.v"}
