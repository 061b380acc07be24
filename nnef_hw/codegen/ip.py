"""The accelerator as plain IP: AXI4-Stream ports around it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.boards.interfaces import Bus
from nnef_hw.codegen.comments import port_lines, printable
from nnef_hw.ir import Graph

__all__ = [
    "AXI_CLOCK", "INPUT_PORTS", "OUTPUT_PORTS", "axi_name", "axi_width", "axi_wrapper",
    "bus_module", "code_bits", "input_codes", "ip_name", "is_ip_name", "output_codes",
]  # fmt: skip

WRAPPER = """\
// {model} behind AXI4-Stream: a transfer is a beat, tlast ends a frame. Codes are in whole bytes,
// the first lane lowest; codes from the accelerator are extended to them. See manifest.json.
{notes}module {name}_axis (
    input aclk, aresetn{restart},
{ports}
);
{wires}    \\{name} accelerator (
        .clk(aclk), .rst({reset}),{idle}
{connections}
    );
{results}endmodule
"""

AXI_CLOCK = "aclk"
"""Port of the wrapper that its streams are synchronous to."""
INPUT_PORTS = """\
    input [{width}-1:0] {axis}_tdata,
    input {axis}_tvalid, {axis}_tlast,
    output {axis}_tready"""
OUTPUT_PORTS = """\
    output [{width}-1:0] {axis}_tdata,
    output {axis}_tvalid, {axis}_tlast,
    input {axis}_tready"""
INPUT_CONNECTION = """\
        .{name}__payload({{{codes}}}),
        .{name}__valid({axis}_tvalid), .{name}__ready({axis}_tready)"""
OUTPUT_CONNECTION = """\
        .{name}__payload({result}), .{name}__valid({axis}_tvalid), .{name}__ready({axis}_tready)"""
IDLE = """
        .load(1'b0), .program__payload(32'b0), .program__valid(1'b0), .program__ready(), .left(),"""
WIRE = """\
    wire [{payload}-1:0] {result};
"""
RESULT = """\
    assign {axis}_tlast = {result}[{payload}-1];
    assign {axis}_tdata = {{{codes}}};
"""


def ip_name(model: str) -> str:
    """Verilog identifier for a model: the prefix of all its modules' names."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", model)
    return name if is_ip_name(name) else f"ip_{name}"


def is_ip_name(name: str) -> bool:
    """Whether a name may begin those of modules and files."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None


def code_bits(port: Port) -> int:
    """Bits of a code in whole bytes."""
    return 8 * -(-port.bits // 8)


def axi_width(port: Port) -> int:
    """Bits of ``tdata``: the codes of a beat, each in whole bytes."""
    return port.lanes * code_bits(port)


def axi_name(port: Port) -> str:
    """Prefix of the wrapper's ports for a stream: ``s_axis`` or ``m_axis``, and its own name."""
    return f"{'s' if port.name.startswith('i') else 'm'}_axis{port.name[1:]}"


def axi_wrapper(plan: AcceleratorPlan, graph: Graph, name: str) -> str:
    """Verilog of module ``{name}_axis`` around the accelerator, module ``name``.

    Its streams are ``s_axis`` and ``m_axis``; of several each ends like the accelerator's port.
    With states it has an input ``restart``: a cycle of it drops the frames inside, and lets the
    states begin with their initial values.
    """
    inputs = [_input_fields(port) for port in plan.inputs]
    outputs = [_output_fields(port) for port in plan.outputs]
    return WRAPPER.format(
        model=printable(plan.model),
        name=name,
        restart=", restart" if graph.is_sequential else "",
        reset="~aresetn | restart" if graph.is_sequential else "~aresetn",
        notes="".join(f"// {line}\n" for line in port_lines(plan, graph)),
        ports=_listed(INPUT_PORTS, inputs, OUTPUT_PORTS, outputs),
        wires="".join(WIRE.format(**fields) for fields in outputs),
        idle="" if plan.loaded is None else IDLE,
        connections=_listed(INPUT_CONNECTION, inputs, OUTPUT_CONNECTION, outputs),
        results="".join(RESULT.format(**fields) for fields in outputs),
    )


Fields = dict[str, object]


def _listed(
    for_input: str, inputs: Sequence[Fields], for_output: str, outputs: Sequence[Fields]
) -> str:
    lines = [for_input.format(**fields) for fields in inputs]
    return ",\n".join([*lines, *(for_output.format(**fields) for fields in outputs)])


def bus_module(name: str, bus: Bus) -> str:
    """Return the name of the Verilog module that has a bus."""
    return f"{name}_{bus.suffix}"


def input_codes(port: Port) -> str:
    """Verilog of a beat for the accelerator, of ``tlast`` and ``tdata``."""
    axis, step = axi_name(port), code_bits(port)
    lanes = range(port.lanes - 1, -1, -1)
    codes = [f"{axis}_tdata[{lane * step} +: {port.bits}]" for lane in lanes]
    return ", ".join([f"{axis}_tlast", *codes])


def output_codes(port: Port, result: str) -> str:
    """Verilog of ``tdata``, of a beat ``result`` of the accelerator."""
    surplus = code_bits(port) - port.bits
    codes = []
    for lane in range(port.lanes - 1, -1, -1):
        if surplus:
            sign = f"{result}[{(lane + 1) * port.bits - 1}]" if port.signed else "1'b0"
            codes.append(f"{{{surplus}{{{sign}}}}}")
        codes.append(f"{result}[{lane * port.bits} +: {port.bits}]")
    return ", ".join(codes)


def _input_fields(port: Port) -> Fields:
    return {
        "name": port.name, "axis": axi_name(port), "width": axi_width(port),
        "codes": input_codes(port),
    }  # fmt: skip


def _output_fields(port: Port) -> Fields:
    result = f"result{port.name[1:]}"
    return {
        "name": port.name, "axis": axi_name(port), "width": axi_width(port),
        "result": result, "payload": port.payload_bits, "codes": output_codes(port, result),
    }  # fmt: skip
