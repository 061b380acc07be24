"""Carry chains of an ECP5 end where their operands do."""

import copy
import json
import re
from itertools import product

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.hardware.devices import find_device
from nnef_hw.hardware.families import ECP5
from nnef_hw.place.netlist.ecp5_carries import shorten_chains
from nnef_hw.place.nextpnr.attempt import Placer
from nnef_hw.place.synthesis import map_only
from nnef_hw.place.toolchain import Design, toolchain_of
from nnef_hw.run.netlist import mapped_verilog
from nnef_hw.sim.fast_runner import FastRunner

A, B, C, D, SUM, CARRY, OTHER = range(2, 9)
ADD, SELECT, MULTIPLY = 0x96AA, 0x596A, 0x7888


def half(init, operands, carry_in):
    """Sum and carry of the first half of a CCU2C: the model of yosys."""
    index = sum(bit << n for n, bit in enumerate(operands))
    lut4, lut2 = init >> index & 1, init >> (index & 3) & 1
    return lut4 ^ carry_in, carry_in if lut4 else lut2


def chain(init, operands, carry_in, *, reads_sum=True, reads_carry=True):
    pins = dict(zip(("A0", "B0", "C0", "D0"), operands, strict=True))
    pins |= {"A1": "0", "B1": "0", "C1": "0", "D1": "1", "CIN": carry_in, "S0": SUM, "S1": OTHER,
             "COUT": CARRY}  # fmt: skip
    read = [SUM] * reads_sum + [CARRY] * reads_carry
    return {
        "modules": {
            "top": {
                "ports": {"i": {"direction": "input", "bits": [A, B, C, D]},
                          "o": {"direction": "output", "bits": read}},
                "cells": {
                    "add": {
                        "type": "CCU2C",
                        "parameters": {"INIT0": f"{init:016b}", "INIT1": f"{ADD:016b}",
                                       "INJECT1_0": "NO", "INJECT1_1": "NO"},
                        "port_directions": {
                            pin: "output" if pin in {"S0", "S1", "COUT"} else "input"
                            for pin in pins
                        },
                        "connections": {pin: [bit] for pin, bit in pins.items()},
                    }
                },
                "netnames": {},
            }
        }
    }  # fmt: skip


def cells_of(design):
    return design["modules"]["top"]["cells"]


@pytest.mark.parametrize("carry_in", "01")
@pytest.mark.parametrize(
    ("init", "operands"),
    [
        (ADD, (A, B, "0", "1")), (ADD, (A, B, "1", "1")), (ADD, (A, "0", "0", "1")),
        (ADD, ("1", B, "0", "1")), (ADD, (A, A, "0", "1")), (MULTIPLY, (A, B, C, "0")),
        (0x8777, (A, "0", C, D)), (ADD, ("0", "1", "0", "1")),
    ],
)  # fmt: skip
def test_first_half_gives_its_carry_whatever_comes_in(init, operands, carry_in):
    design = chain(init, operands, carry_in)
    assert shorten_chains(design) == 1
    cells = cells_of(design)
    pins = {pin: bit for pin, [bit] in cells["add"]["connections"].items()}
    assert (pins["CIN"], pins["S0"], pins["COUT"]) == ("x", "x", CARRY)
    lut = cells["add.S0"]
    assert lut["connections"]["Z"] == [SUM]
    for choice in product((0, 1), repeat=4):
        values = dict(zip((A, B, C, D), choice, strict=True)) | {"0": 0, "1": 1}
        expected = half(init, [values[bit] for bit in operands], int(carry_in))
        index = sum(values[lut["connections"][pin][0]] << n for n, pin in enumerate("ABCD"))
        assert int(lut["parameters"]["INIT"], 2) >> index & 1 == expected[0]
        for anything in (0, 1):
            found = half(
                int(cells["add"]["parameters"]["INIT0"], 2),
                [values[pins[pin]] for pin in ("A0", "B0", "C0", "D0")], anything,
            )  # fmt: skip
            assert found[1] == expected[1]


def test_a_sum_that_nobody_reads_needs_no_lut():
    design = chain(ADD, (A, B, "0", "1"), "0", reads_sum=False)
    assert shorten_chains(design) == 1
    assert list(cells_of(design)) == ["add"]


