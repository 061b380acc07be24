"""Block RAMs of an ECP5 take over the flip-flops behind them, where these are plain ones."""

import copy
import json

import numpy as np
import pytest

from nnef_hw.hardware.devices import find_device
from nnef_hw.hardware.families import ECP5
from nnef_hw.place.netlist.ecp5_registers import use_output_registers
from nnef_hw.place.synthesis import map_only
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.run.netlist import mapped_verilog
from nnef_hw.sim.fast_runner import FastRunner

pytestmark = pytest.mark.system

CLOCK, OTHER = 2, 3
ENABLE = 7
PLAIN = {"CEMUX": "1 ", "CLKMUX": "CLK", "GSR": "DISABLED", "LSRMUX": "LSR", "REGSET": "RESET"}


def flip_flop(data, result, **changes):
    parameters = PLAIN | {name: x for name, x in changes.items() if name in PLAIN}
    pins = {"CLK": CLOCK, "DI": data, "LSR": "0", "Q": result}
    pins |= {name: x for name, x in changes.items() if name not in PLAIN}
    return {
        "type": "TRELLIS_FF",
        "parameters": parameters,
        "port_directions": {name: "output" if name == "Q" else "input" for name in pins},
        "connections": {name: [bit] for name, bit in pins.items()},
    }


def memory(width, outputs, **changes):
    controls = {"CLKA": CLOCK, "CLKB": CLOCK, "CEA": "1", "CEB": "1", "OCEA": "0", "OCEB": "1",
                "RSTA": "0", "RSTB": "0"}  # fmt: skip
    pins = controls | changes | outputs
    return {
        "type": "DP16KD",
        "parameters": {
            "DATA_WIDTH_A": f"{width:032b}", "DATA_WIDTH_B": f"{width:032b}",
            "CLKAMUX": "CLKA", "CLKBMUX": "CLKB", "REGMODE_A": "NOREG", "REGMODE_B": "NOREG",
        },
        "port_directions": {
            name: "output" if name in outputs else "input" for name in pins
        },
        "connections": {name: [bit] for name, bit in pins.items()},
    }  # fmt: skip


def netlist(ram, **flip_flops):
    """Two bits, 10 and 11, leave the memory; 20 and 21 leave the design."""
    return {
        "modules": {
            "top": {
                "ports": {"o": {"direction": "output", "bits": [20, 21]}},
                "cells": {"ram": ram, **flip_flops},
                "netnames": {"read": {"bits": [10, 11]}, "kept": {"bits": [20, 21]}},
            }
        }
    }


def registered(found):
    parameters = found["modules"]["top"]["cells"]["ram"]["parameters"]
    return parameters["REGMODE_A"], parameters["REGMODE_B"]


def test_wide_word_takes_the_registers_of_both_ports():
    ram = memory(36, {"DOA0": 10, "DOB0": 11}, CLKA="0", CEA="0")
    design = netlist(ram, low=flip_flop(10, 20), high=flip_flop(11, 21))
    assert use_output_registers(design) == 2
    assert registered(design) == ("OUTREG", "OUTREG")
    top = design["modules"]["top"]
    assert list(top["cells"]) == ["ram"]
    pins = top["cells"]["ram"]["connections"]
    assert (pins["DOA0"], pins["DOB0"], pins["OCEA"], pins["CLKA"]) == ([20], [21], ["1"], ["0"])
    assert top["netnames"] == {"kept": {"bits": [20, 21]}}


def test_register_has_the_enable_of_the_flip_flops():
    ram = memory(36, {"DOA0": 10, "DOB0": 11}, CEB=5)
    enabled = {"CEMUX": "CE", "CE": ENABLE}
    design = netlist(ram, low=flip_flop(10, 20, **enabled), high=flip_flop(11, 21, **enabled))
    assert use_output_registers(design) == 2
    assert registered(design) == ("OUTREG", "OUTREG")
    pins = design["modules"]["top"]["cells"]["ram"]["connections"]
    assert (pins["CEB"], pins["OCEA"], pins["OCEB"]) == ([5], [ENABLE], [ENABLE])


def test_flip_flops_of_several_enables_stay():
    ram = memory(36, {"DOA0": 10, "DOB0": 11})
    design = netlist(ram, low=flip_flop(10, 20), high=flip_flop(11, 21, CEMUX="CE", CE=ENABLE))
    assert use_output_registers(design) == 0
    assert registered(design) == ("NOREG", "NOREG")


def test_ports_of_narrow_words_have_a_register_each():
    ram = memory(18, {"DOA0": 10, "DOB0": 11}, OCEA="1")
    # what reads at port A goes to the design's port as it is
    design = netlist(ram, high=flip_flop(11, 21))
    design["modules"]["top"]["ports"]["o"]["bits"] = [10, 21]
    assert use_output_registers(design) == 1
    assert registered(design) == ("NOREG", "OUTREG")


