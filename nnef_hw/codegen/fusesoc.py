"""Plain IP for other people's projects: a self-checking bench, a FuseSoC core file, a README."""

from __future__ import annotations

import json
from collections.abc import Mapping

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.boards.interfaces import PLAIN_STREAMS, PlainStreams
from nnef_hw.codegen.comments import port_lines, printable
from nnef_hw.codegen.ip import axi_name, axi_width, bus_module, code_bits
from nnef_hw.codegen.lint import WAIVERS
from nnef_hw.codegen.vendors import VENDORS, vendor_targets
from nnef_hw.hardware.devices import find_device
from nnef_hw.ir import Graph
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.registers.page import register_table
from nnef_hw.registers.table import RegisterMap

__all__ = ["axi_testbench", "fusesoc_core", "ip_readme"]

IDLE_LIMIT = 1_000_000
"""Cycles without a transfer that count as a deadlock."""

BENCH = """\
// Feeds sim/i*.hex through {name}_axis and compares what leaves it with sim/o*.hex, with pauses at
// all ends. README.md has the command.
`timescale 1ns / 1ps
module {name}_tb;
    reg aclk = 0, aresetn = 0;
    integer idle = 0;
    always #5 aclk = ~aclk;
    initial #42 aresetn = 1;
{streams}
    {name}_axis dut (
        .aclk(aclk), .aresetn(aresetn),{restart}
{connections}
    );
    always @(posedge aclk) begin
        idle <= {moves} ? 0 : idle + 1;
        if (idle == {limit}) $fatal(1, "nothing moves any more");
        if ({done}) begin
            $display("{name}: {frames} frames as expected");
            $finish;
        end
    end
endmodule
"""
INPUT = """
    reg [{word}-1:0] {axis}_words [0:{beats}-1];
    initial $readmemh("sim/{name}.hex", {axis}_words);
    integer {axis}_place = 0;
    reg {axis}_tvalid = 0;
    wire {axis}_tready;
    wire [{word}-1:0] {axis}_word = {axis}_words[{axis}_place];
    always @(posedge aclk) if (aresetn) begin
        if ({axis}_tvalid & {axis}_tready) {axis}_place <= {axis}_place + 1;
        if (~{axis}_tvalid | {axis}_tready)
            {axis}_tvalid <= {axis}_place + {axis}_tvalid < {beats} && $random % 4 != 0;
    end
"""
OUTPUT = """
    reg [{word}-1:0] {axis}_words [0:{beats}-1];
    initial $readmemh("sim/{name}.hex", {axis}_words);
    integer {axis}_place = 0;
    reg {axis}_tready = 0;
    wire {axis}_tvalid, {axis}_tlast;
    wire [{width}-1:0] {axis}_tdata;
    wire [{word}-1:0] {axis}_word = {{{axis}_tlast, {codes}}};
    always @(posedge aclk) if (aresetn) begin
        {axis}_tready <= $random % 4 != 0;
        if ({axis}_tvalid & {axis}_tready) begin
            if ({axis}_word !== {axis}_words[{axis}_place])
                $fatal(1, "beat %0d of {axis} is %h, expected %h",
                       {axis}_place, {axis}_word, {axis}_words[{axis}_place]);
            {axis}_place <= {axis}_place + 1;
        end
    end
"""

CORE = """\
CAPI=2:
name: {core}
description: {description}

filesets:
  rtl:
    files: [{files}]
    file_type: verilogSource
  timing:
    files: [ip/{name}.sdc]
    file_type: SDC
  bench:
    files:
      - ip/{name}_tb.v: {{file_type: verilogSource}}
{vectors}

parameters:
  {define}:
    datatype: bool
    description: Multipliers and memories of the device
    paramtype: vlogdefine
    default: true

targets:
  default: &default
    filesets: [rtl]
    toplevel: {top}
  lint:
    <<: *default
    description: Verilator's warnings, without those that are meant so
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall, {waivers}]
  sim:
    description: Self-checking bench under Icarus Verilog
    filesets: [rtl, bench]
    toplevel: {name}_tb
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2012]
  synth:
    <<: *default
    description: Yosys for {device}
    flow: generic
    flow_options:
      tool: yosys
      arch: {arch}
      yosys_synth_options: [{options}]
    parameters: [{define}]
{vendors}"""

