"""The accelerator as plain IP: AXI4-Stream ports around it, and a core file for FuseSoC."""

from __future__ import annotations

from typing import Any

from nnef_hw.schedule import Plan, Port

__all__ = ["axi_wrapper", "axi_width", "fusesoc_core"]

WRAPPER = """\
// {model} behind AXI4-Stream: a transfer is a beat, tlast ends a frame. Codes are in whole bytes,
// the first lane lowest; codes from the accelerator are extended to them. See manifest.json.
module {name} (
    input aclk, aresetn,
    input [{in_width}-1:0] s_axis_tdata,
    input s_axis_tvalid, s_axis_tlast,
    output s_axis_tready,
    output [{out_width}-1:0] m_axis_tdata,
    output m_axis_tvalid, m_axis_tlast,
    input m_axis_tready
);
    wire [{out_payload}-1:0] result;
    top accelerator (
        .clk(aclk), .rst(~aresetn),
        .i__payload({{{inputs}}}),
        .i__valid(s_axis_tvalid), .i__ready(s_axis_tready),
        .o__payload(result), .o__valid(m_axis_tvalid), .o__ready(m_axis_tready)
    );
    assign m_axis_tlast = result[{out_payload}-1];
    assign m_axis_tdata = {{{outputs}}};
endmodule
"""

CORE = """\
CAPI=2:
name: nnef-hw:accelerator:{name}:1.0.0
description: {model} as a bit-exact accelerator with AXI4-Stream ports

filesets:
  rtl:
    files:
      - ../rtl/top.v
      - {name}.v
    file_type: verilogSource

targets:
  default: &default
    filesets: [rtl]
    toplevel: {name}
  lint:
    <<: *default
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wno-fatal]
"""


def _code_bits(port: Port) -> int:
    """Bits of a code in whole bytes."""
    return 8 * -(-port.bits // 8)


def axi_width(port: Port) -> int:
    """Bits of ``tdata``: the codes of a beat, each in whole bytes."""
    return port.lanes * _code_bits(port)


def axi_wrapper(plan: Plan, source: Port, sink: Port, name: str) -> str:
    """Verilog of module ``name`` around module ``top``."""
    step = _code_bits(source)
    lanes = range(source.lanes - 1, -1, -1)
    codes = [f"s_axis_tdata[{lane * step} +: {source.bits}]" for lane in lanes]
    surplus = _code_bits(sink) - sink.bits
    results = []
    for lane in range(sink.lanes - 1, -1, -1):
        if surplus:
            sign = f"result[{lane * sink.bits + sink.bits - 1}]" if sink.signed else "1'b0"
            results.append(f"{{{surplus}{{{sign}}}}}")
        results.append(f"result[{lane * sink.bits} +: {sink.bits}]")
    return WRAPPER.format(
        model=plan.model, name=name, in_width=axi_width(source), out_width=axi_width(sink),
        out_payload=sink.lanes * sink.bits + 1, inputs=", ".join(["s_axis_tlast", *codes]),
        outputs=", ".join(results),
    )  # fmt: skip


def fusesoc_core(plan: Plan, name: str) -> str:
    """Text of the core file."""
    fields: dict[str, Any] = {"name": name, "model": plan.model}
    return CORE.format(**fields)
