"""The pads of memories: their behaviour, and the pin cells of an iCE40, as yosys models them."""

import subprocess
from pathlib import Path

import pyosys
import pytest

from nnef_hw.rtl.readers.pads import PADS

CELLS = [
    "-DNNEF_HW_ICE40", "-DNO_ICE40_DEFAULT_ASSIGNMENTS", "-DICE40_DEFAULT_ASSIGNMENT_0=",
    "-DICE40_DEFAULT_ASSIGNMENT_1=",
    Path(pyosys.__file__).parent / "share" / "ice40" / "cells_sim.v",
]  # fmt: skip
BENCH = """
module bench;
    reg clk = 0, first = 0, second = 0, d = 0, enable = 0, given = 0, outside = 0, outer = 0;
    wire clock, out, q, q_mid, pad;
    nnef_hw_clock_pad a (.clk(clk), .first(first), .second(second), .pad(clock));
    nnef_hw_output_pad b (.clk(clk), .d(d), .pad(out));
    nnef_hw_data_pad c (.clk(clk), .d(d), .enable(enable), .q(q), .q_mid(q_mid), .pad(pad));
    // the other end drives the line when the pad does not
    assign pad = outer ? outside : 1'bz;
    always #5 clk = ~clk;
    always @(posedge clk) begin
        {first, second, d, enable} <= $random;
        outer <= ~enable;
    end
    always @(clk) begin
        #1 outside = $random;
        #3 if ($time > 40) $display("%b %b%b%b %b%b", clk, clock, out, pad, q, q_mid);
    end
    initial #4000 $finish;
endmodule
"""


@pytest.mark.icarus
def test_cells_of_an_ice40_behave_as_the_pads(tmp_path):
    source = tmp_path / "bench.v"
    source.write_text(BENCH)
    traces = []
    for name, arguments in {"behaviour": [], "cells": CELLS}.items():
        program = tmp_path / name
        subprocess.run(["iverilog", "-g2012", "-o", program, *arguments, PADS, source], check=True)
        run = subprocess.run(["vvp", "-n", program], capture_output=True, text=True, check=True)
        traces.append(run.stdout.splitlines())
    behaviour, cells = traces
    assert len(behaviour) > 700
    assert behaviour == cells
    # clocks rise within a cycle, and the line is driven from both ends
    assert len(set(behaviour)) > 20
