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
from nnef_hw.rtl.pads import FlashPads, SdramPads, padded_top, pads_verilog
from nnef_hw.streaming import find_board

WORDS = 120_000
# The reader, and a consumer that pauses now and then.
CORE = """
module core (
    input clk, output led, {ports}
);
    reg [15:0] noise = 1, sum = 0;
    wire [15:0] word;
    wire valid;
    always @(posedge clk) begin
        noise <= {{noise[14:0], noise[15] ^ noise[13]}};
        if (valid & ~noise[0]) sum <= {{sum[14:0], sum[15]}} ^ word;
    end
    assign led = sum[15];
    top reader (
        .clk(clk), .rst(1'b0), .o__payload(word), .o__valid(valid), .o__ready(~noise[0]),
        {more}, {connections}
    );
endmodule
"""
READ_ONLY = ".start(1'b1)"
READ_AND_WRITE = """
        .start(~led), .load(1'b1), .i__payload(noise), .i__valid(noise[1])
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """A reader on a board, its pads, and what else the reader is given."""

    board: Board
    memory: Any
    part: FlashReader | SdramReader
    pads: Any
    more: str

    @property
    def verilog(self) -> str:
        """Return all of the design."""
        signals = [
            f"{direction} [{width - 1}:0] {self.pads.prefix}{port}"
            for port, (direction, width) in self.pads.ports.items()
        ]
        core = CORE.format(
            ports=", ".join(signals), more=self.more.strip(),
            connections=", ".join(f".{x}({self.pads.prefix}{x})" for x in self.pads.ports),
        )  # fmt: skip
        top = padded_top(
            "core", [self.pads], {"clk": ("input", 1), "led": ("output", 1)}, name="probe"
        )
        return core + top + to_verilog(self.part.build()) + pads_verilog()

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
        "flash": Probe(icebreaker, flash, reader, FlashPads(reader), READ_ONLY),
        "flash_ddr": Probe(icebreaker, flash, double, FlashPads(double), READ_ONLY),
        "sdram": Probe(ulx3s, sdram, bursts, SdramPads(bursts), READ_AND_WRITE),
    }


def main() -> None:
    """Build, print what was reached."""
    available = probes()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=list(available), help="one of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/bench_memories"))
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    for name in [options.only] if options.only else available:
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
