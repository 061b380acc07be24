"""The digest of measured figures is of what Verilog describes, and of nothing else in its text."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "scripts" / "bench"
VERILOG = """\
// A filter.
module top (input clk, input [7:0] i, output [15:0] o);
    (* ram_style = "block" *)
    reg [7:0] weights [0:3];
    initial begin
        weights[0] = 8'd3;
        weights[1] = 8'd5;
        weights[2] = 8'd7;
        weights[3] = 8'd11;
    end
    reg [1:0] step = 2'd1;
    reg [7:0] weight;
    always @(posedge clk) begin
        step <= step + 2'd1;
        weight <= weights[step];
    end
    wire [15:0] first, second;
    product #(.W_BITS(8)) near (.clk(clk), .a(i), .b(weight), .o(first));
    product #(.W_BITS(8)) far (.clk(clk), .a(weight), .b(8'd9), .o(second));
    assign o = first - second;
endmodule

module product #(parameter W_BITS = 4) (
    input clk, input [7:0] a, input [W_BITS-1:0] b, output reg [15:0] o);
`ifdef ONE
    always @(posedge clk) o <= a * b;
`else
    always @(posedge clk) o <= a * b + 1;
`endif
endmodule
"""
NOBODY_USES = "module unused (input a, output o);\n    assign o = !a;\nendmodule\n"
TOP, PRODUCT = VERILOG.split("\n\n")
SAME = {
    "a comment": VERILOG.replace("// A filter.", "// A filter of four taps.\n// Of 8 bits."),
    "lines": VERILOG.replace("\n", "\n\n"),
    "the order of modules": f"{PRODUCT}\n{TOP}\n",
    "a module that nobody uses": NOBODY_USES + VERILOG,
    "a default that is set": VERILOG.replace("W_BITS = 4", "W_BITS = 6"),
    "the name of a parameter": VERILOG.replace("W_BITS", "B_BITS"),
    "the name of a module": VERILOG.replace("product", "times"),
    "names of wires": VERILOG.replace("weight", "factor").replace("first", "third"),
    "names of instances": VERILOG.replace(") near", ") alpha").replace(") far", ") omega"),
    "another family's text": VERILOG.replace("+ 1;", "+ 2;"),
}  # fmt: skip
OTHER = {
    "a weight": VERILOG.replace("8'd7", "8'd6"),
    "two weights": VERILOG.replace("8'd7", "8'd0").replace("8'd5", "8'd7").replace("8'd0", "8'd5"),
    "a width": VERILOG.replace("W_BITS(8)) far", "W_BITS(7)) far"),
    "a width of a port": VERILOG.replace("input [7:0] i", "input [6:0] i"),
    "a start": VERILOG.replace("step = 2'd1", "step = 2'd2"),
    "a constant": VERILOG.replace("8'd9", "8'd8"),
    "an operator": VERILOG.replace("first - second", "first + second"),
    "the order of operands": VERILOG.replace("first - second", "second - first"),
    "a connection": VERILOG.replace(".a(weight)", ".a(i)"),
    "a kind of memory": VERILOG.replace('"block"', '"distributed"'),
    "the name of a port": VERILOG.replace("[7:0] i,", "[7:0] x,").replace("(i)", "(x)"),
    "the text of this family": VERILOG.replace("o <= a * b;", "o <= a * b - 1;"),
}  # fmt: skip


@pytest.fixture(scope="module")
def digest_of():
    """The digest of a text's top module."""
    sys.path.insert(0, str(BENCH))
    try:
        script = importlib.import_module("netlist_digest")
    finally:
        sys.path.remove(str(BENCH))
    return lambda text: script.netlist_digest(text, top="top", define="ONE")


@pytest.fixture(scope="module")
def expected(digest_of):
    """The digest of the text as it is."""
    return digest_of(VERILOG)


@pytest.mark.parametrize("change", SAME)
def test_what_builds_the_same_has_the_same_digest(change, digest_of, expected):
    assert SAME[change] != VERILOG
    assert digest_of(SAME[change]) == expected


@pytest.mark.parametrize("change", OTHER)
def test_what_builds_something_else_has_another_digest(change, digest_of, expected):
    assert OTHER[change] != VERILOG
    assert digest_of(OTHER[change]) != expected


def test_the_digest_is_that_of_any_process(expected):
    program = (
        "import sys; from netlist_digest import netlist_digest; "
        "print(netlist_digest(sys.stdin.read(), top='top', define='ONE'))"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program], input=VERILOG, capture_output=True, text=True,
            check=True, env={**os.environ, "PYTHONPATH": str(BENCH), "PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert found.stdout.strip() == expected
