"""The accelerator on AXI4-Stream as a component in IP-XACT (IEEE 1685-2009), for AMD's Vivado.

Vivado itself is none of ours: that it takes the file was not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.codegen.ip import AXI_CLOCK, axi_name, axi_width
from nnef_hw.ir import Graph

__all__ = ["COMPONENT", "component_xml"]

COMPONENT = "component.xml"
"""Name of the file in a build's folder."""
SPIRIT = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"
XILINX = "http://www.xilinx.com"
FAMILIES = ("artix7", "spartan7", "kintex7", "zynq", "artixuplus", "kintexuplus", "zynquplus")
"""Families for which Vivado's catalog offers the component, by its names."""
RESET = "aresetn"
VENDOR, LIBRARY, VERSION = "nnef-hw", "ip", "1.0"
VIEWS = {
    "xilinx_anylanguagesynthesis": ":vivado.xilinx.com:synthesis",
    "xilinx_anylanguagebehavioralsimulation": ":vivado.xilinx.com:simulation",
}
"""Views by name: what each is for."""
STREAM_PARTS = ("TDATA", "TVALID", "TREADY", "TLAST")

Element = ET.Element


def component_xml(plan: AcceleratorPlan, graph: Graph, name: str) -> str:
    """Return the text of ``component.xml``, which stands in the build's folder.

    Its top module is ``{name}_axis``. Every stream is a bus of the component, beside the clock and
    the reset; ``restart`` of a network with states is a port.
    """
    ET.register_namespace("spirit", SPIRIT)
    ET.register_namespace("xilinx", XILINX)
    root = Element(_tag("component"))
    names = {"vendor": VENDOR, "library": LIBRARY, "name": f"{name}_axis", "version": VERSION}
    for tag, text in names.items():
        _add(root, tag, text)
    buses = _add(root, "busInterfaces")
    streams = [axi_name(port) for port in (*plan.inputs, *plan.outputs)]
    for port in plan.inputs:
        _bus(buses, axi_name(port), "axis", "slave", _stream_ports(port))
    for port in plan.outputs:
        _bus(buses, axi_name(port), "axis", "master", _stream_ports(port))
    reset = _bus(buses, RESET, "reset", "slave", {"RST": RESET})
    _parameters(reset, RESET, {"POLARITY": "ACTIVE_LOW"})
    clock = _bus(buses, AXI_CLOCK, "clock", "slave", {"CLK": AXI_CLOCK})
    hertz = str(round(plan.clock_mhz * 1e6))
    associated = {"ASSOCIATED_BUSIF": ":".join(streams), "ASSOCIATED_RESET": RESET}
    _parameters(clock, AXI_CLOCK, associated | {"FREQ_HZ": hertz})
    model = _add(root, "model")
    views = _add(model, "views")
    for view, purpose in VIEWS.items():
        entry = _add(views, "view")
        _add(entry, "name", view)
        _add(entry, "envIdentifier", purpose)
        _add(entry, "language", "Verilog")
        _add(entry, "modelName", f"{name}_axis")
        _add(_add(entry, "fileSetRef"), "localName", f"{view}_view_fileset")
    ports = _add(model, "ports")
    for wire, direction, width in _wires(plan, graph):
        _port(ports, wire, direction, width)
    sets = _add(root, "fileSets")
    for view in VIEWS:
        files = _add(sets, "fileSet")
        _add(files, "name", f"{view}_view_fileset")
        for path in ("rtl/top.v", f"ip/{name}_axis.v"):
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
    ET.SubElement(extensions, f"{{{XILINX}}}displayName").text = f"{name}_axis"
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _tag(name: str) -> str:
    return f"{{{SPIRIT}}}{name}"


def _add(parent: Element, tag: str, text: str | None = None) -> Element:
    element = ET.SubElement(parent, _tag(tag))
    element.text = text
    return element


def _bus(buses: Element, name: str, kind: str, role: str, wires: Mapping[str, str]) -> Element:
    """Add an interface of one of Vivado's kinds; ``wires`` are its ports by their logical names."""
    library = "interface" if kind == "axis" else "signal"
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


def _wires(plan: AcceleratorPlan, graph: Graph) -> Iterator[tuple[str, str, int]]:
    """Yield name, direction and width of every port of the module."""
    yield from ((AXI_CLOCK, "in", 1), (RESET, "in", 1))
    if graph.is_sequential:
        yield "restart", "in", 1
    for ports, given, taken in ((plan.inputs, "in", "out"), (plan.outputs, "out", "in")):
        yield from _stream_wires(ports, given, taken)


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
