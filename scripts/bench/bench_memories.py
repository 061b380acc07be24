"""Place and route the readers of memories alone, on the pins of boards, and print their clocks.

Readers of flash on four lines (iCEBreaker) and on one (Tang Nano 9K), and of SDRAM (ULX3S-85F, Tang
Nano 20K), each with its pads and a consumer that folds all words into the LED.
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nnef_hw.boards import Board, find_board
from nnef_hw.boards.hardware.memory_pins import memory_pins, package_ports
from nnef_hw.boards.hardware.pins import board_pins
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.parts import FlashReader, SdramReader
from nnef_hw.place.synthesis import synthesize
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.rtl.readers.pads import FlashPads, SdramPads, padded_top, pads_verilog

WORDS = 120_000
# The reader, and a consumer that pauses now and then.
CORE = """
module core (
    input clk, output led, {ports}
);
    reg [15:0] noise = 1;
    reg [{width}-1:0] sum = 0;
    wire [{width}-1:0] word;
    wire valid;
    always @(posedge clk) begin
        noise <= {{noise[14:0], noise[15] ^ noise[13]}};
        if (valid & ~noise[0]) sum <= {{sum[{width}-2:0], sum[{width}-1]}} ^ word;
    end
    assign led = sum[{width}-1];
    top reader (
        .clk(clk), .rst(1'b0), .o__payload(word), .o__valid(valid), .o__ready(~noise[0]),
        {more}, {connections}
    );
endmodule
"""
READ_ONLY = ".start(1'b1)"
READ_AND_WRITE = """
        .start(~led), .load(1'b1), .i__payload({noise, noise}), .i__valid(noise[1])
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
            ports=", ".join(signals), more=self.more.strip(), width=self.width,
            connections=", ".join(f".{x}({self.pads.prefix}{x})" for x in self.pads.ports),
        )  # fmt: skip
        ports = {"clk": ("input", 1), "led": ("output", 1)}
        names = package_ports(self.board, self.memory)
        top = padded_top("core", [self.pads], ports, name="probe", names=names)
        return core + top + to_verilog(self.part.build()) + pads_verilog()

    @property
    def width(self) -> int:
        """Return the bits of a word."""
        return 16 if isinstance(self.part, FlashReader) else self.part.chip.width

    @property
    def constraints(self) -> str:
        """Return pins, and the clock as if the oscillator had it."""
        pins = board_pins(self.board)
        pins = {"clk": pins["clk"], "led": pins["led"], **memory_pins(self.board, self.memory)}
        return toolchain_of(self.board.device.family).constraints(pins, self.part.clock_mhz)


def probes() -> dict[str, Probe]:
    """Return them by name."""
    return {
        "flash": _flash("icebreaker", 36.0),
        "flash_ddr": _flash("icebreaker", 36.0, ddr=True),
        "flash_one_line": _flash("tang_nano_9k", 40.5),
        "sdram": _sdram("ulx3s_85f", 90.0),
        "sdram_in_package": _sdram("tang_nano_20k", 60.75),
    }


def _flash(name: str, clock_mhz: float, *, ddr: bool = False) -> Probe:
    board = find_board(name)
    flash = board.spi_flash
    part = FlashReader(
        chips=flash.chips, any_chip=flash.any_chip, read=flash.best_read(clock_mhz, ddr=ddr),
        clock_mhz=clock_mhz, base=flash.image_address, words=WORDS,
    )  # fmt: skip
    return Probe(board, flash, part, FlashPads(part), READ_ONLY)


def _sdram(name: str, clock_mhz: float) -> Probe:
    board = find_board(name)
    part = SdramReader(
        chip=board.sdram.chip, clock_mhz=clock_mhz, words=WORDS, ram=board.device.ram
    )
    return Probe(board, board.sdram, part, SdramPads(part), READ_AND_WRITE)


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
