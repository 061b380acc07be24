"""The accelerator on AXI as a component in IP-XACT (IEEE 1685-2009), for AMD's Vivado.

Vivado itself is none of ours: that it takes the file was not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.boards.interfaces import PlainStreams
from nnef_hw.boards.interfaces.bus import AXI4_LITE
from nnef_hw.codegen.ip import AXI_CLOCK, axi_name, axi_width, bus_module
from nnef_hw.ir import Graph
from nnef_hw.registers.table import WORD_BITS, Register, RegisterMap

__all__ = ["COMPONENT", "component_xml"]

COMPONENT = "component.xml"
"""Name of the file in a build's folder."""
SPIRIT = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"
XILINX = "http://www.xilinx.com"
FAMILIES = ("artix7", "spartan7", "kintex7", "zynq", "artixuplus", "kintexuplus", "zynquplus")
"""Families for which Vivado's catalog offers the component, by its names."""
RESET = "aresetn"
REGISTERS = "s_axi"
"""Prefix of the ports of AXI4-Lite, and name of their bus."""
INTERRUPT = "irq"
LEAST_RANGE = 4096
"""Bytes of the least range of addresses that Vivado gives to a peripheral."""
VENDOR, LIBRARY, VERSION = "nnef-hw", "ip", "1.0"
VIEWS = {
    "xilinx_anylanguagesynthesis": ":vivado.xilinx.com:synthesis",
    "xilinx_anylanguagebehavioralsimulation": ":vivado.xilinx.com:simulation",
}
"""Views by name: what each is for."""
STREAM_PARTS = ("TDATA", "TVALID", "TREADY", "TLAST")

Element = ET.Element


def component_xml(
    plan: AcceleratorPlan,
    graph: Graph,
    name: str,
    streams: PlainStreams | None = None,
    registers: RegisterMap | None = None,
) -> str:
    """Return the text of ``component.xml``, which stands in the build's folder.

    Its top module is ``{name}_axis``, or the one with the registers if these are on AXI4-Lite.
    Every stream is a bus of the component, and so are the registers, with their table and an
    interrupt, beside the clock and the reset. ``restart`` of a network with states is a port, but
    for registers, of which it is one.
    """
    ET.register_namespace("spirit", SPIRIT)
    ET.register_namespace("xilinx", XILINX)
    has_registers = streams is not None and streams.bus is AXI4_LITE and registers is not None
    table = registers if has_registers else None
    top = bus_module(name, AXI4_LITE) if has_registers else f"{name}_axis"
    carries = not has_registers or streams is None or not streams.with_data
    inputs, outputs = (plan.inputs, plan.outputs) if carries else ((), ())
    root = Element(_tag("component"))
    for tag, text in (
        ("vendor", VENDOR), ("library", LIBRARY), ("name", top), ("version", VERSION),
    ):  # fmt: skip
        _add(root, tag, text)
    buses = _add(root, "busInterfaces")
    for group, role in ((inputs, "slave"), (outputs, "master")):
        for port in group:
            _bus(buses, axi_name(port), "axis", role, _stream_ports(port))
    associated = [axi_name(port) for port in (*inputs, *outputs)]
    if table is not None:
        associated.append(REGISTERS)
        _register_buses(buses)
    reset = _bus(buses, RESET, "reset", "slave", {"RST": RESET})
    _parameters(reset, RESET, {"POLARITY": "ACTIVE_LOW"})
    clock = _bus(buses, AXI_CLOCK, "clock", "slave", {"CLK": AXI_CLOCK})
    hertz = str(round(plan.clock_mhz * 1e6))
    values = {"ASSOCIATED_BUSIF": ":".join(associated), "ASSOCIATED_RESET": RESET}
    _parameters(clock, AXI_CLOCK, values | {"FREQ_HZ": hertz})
    if table is not None:
        _memory_map(root, table)
    model = _add(root, "model")
    views = _add(model, "views")
    for view, purpose in VIEWS.items():
        entry = _add(views, "view")
        _add(entry, "name", view)
        _add(entry, "envIdentifier", purpose)
        _add(entry, "language", "Verilog")
        _add(entry, "modelName", top)
        _add(_add(entry, "fileSetRef"), "localName", f"{view}_view_fileset")
    ports = _add(model, "ports")
    for wire in ((AXI_CLOCK, "in", 1), (RESET, "in", 1)):
        _port(ports, *wire)
    if table is not None:
        for wire in _register_wires(table):
            _port(ports, *wire)
    elif graph.is_sequential:
        _port(ports, "restart", "in", 1)
    for wire in (*_stream_wires(inputs, "in", "out"), *_stream_wires(outputs, "out", "in")):
        _port(ports, *wire)
    sets = _add(root, "fileSets")
    for view in VIEWS:
        files = _add(sets, "fileSet")
        _add(files, "name", f"{view}_view_fileset")
        for path in ("rtl/top.v", f"ip/{top}.v"):
            file = _add(files, "file")
            _add(file, "name", path)
            _add(file, "fileType", "verilogSource")
    _add(root, "description", f"{plan.model}, a bit-exact accelerator on AXI4-Stream")
    extensions = ET.SubElement(_add(root, "vendorExtensions"), f"{{{XILINX}}}coreExtensions")
    families = ET.SubElement(extensions, f"{{{XILINX}}}supportedFamilies")
    for family in FAMILIES:
        entry = ET.SubElement(families, f"{{{XILINX}}}family")
        entry.set(f"{{{XILINX}}}lifeCycle", "Beta")
        entry.text = family
    ET.SubElement(extensions, f"{{{XILINX}}}displayName").text = top
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _register_buses(buses: Element) -> None:
    """Add the bus of the registers, and their interrupt."""
    wires = {pin.name.removeprefix(f"{REGISTERS}_").upper(): pin.name for pin in AXI4_LITE.pins}
    bus = _bus(buses, REGISTERS, "aximm", "slave", wires)
    slave = bus.find(_tag("slave"))
    assert slave is not None
    ET.SubElement(slave, _tag("memoryMapRef"), {_tag("memoryMapRef"): REGISTERS})
    interrupt = _bus(buses, INTERRUPT, "interrupt", "master", {"INTERRUPT": INTERRUPT})
    _parameters(interrupt, INTERRUPT, {"SENSITIVITY": "LEVEL_HIGH"})


