"""Place and route the readers of memories alone, on the pins of boards, and print their clocks.

The quad reader of an iCEBreaker's flash and the SDRAM reader of a ULX3S-85F, each with its pads and
a consumer that folds all words into the LED.
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nnef_hw.boards import Board
from nnef_hw.boards.memory_pins import memory_pins
from nnef_hw.boards.top import board_pins
from nnef_hw.build.synthesis import synthesize
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.parts import FlashReader, SdramReader
from nnef_hw.rtl.pads import pads_verilog
from nnef_hw.streaming import find_board

WORDS = 120_000
FLASH_TOP = """
module probe (
    input clk, output led, output pin_cs_n, pin_sck, inout [3:0] pin_dq
);
    wire [15:0] word;
    wire valid, cs_n, error;
    wire [1:0] sck;
    wire [3:0] dq_o, dq_oe, dq_i, dq_i_mid;
    top reader (
        .clk(clk), .rst(1'b0), .start(1'b1), .idle(), .error(error), .id(), .cs_n(cs_n), .sck(sck),
        .dq_o(dq_o), .dq_oe(dq_oe), .dq_i(dq_i), {mid}
        .o__payload(word), .o__valid(valid), .o__ready(~noise[0])
    );
    nnef_hw_flash_pads pads (
        .clk(clk), .cs_n(cs_n), .sck(sck), .dq_o(dq_o), .dq_oe(dq_oe), .dq_i(dq_i),
        .dq_i_mid(dq_i_mid), .pin_cs_n(pin_cs_n), .pin_sck(pin_sck), .pin_dq(pin_dq)
    );
{consumer}
endmodule
"""
SDRAM_TOP = """
module probe (
    input clk, output led,
    output pin_clk, pin_cke, pin_cs_n, pin_ras_n, pin_cas_n, pin_we_n,
    output [1:0] pin_ba, output [12:0] pin_a, output [1:0] pin_dqm, inout [15:0] pin_dq
);
    wire [15:0] word, dq_o, dq_i;
    wire valid, dq_oe, taken, error = 0;
    wire [2:0] command;
    wire [1:0] bank;
    wire [12:0] address;
    top reader (
        .clk(clk), .rst(1'b0), .start(~led), .load(1'b1), .idle(), .i__payload(noise),
        .i__valid(noise[1]), .i__ready(taken), .command(command), .bank(bank), .address(address),
        .dq_o(dq_o), .dq_oe(dq_oe), .dq_i(dq_i),
        .o__payload(word), .o__valid(valid), .o__ready(~noise[0])
    );
    nnef_hw_sdram_pads pads (
        .clk(clk), .command(command), .bank(bank), .address(address), .dq_o(dq_o), .dq_oe(dq_oe),
        .dq_i(dq_i), .pin_clk(pin_clk), .pin_cke(pin_cke), .pin_cs_n(pin_cs_n),
        .pin_ras_n(pin_ras_n), .pin_cas_n(pin_cas_n), .pin_we_n(pin_we_n), .pin_ba(pin_ba),
        .pin_a(pin_a), .pin_dqm(pin_dqm), .pin_dq(pin_dq)
    );
{consumer}
endmodule
"""
CONSUMER = """
    reg [15:0] noise = 1, sum = 0;
    always @(posedge clk) begin
        noise <= {noise[14:0], noise[15] ^ noise[13] ^ error};
        if (valid & ~noise[0]) sum <= {sum[14:0], sum[15]} ^ word;
    end
    assign led = sum[15];
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """A reader on a board, and the clock that it is to reach."""

    board: Board
    memory: Any
    part: FlashReader | SdramReader
    top: str

    @property
    def verilog(self) -> str:
        """Return all of the design."""
        mid = ".dq_i_mid(dq_i_mid)," if "flash" in self.part.label and self._is_ddr else ""
        top = self.top.replace("{mid}", mid).replace("{consumer}", CONSUMER)
        return top + to_verilog(self.part.build()) + pads_verilog()

    @property
    def _is_ddr(self) -> bool:
        return isinstance(self.part, FlashReader) and self.part.read.double_rate

    @property
    def constraints(self) -> str:
        """Return pins, and the clock as if the oscillator had it."""
        pins = board_pins(self.board)
        pins = {"clk": pins["clk"], "led": pins["led"], **memory_pins(self.board, self.memory)}
        return self.board.device.family.constraints(pins, self.part.clock_mhz)


def probes() -> dict[str, Probe]:
    """Return them by name."""
    icebreaker, ulx3s = find_board("icebreaker"), find_board("ulx3s_85f")
    flash, sdram = icebreaker.spi_flash, ulx3s.sdram
    reader = FlashReader(
        chips=flash.chips, read=flash.best_read(36.0), clock_mhz=36.0, base=flash.image_address,
        words=WORDS,
    )  # fmt: skip
    double = replace(reader, read=flash.best_read(36.0, ddr=True))
    bursts = SdramReader(chip=sdram.chip, clock_mhz=90.0, words=WORDS, ram=ulx3s.device.ram)
    return {
        "flash": Probe(icebreaker, flash, reader, FLASH_TOP),
        "flash_ddr": Probe(icebreaker, flash, double, FLASH_TOP),
        "sdram": Probe(ulx3s, sdram, bursts, SDRAM_TOP),
    }


def main() -> None:
    """Build, print what was reached."""
    available = probes()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("probes", nargs="*", default=list(available), choices=list(available))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/bench_memories"))
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    for name in options.probes:
        probe = available[name]
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / "design.v"
        source.write_text(probe.verilog)
        board = probe.board
        result = synthesize(
            source, top="probe", family=board.device.family, device=board.part,
            package=board.package, speed=board.speed, out_dir=folder,
            frequency_mhz=probe.part.clock_mhz, constraints=probe.constraints,
            seeds=[options.seed],
        )  # fmt: skip
        used = {kind: resource.used for kind, resource in result.resources.items()}
        print(f"{name}: {result.fmax_mhz:.1f} of {probe.part.clock_mhz:g} MHz; {used}")


if __name__ == "__main__":
    main()
