"""Memories and their readers in Verilator: one run, many words, and the cycle of each."""

from dataclasses import dataclass

import numpy as np

from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.rtl.readers.pads import pads_verilog
from nnef_hw.run.netlist import mapped_verilog
from nnef_hw.sim.fast_runner import FastRunner

# Reads begin as the stream i allows; every word comes with the cycle of its first offer.
STREAMS = """
module top (
    input clk, rst,
    input [1:0] i__payload, input i__valid, output i__ready,
    output [{width}+56:0] o__payload, output o__valid, input o__ready
);
    wire [{width}-1:0] word;
    wire idle, error;
    wire [23:0] id;
    reg [31:0] cycle = 0, first = 0;
    reg waiting = 0;
    always @(posedge clk) begin
        cycle <= rst ? 0 : cycle + 1;
        waiting <= ~rst & o__valid & ~o__ready;
        if (!waiting) first <= cycle;
    end
    wire valid;
    assign o__valid = valid | error;
    assign o__payload = {{error, error ? id : 24'b0, error ? 0 : waiting ? first : cycle, word}};
{body}
endmodule
"""


@dataclass(frozen=True)
class Words:
    """What came: words, and the cycles of the starts, the offers and the takes."""

    words: np.ndarray
    started: np.ndarray
    offered: np.ndarray
    taken: np.ndarray


def reader_verilog(part, model, device=None):
    """Return a reader, from the cells of a device if one is given, and its memory's model."""
    verilog = to_verilog(part.build(), name="reader")
    if device is not None:
        verilog = mapped_verilog(verilog, device, top="reader")
    return verilog + model.source.read_text()


def next_taken(times, offered, taken):
    """Return the cycle in which the next word was taken, offered and taken as predicted."""
    assert times.offered == next(offered)
    cycle = next(taken)
    assert times.take(cycle) == cycle
    return cycle


def run_reader(body, verilog, *, starts, words, width=16, stall=0.0, seed=1, **options):
    """Simulate; return :class:`Words`, or the ID of a chip that was refused."""
    top = STREAMS.format(body=body, width=width)
    runner = FastRunner(top + verilog + pads_verilog())
    result = runner.run(
        np.ones(starts, np.uint64), expected_beats=words, stall=stall, seed=seed, **options
    )
    payloads = result.payloads.reshape(words, -1)
    values = [sum(int(word) << 64 * n for n, word in enumerate(row)) for row in payloads]
    if values[0] >> width + 56:
        return values[0] >> width + 32 & 0xFFFFFF
    return Words(
        np.array([value & (1 << width) - 1 for value in values]),
        result.in_cycles,
        np.array([value >> width & 0xFFFFFFFF for value in values]),
        result.out_cycles,
    )