STATES = """
A frame is a step: the states are kept from frame to frame. A cycle of `restart` of the wrapper, or
of `rst` of the accelerator, lets them begin with their initial values; frames inside are lost.
"""
LINT = (
    "verilator --lint-only -Wall --top-module {name}_axis ip/{name}.vlt rtl/top.v ip/{name}_axis.v"
)
README = """\
# {name}

{model} as Verilog: `rtl/top.v` holds the accelerator, module `{name}`; `ip/{name}_axis.v`
the same behind AXI4-Stream, module `{name}_axis`. All names of modules begin with `{name}`.

A transfer is a beat: codes of consecutive channels of a pixel, the first lane lowest, each in whole
bytes on AXI4-Stream; `last` or `tlast` ends a frame. `manifest.json` and, for C,
`ip/model.h` have the scales of the codes.

{ports}

Of an image the codes come row by row, the channels of a pixel together.
{states}
| what | command |
|---|---|
| simulate | `iverilog -g2012 -s {name}_tb -o {name}_tb rtl/top.v ip/*.v && vvp {name}_tb` |
| with cocotb | `python sim/run.py`, or `SIM=icarus python sim/run.py` |
| lint | `{lint}` |
| FuseSoC | `fusesoc --cores-root . run --target=sim {core}`; `lint`, `synth` |
| tools of vendors | `fusesoc --cores-root . run --target=vivado {core}`; {vendors} |

Verilator comes with nnef-hw, under the name `verilator-cli`. FuseSoC and others find it after
`export PATH="$(verilator-cli --getenv VERILATOR_ROOT)/bin:$PATH"`.

Define `{define}` at synthesis to get the device's multipliers and memories; without it tools
infer them. `ip/{name}.sdc` constrains the clock to that of the plan. Targets for vendors' tools
write projects; what these tools make of them was not seen.
{registers}"""
REGISTERS = """
## Registers

`{file}` is the accelerator behind {title}, module `{module}`: {data}. `irq` is
high while an event stands that may raise it. Addresses are in bytes, words of 32 bits with the
lowest byte first. An access that has no register, or cannot be done now, is answered with an error.
`ip/registers.h` has the registers for C, `ip/{name}.svd` as CMSIS-SVD, `ip/{name}.rdl` as
SystemRDL. They come on top of the resources in `report.json`.

{table}"""
STREAMED = "frames pass by the same AXI4-Streams"
WRITTEN = (
    "frames and results pass through registers, the bytes of all tensors one after the other "
    "(MODEL_INPUT_BYTES and MODEL_OUTPUT_BYTES of `ip/model.h`)"
)


def axi_testbench(
    plan: AcceleratorPlan,
    name: str,
    beats: Mapping[str, int],
    frames: int,
    *,
    restart: bool = False,
) -> str:
    """Verilog of module ``{name}_tb``, which reads the vectors of the cocotb bench.

    ``beats`` is the number of beats of each port; ``restart`` tells whether the wrapper has one.
    """
    ports = (*plan.inputs, *plan.outputs)
    fields = {port.name: _bench_fields(port, beats[port.name]) for port in ports}
    parts = ("tvalid", "tready", "tlast", "tdata")
    signals = {
        port.name: {
            "tlast": f"{axi_name(port)}_word[{port.lanes * port.bits}]",
            "tdata": _data(port),
        }
        for port in plan.inputs
    }
    connections = [
        f"        .{axi_name(port)}_{part}"
        f"({signals.get(port.name, {}).get(part, f'{axi_name(port)}_{part}')})"
        for port in ports
        for part in parts
    ]
    return BENCH.format(
        name=name,
        restart=" .restart(1'b0)," if restart else "",
        streams="".join(
            (INPUT if port in plan.inputs else OUTPUT).format(**fields[port.name]) for port in ports
        ),
        connections=",\n".join(connections),
        moves=" | ".join(f"({axi_name(p)}_tvalid & {axi_name(p)}_tready)" for p in ports),
        done=" && ".join(f"{axi_name(p)}_place == {beats[p.name]}" for p in plan.outputs),
        limit=IDLE_LIMIT,
        frames=frames,
    )


