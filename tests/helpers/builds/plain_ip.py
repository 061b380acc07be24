"""Networks as plain IP: their samples, what a bench reads, what linters and IP-XACT say of it."""

import re
import subprocess
from xml.etree import ElementTree as ET

from nnef_hw.codegen.lint import lint_waivers
from nnef_hw.flow.fixed import fix_model
from nnef_hw.hardware.devices import GENERIC, Target
from nnef_hw.quantize import Scheme
from nnef_hw.registers.table import CONSTANT, WRITE
from nnef_hw.samples.samples import Samples
from nnef_hw.system.tools import find_tool
from nnef_hw.testing import GraphBuilder

TARGET = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)
SPIRIT = {"s": "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"}


def two_by_two(rng, size=3):
    """Two inputs and two outputs; with 3x3 pixels no frame has a multiple of a word's bits."""
    g = GraphBuilder()
    x, y = g.input("left image", [1, 2, size, size]), g.input("right", [1, 1, size, size])
    out = g.op("add", g.conv(x, rng.normal(size=[1, 2, 3, 3]), padding=1), y, name="sum")
    return g.build(out, g.op("tanh", out, name="tanh"))


def six_bits(graph, rng):
    """Return a network of 6-bit codes, and samples of it."""
    samples = Samples({
        name: rng.uniform(-1, 1, (20, *graph.tensor(name).shape[1:])) for name in graph.inputs
    })
    fixed, _ = fix_model(graph, samples, Scheme(activation_bits=6))
    return fixed, samples


def with_files(accelerator, files):
    """Return all that the module with the bus consists of."""
    return "".join([accelerator, *(x for path, x in files.items() if path.suffix == ".v")])


def register_facts(registers):
    """Return addresses and first values of the registers that a bench asks for."""
    words = dict(registers.addressed())
    first = {access: {} for access in (CONSTANT, WRITE)}
    for register in words.values():
        if register.fields[0].access in first:
            first[register.fields[0].access][register.name] = register.init
    return {
        "addresses": {register.name: address for address, register in words.items()},
        "constants": first[CONSTANT], "inits": first[WRITE],
    }  # fmt: skip


def check_lints(verilog, tops, folder):
    """Verilator and Icarus Verilog warn of nothing in any of the modules."""
    source, waivers = folder / "top.v", folder / "waivers.vlt"
    source.write_text(verilog)
    waivers.write_text(lint_waivers((source.name,)))
    tool = find_tool("verilator")
    for top in tops:
        for command, environment in (
            ([*tool.command, "--lint-only", "-Wall", "--top-module", top, waivers, source],
             dict(tool.environment)),
            (["iverilog", "-Wall", "-g2012", "-s", top, "-o", folder / "out", source], None),
        ):  # fmt: skip
            run = subprocess.run(command, env=environment, capture_output=True, text=True)
            warnings = [line for line in run.stderr.splitlines() if "timescale" not in line]
            assert (run.returncode, warnings) == (0, []), "\n".join(warnings)


def module_ports(verilog, module):
    """Return the direction and the width of every port of a module."""
    head = re.search(rf"module {module} \((.*?)\);", verilog, re.DOTALL)[1]
    return {
        name: (direction, int(width or 1))
        for direction, width, names in re.findall(
            r"(in|out)put (?:\[(\d+)-1:0\] )?((?:\w+(?:, )?)+)", head
        )
        for name in names.split(", ")
    }


class Component:
    """Ports, files and names in the XML of an IP-XACT component."""

    def __init__(self, text):
        self.root = root = ET.fromstring(text.encode())
        self.ports = {
            port.findtext("s:name", None, SPIRIT): (
                port.findtext("s:wire/s:direction", None, SPIRIT),
                int(port.findtext("s:wire/s:vector/s:left", "0", SPIRIT)) + 1,
            )
            for port in root.findall("s:model/s:ports/s:port", SPIRIT)
        }
        self.values = {x.get(self.tag("id")): x.text for x in root.iter(self.tag("value"))}
        self.files = {x.text for x in root.findall("s:fileSets/s:fileSet/s:file/s:name", SPIRIT)}

    @staticmethod
    def tag(name):
        """Return a name with that of its schema."""
        return f"{{{SPIRIT['s']}}}{name}"