@pytest.mark.parametrize(
    ("init", "operands", "carry_in"),
    [(MULTIPLY, (A, B, "1", D), "0"), (SELECT, (A, B, C, D), "0"), (ADD, (A, B, "0", "1"), OTHER),
     (ADD, (A, "x", "0", "1"), "0")],
    ids=["three operands", "four operands", "no constant", "open"],
)  # fmt: skip
def test_other_beginnings_stay(init, operands, carry_in):
    design = chain(init, operands, carry_in)
    before = copy.deepcopy(design)
    assert shorten_chains(design) == 0
    assert design == before


def test_an_injected_carry_stays():
    design = chain(ADD, (A, B, "0", "1"), "0")
    cells_of(design)["add"]["parameters"]["INJECT1_0"] = "YES"
    assert shorten_chains(design) == 0


def test_a_carry_that_nobody_reads_is_open():
    design = chain(ADD, (A, B, "0", "1"), OTHER, reads_carry=False)
    assert shorten_chains(design) == 1
    assert cells_of(design)["add"]["connections"]["COUT"] == ["x"]
    assert shorten_chains(design) == 0


TOP = """
module top(
    input clk, rst, input [31:0] i__payload, input i__valid, output i__ready,
    output [115:0] o__payload, output reg o__valid, input o__ready
);
    assign i__ready = 1;
    wire [8:0] a = i__payload[8:0], b = i__payload[17:9];
    wire signed [8:0] s = a, t = b;
    reg [9:0] sum = 0, difference = 0, count = 0;
    reg [17:0] product = 0;
    reg signed [11:0] negative = 0, scaled = 0;
    reg less = 0, greater = 0, equal = 0;
    reg [30:0] wide = 0;
    always @(posedge clk) begin
        o__valid <= i__valid;
        sum <= a + b;
        difference <= a - b;
        product <= a * b;
        count <= count + i__payload[18];
        negative <= -(s + t);
        scaled <= s + (t << 2);
        less <= a < b;
        greater <= s > t;
        equal <= a == b;
        wide <= i__payload[30:0] + 1;
    end
    assign o__payload = {wide, equal, greater, less, scaled, negative, count, product, difference,
                         sum};
endmodule
"""


@pytest.mark.system
@pytest.mark.synth
@pytest.mark.verilator
def test_netlist_does_the_same_whatever_its_chains_begin_with(rng):
    words = rng.integers(0, 1 << 31, 3000).astype(np.uint64)
    words[:1000] &= 0x3FFFF  # carries through all bits of the widest sum
    words[500:1000] |= 0x7FFC0000
    mapped = mapped_verilog(TOP, find_device("ecp5-85k"), top="top")
    assert len(re.findall(r"\.CIN\(1'hx\)", mapped)) >= 6
    plain, *ours = (
        FastRunner("/* verilator lint_off WIDTH */\n" + text).run(words, expected_beats=3000)
        for text in (TOP, *(mapped.replace(".CIN(1'hx)", f".CIN(1'h{n})") for n in (0, 1)))
    )
    for run in ours:
        np.testing.assert_array_equal(run.payloads, plain.payloads)


@pytest.mark.system
@pytest.mark.synth
def test_nextpnr_adds_nothing(tmp_path):
    source = tmp_path / "top.v"
    source.write_text(
        "module top(input clk, input [15:0] a, b, c, d, output reg [15:0] sum, other);\n"
        "    always @(posedge clk) begin sum <= a + b; other <= c + d; end\nendmodule\n"
    )
    board = find_board("ulx3s_85f")
    map_only(source, top="top", family=ECP5, device=board.part, out_dir=tmp_path)
    netlist = json.loads((tmp_path / "top.json").read_text())
    carries = [cell for cell in cells_of(netlist).values() if cell["type"] == "CCU2C"]
    assert len(carries) == 16
    design = Design(
        top="top", part=board.part, package=board.package, speed=board.speed, frequency_mhz=50.0
    )
    placer = Placer(toolchain_of(ECP5).dialect, design)
    used, _ = placer.pack(tmp_path, tmp_path / "nextpnr.log")["lut"]
    # halves of the carries, and the lowest bit of each sum; the constants 0 and 1 of the chip
    assert used == 2 * (2 * 8 + 1) + 2