def _bench_fields(port: Port, beats: int) -> dict[str, object]:
    axis = axi_name(port)
    lanes = range(port.lanes - 1, -1, -1)
    codes = [f"{axis}_tdata[{lane * code_bits(port)} +: {port.bits}]" for lane in lanes]
    return {
        "axis": axis, "name": port.name, "beats": beats, "width": axi_width(port),
        # As wide as the lines of the files.
        "word": 64 * -(-(port.lanes * port.bits + 1) // 64), "codes": ", ".join(codes),
    }  # fmt: skip


def _data(port: Port) -> str:
    """Codes of an input's word in whole bytes."""
    surplus = code_bits(port) - port.bits
    parts = []
    for lane in range(port.lanes - 1, -1, -1):
        parts += [f"{surplus}'b0"] if surplus else []
        parts.append(f"{axi_name(port)}_word[{lane * port.bits} +: {port.bits}]")
    return f"{{{', '.join(parts)}}}"


def _core_name(name: str) -> str:
    return f"nnef-hw:ip:{name}:1.0.0"


def fusesoc_core(plan: AcceleratorPlan, name: str, streams: PlainStreams = PLAIN_STREAMS) -> str:
    """Text of the core file, which stands in the build's folder."""
    top = f"{name}_axis"
    files = ["rtl/top.v", f"ip/{top}.v"]
    if streams.bus is not None:
        top = bus_module(name, streams.bus)
        files.append(f"ip/{top}.v")
    device = find_device(plan.device)
    family = device.family
    toolchain = toolchain_of(family)
    vectors = [f"sim/{port.name}.hex" for port in (*plan.inputs, *plan.outputs)]
    return CORE.format(
        name=name, top=top, files=", ".join(files), core=_core_name(name), device=device.name,
        arch=toolchain.ip_family, define=family.define, options=toolchain.ip_option,
        waivers=", ".join(f"-Wno-{rule}" for rule in WAIVERS),
        description=json.dumps(f"{printable(plan.model)}, a bit-exact accelerator on AXI4-Stream"),
        vendors=vendor_targets(),
        vectors="\n".join(
            f"      - {path}: {{file_type: user, copyto: {path}}}" for path in vectors
        ),
    )  # fmt: skip


def ip_readme(
    plan: AcceleratorPlan,
    graph: Graph,
    name: str,
    streams: PlainStreams = PLAIN_STREAMS,
    registers: RegisterMap | None = None,
) -> str:
    """Text of ``ip/README.md``; ``registers`` are those on the bus, if there is one."""
    return README.format(
        name=name,
        core=_core_name(name),
        lint=LINT.format(name=name),
        vendors=", ".join(f"`{vendor.name}`" for vendor in VENDORS[1:]),
        model=printable(plan.model),
        define=find_device(plan.device).family.define,
        ports="\n".join(f"* {line}" for line in port_lines(plan, graph)),
        states=STATES if graph.is_sequential else "",
        registers="" if registers is None else _registers(name, streams, registers),
    )


def _registers(name: str, streams: PlainStreams, registers: RegisterMap) -> str:
    assert streams.bus is not None
    module = bus_module(name, streams.bus)
    return REGISTERS.format(
        name=name, module=module, file=f"ip/{module}.v", title=streams.bus.title,
        data=WRITTEN if streams.with_data else STREAMED, table=register_table(registers),
    )  # fmt: skip