def test_copies_of_a_flip_flop_become_one():
    design = netlist(
        memory(36, {"DOB0": 10}), one=flip_flop(10, 20), two=flip_flop(10, 30),
        after=flip_flop(30, 21),
    )  # fmt: skip
    assert use_output_registers(design) == 2
    cells = design["modules"]["top"]["cells"]
    assert cells["after"]["connections"]["DI"] == cells["ram"]["connections"]["DOB0"] == [20]


@pytest.mark.parametrize(
    "changes",
    [
        {"CEMUX": "INV", "CE": ENABLE}, {"LSR": 8}, {"LSRMUX": "INV"}, {"REGSET": "SET"},
        {"CLKMUX": "INV"}, {"CLK": OTHER}, {"DI": "0", "M": 10},
    ],
    ids=lambda changes: " ".join(changes),
)  # fmt: skip
def test_other_flip_flops_stay(changes):
    ram = memory(36, {"DOA0": 10, "DOB0": 11})
    design = netlist(ram, low=flip_flop(10, 20, **changes), high=flip_flop(11, 21))
    before = copy.deepcopy(design)
    assert use_output_registers(design) == 0
    assert design == before


@pytest.mark.parametrize(
    "changes",
    [{"RSTB": 7}, {"CLKB": OTHER}],
    ids=lambda changes: " ".join(changes),
)
def test_memories_with_a_reset_or_another_clock_stay(changes):
    ram = memory(36, {"DOA0": 10, "DOB0": 11}, **changes)
    design = netlist(ram, low=flip_flop(10, 20), high=flip_flop(11, 21))
    assert not toolchain_of(ECP5).dialect.revise(design)
    assert registered(design) == ("NOREG", "NOREG")


def test_bit_with_another_user_keeps_all_flip_flops():
    ram = memory(36, {"DOA0": 10, "DOB0": 11})
    design = netlist(ram, low=flip_flop(10, 20), high=flip_flop(11, 21))
    cell = {"type": "LUT4", "port_directions": {"A": "input"}, "connections": {"A": [11]}}
    design["modules"]["top"]["cells"]["lut"] = cell
    assert use_output_registers(design) == 0


WIDTHS = {"wide": (36, 512), "half": (18, 1024), "narrow": (7, 2048), "odd": (31, 256)}
TOP = """
module top(
    input clk, rst, input [16:0] i__payload, input i__valid, output i__ready,
    output [{outputs}-1:0] o__payload, output o__valid, input o__ready
);
    assign i__ready = 1;
    reg [2:0] valid = 0;
    always @(posedge clk) valid <= {{valid[1:0], i__valid}};
    assign o__valid = valid[2];
    {body}
endmodule
"""


ALWAYS, SOMETIMES = ("1", "1"), ("i__payload[11]", "i__payload[12]")


def rom(name, words, *, width, first, enables):
    reads, registers = enables
    cases = "".join(f"    words_{name}[{n}] = {width}'d{word};\n" for n, word in enumerate(words))
    return f"""
    (* ram_style = "block" *) reg [{width - 1}:0] words_{name} [0:{len(words) - 1}];
    initial begin
    {cases}
    end
    reg [{width - 1}:0] read_{name} = 0, register_{name} = 0, result_{name} = 0;
    always @(posedge clk) begin
        if ({reads}) read_{name} <= words_{name}[i__payload[{len(words).bit_length() - 2}:0]];
        if ({registers}) register_{name} <= read_{name};
        result_{name} <= ~register_{name};
    end
    assign o__payload[{first} +: {width}] = result_{name};
    """


@pytest.mark.synth
@pytest.mark.verilator
@pytest.mark.parametrize("enables", [ALWAYS, SOMETIMES], ids=["always", "sometimes"])
def test_netlist_does_the_same(enables, rng, tmp_path):
    """Words of every width, cycle for cycle; a flip-flop per bit less."""
    body, first = "", 0
    for name, (width, depth) in WIDTHS.items():
        words = [int(word) for word in rng.integers(0, 1 << width, depth)]
        body += rom(name, words, width=width, first=first, enables=enables)
        first += width
    source = TOP.format(outputs=first, body=body)
    addresses = rng.integers(0, 1 << 13, 600).astype(np.uint64)
    mapped = mapped_verilog(source, find_device("ecp5-85k"), top="top")
    plain, ours = (
        FastRunner("/* verilator lint_off WIDTH */\n" + text).run(addresses, expected_beats=600)
        for text in (source, mapped)
    )
    np.testing.assert_array_equal(ours.payloads, plain.payloads)

    (tmp_path / "top.v").write_text(source)
    cells = map_only(
        tmp_path / "top.v", top="top", family=ECP5, device="85k", out_dir=tmp_path / "mapped"
    )
    netlist = json.loads((tmp_path / "mapped" / "top.json").read_text())
    found = list(netlist["modules"]["top"]["cells"].values())
    flip_flops = sum(cell["type"] == "TRELLIS_FF" for cell in found)
    assert cells["TRELLIS_FF"] == flip_flops == first + 3
    modes = [cell["parameters"] for cell in found if cell["type"] == "DP16KD"]
    assert len(modes) == len(WIDTHS)
    assert all("OUTREG" in {mode["REGMODE_A"], mode["REGMODE_B"]} for mode in modes)