def _memory_map(root: Element, registers: RegisterMap) -> None:
    """Add what stands at which address."""
    entry = _add(_add(root, "memoryMaps"), "memoryMap")
    _add(entry, "name", REGISTERS)
    block = _add(entry, "addressBlock")
    _add(block, "name", "registers")
    _add(block, "baseAddress", "0")
    _add(block, "range", str(max(LEAST_RANGE, 1 << registers.address_bits)))
    _add(block, "width", str(WORD_BITS))
    _add(block, "usage", "register")
    _add(block, "access", "read-write")
    for address, register in registers.addressed():
        word = _add(block, "register")
        _add(word, "name", register.name)
        _add(word, "description", register.description)
        _add(word, "addressOffset", f"{address:#x}")
        _add(word, "size", str(WORD_BITS))
        _add(word, "access", _access(register))


def _access(register: Register) -> str:
    """Return the access of software to a word: that of its fields if these agree."""
    found = {dict(field.access.svd)["access"] for field in register.fields}
    return found.pop() if len(found) == 1 else "read-write"


def _register_wires(registers: RegisterMap) -> Iterator[tuple[str, str, int]]:
    """Yield name, direction and width of the ports of the registers."""
    for pin in AXI4_LITE.pins:
        yield pin.name, "in" if pin.is_input else "out", pin.bits or registers.address_bits
    yield INTERRUPT, "out", 1


def _tag(name: str) -> str:
    return f"{{{SPIRIT}}}{name}"


def _add(parent: Element, tag: str, text: str | None = None) -> Element:
    element = ET.SubElement(parent, _tag(tag))
    element.text = text
    return element


def _bus(buses: Element, name: str, kind: str, role: str, wires: Mapping[str, str]) -> Element:
    """Add an interface of one of Vivado's kinds; ``wires`` are its ports by their logical names."""
    library = "interface" if kind in {"axis", "aximm"} else "signal"
    bus = _add(buses, "busInterface")
    _add(bus, "name", name)
    for tag, suffix in (("busType", ""), ("abstractionType", "_rtl")):
        reference = {"vendor": "xilinx.com", "library": library, "name": kind + suffix}
        ET.SubElement(
            bus, _tag(tag), {_tag(key): x for key, x in (reference | {"version": "1.0"}).items()}
        )
    _add(bus, role)
    maps = _add(bus, "portMaps")
    for logical, physical in wires.items():
        entry = _add(maps, "portMap")
        _add(_add(entry, "logicalPort"), "name", logical)
        _add(_add(entry, "physicalPort"), "name", physical)
    return bus


def _parameters(bus: Element, name: str, values: Mapping[str, str]) -> None:
    parameters = _add(bus, "parameters")
    for key, value in values.items():
        entry = _add(parameters, "parameter")
        _add(entry, "name", key)
        element = _add(entry, "value", value)
        element.set(_tag("id"), f"BUSIFPARAM_VALUE.{name.upper()}.{key}")


def _stream_ports(port: Port) -> dict[str, str]:
    return {part: f"{axi_name(port)}_{part.lower()}" for part in STREAM_PARTS}


def _stream_wires(ports: Sequence[Port], given: str, taken: str) -> Iterator[tuple[str, str, int]]:
    for port in ports:
        wires = _stream_ports(port)
        yield wires["TDATA"], given, axi_width(port)
        yield wires["TVALID"], given, 1
        yield wires["TLAST"], given, 1
        yield wires["TREADY"], taken, 1


def _port(ports: Element, name: str, direction: str, width: int) -> None:
    port = _add(ports, "port")
    _add(port, "name", name)
    wire = _add(port, "wire")
    _add(wire, "direction", direction)
    if width > 1:
        vector = _add(wire, "vector")
        _add(vector, "left", str(width - 1))
        _add(vector, "right", "0")
    definition = _add(_add(wire, "wireTypeDefs"), "wireTypeDef")
    _add(definition, "typeName", "std_logic" if width == 1 else "std_logic_vector")
    for view in VIEWS:
        _add(definition, "viewNameRef", view)
