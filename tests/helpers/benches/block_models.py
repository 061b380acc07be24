"""A design around blocks of a family, to compare our Verilog models of them with its guides."""

import subprocess
from pathlib import Path

import nnef_hw.sim
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.verilator import build_model

__all__ = ["check_with", "design", "outputs", "signed", "verilog_model"]

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


def check_with(harness, verilog, folder, defines=()):
    """Run a harness in C++ on Verilog: it says nothing unless all is right."""
    source = folder / "main.cpp"
    source.write_text(harness)
    model = build_model(verilog, harness=source, defines=list(defines))
    result = subprocess.run([model.executable], capture_output=True, text=True)
    assert (result.stdout, result.returncode) == ("", 0), result.stdout


def signed(value, bits):
    return value - (value >> bits - 1 << bits)
