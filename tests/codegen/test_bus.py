"""Registers on a bus beside plain IP: driven by other people's models of AXI4-Lite and Wishbone."""

import json

import numpy as np
import pytest
from cli_cases import tiny_graph
from plain_ip import (
    SPIRIT,
    TARGET,
    Component,
    check_lints,
    module_ports,
    register_facts,
    six_bits,
    two_by_two,
    with_files,
)
from recurrent_graphs import delay_line
from sweeps import few

from nnef_hw.boards.interfaces import BUSES, PlainStreams, find_bus
from nnef_hw.codegen.bus import MOST_WORDS, bus_files, bus_registers
from nnef_hw.codegen.ip import axi_name, bus_module
from nnef_hw.codegen.ipxact import component_xml
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError
from nnef_hw.host.streams import to_stream
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.sim.cocotb_bench import run_tests
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

HASH = bytes(range(0xA0, 0xC0))
FRAMES = 6


class Built:
    """A network as plain IP with registers, and what software has to know of it."""

    def __init__(self, graph, streams, rng, name="my"):
        self.name, self.streams = name, streams
        self.fixed, samples = six_bits(graph, rng)
        self.plan = schedule(self.fixed, TARGET)
        self.codes = quantize_inputs(self.fixed, samples[:FRAMES].inputs)
        self.accelerator = to_verilog(Accelerator(self.plan, self.fixed), name=name, prefix=name)
        self.files = bus_files(self.plan, name, streams, HASH, self.accelerator)
        self.registers = bus_registers(self.plan, name, streams, HASH)

    @property
    def verilog(self):
        """Return all that the module with the bus consists of."""
        return with_files(self.accelerator, self.files)

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
        facts, end = register_facts(self.registers), 1 << self.registers.address_bits
        return facts | {
            "holes": list(range(4 * len(facts["addresses"]), end, 4)), "frames": frames,
            "clock": self.streams.bus.clock, "latency": self.plan.latency,
        }  # fmt: skip


NETWORKS = {
    "one": lambda rng: tiny_graph(),
    "several": two_by_two,
    "states": lambda rng: delay_line(),
}
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
    built = Built(two_by_two(rng), PlainStreams(bus, with_data), rng)
    check_lints(built.verilog, [bus_module("my", bus)], tmp_path)


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
    built = Built(two_by_two(rng), PlainStreams(find_bus("axi4-lite"), with_data), rng)
    text = component_xml(built.plan, built.fixed, "my", built.streams, built.registers)
    component = Component(text)
    root, found = component.root, component.ports
    [verilog] = [text for path, text in built.files.items() if path.suffix == ".v"]
    assert found == module_ports(verilog, "my_axi4_lite")
    mapped = [
        x.text for x in root.findall("s:busInterfaces/*/s:portMaps/*/s:physicalPort/s:name", SPIRIT)
    ]
    assert sorted(mapped) == sorted(found)
    registers = {
        x.findtext("s:name", None, SPIRIT): int(x.findtext("s:addressOffset", None, SPIRIT), 16)
        for x in root.iter(component.tag("register"))
    }
    assert registers == {x.name: address for address, x in built.registers.addressed()}
    [slave] = root.iter(component.tag("memoryMapRef"))
    assert slave.get(component.tag("memoryMapRef")) == "s_axi"
    buses = component.values["BUSIFPARAM_VALUE.ACLK.ASSOCIATED_BUSIF"].split(":")
    assert (len(buses) == 1) == with_data
    assert buses[-1] == "s_axi"
    assert component.files == {"rtl/top.v", "ip/my_axi4_lite.v"}
