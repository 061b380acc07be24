"""A design around blocks of a family, to compare our Verilog models of them with its guides."""

from pathlib import Path

import nnef_hw.sim
from nnef_hw.sim.fast_runner import FastRunner

__all__ = ["design", "outputs", "signed", "verilog_model"]

TOP = """/* verilator lint_off PINMISSING */
module top(
    input clk, rst, input [{i}-1:0] i__payload, input i__valid, output i__ready,
    output [{o}-1:0] o__payload, output o__valid, input o__ready
);
    assign i__ready = 1;
    reg [{latency}-1:0] valid = 0;
    always @(posedge clk) valid <= {{valid, i__valid}};
    assign o__valid = valid[{latency}-1];
    {body}
endmodule
"""


def verilog_model(*names):
    folder = Path(nnef_hw.sim.__file__).parent / "models"
    return "".join((folder / f"{name}.v").read_text() for name in names)


def design(model, body, *, i, o, latency=1):
    """Return what runs a design that takes a word of ``i`` bits per cycle and gives ``o`` bits."""
    return FastRunner(TOP.format(i=i, o=o, latency=latency, body=body) + model)


def outputs(runner, inputs):
    """Return the result of each word, as a number."""
    result = runner.run(inputs, expected_beats=len(inputs))
    return [sum(int(w) << 64 * k for k, w in enumerate(row)) for row in result.payloads]


def signed(value, bits):
    return value - (value >> bits - 1 << bits)
