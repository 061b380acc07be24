"""The model of the SPI flash: what it answers, and what it refuses."""

import re
from pathlib import Path

import numpy as np
import pytest

import nnef_hw.sim
from nnef_hw.errors import ToolError
from nnef_hw.sim.fast_runner import FastRunner

pytestmark = pytest.mark.verilator

MODEL = (Path(nnef_hw.sim.__file__).parent / "models" / "spi_flash.v").read_text()
PERIOD_NS = 4
TOP = """
module top (
    input clk, rst,
    input [9:0] i__payload, input i__valid, output i__ready,
    output [3:0] o__payload, output o__valid, input o__ready
);
    reg [9:0] pins = 10'h200;
    always @(posedge clk) if (i__valid) pins <= i__payload;
    assign i__ready = o__ready;
    assign o__valid = i__valid;
    wire [3:0] dq;
    genvar n;
    for (n = 0; n < 4; n = n + 1) begin : lines
        assign dq[n] = pins[n] ? pins[4 + n] : 1'bz;
    end
    assign o__payload = dq;
    nnef_hw_spi_flash #(.PERIOD_PS(4000), .BYTES(64), .IMAGE("{image}"))
        flash (.clk(clk), .cs_n(pins[9]), .sck(pins[8]), .dq(dq));
endmodule
"""
SINGLE, QUAD = 0b1101, 0b1111


class Pins:
    """A host that moves the pins by hand, a state per clock cycle of 4 ns.

    A clock of the flash lasts ``low + high`` cycles, by default 12 ns.
    """

    def __init__(self, low=2, high=1):
        self.low, self.high = low, high
        self.states, self.samples = [], []

    def wait(self, nanoseconds):
        """Keep the chip deselected."""
        self._add(1, 0, 0b1100, SINGLE, -(-nanoseconds // PERIOD_NS))
        return self

    def _add(self, cs_n, sck, dq, drive, count):
        self.states += [cs_n << 9 | sck << 8 | dq << 4 | drive] * count

    def select(self):
        """Select the chip a period before the first clock."""
        self._add(0, 0, 0b1100, SINGLE, 1)
        return self

    def clock(self, dq, drive=SINGLE):
        """Show the lines, and let the clock rise and fall."""
        self._add(0, 0, dq, drive, self.low)
        self._add(0, 1, dq, drive, self.high)
        return self

    def send(self, *values):
        """Shift bytes out on one line."""
        for value in values:
            for bit in range(7, -1, -1):
                self.clock(0b1100 | value >> bit & 1)
        return self

    def quad(self, *values):
        """The same on four lines."""
        for value in values:
            self.clock(value >> 4, QUAD).clock(value & 15, QUAD)
        return self

    def both_edges(self, *values):
        """The same at both edges."""
        for value in values:
            self._add(0, 0, value >> 4, QUAD, self.low)
            self._add(0, 1, value >> 4, QUAD, 1)
            self._add(0, 1, value & 15, QUAD, self.high)
            self._add(0, 0, value & 15, QUAD, 1)
        return self

    def read(self, clocks, drive=0, *, both=False):
        """Note the lines before every rise of the clock, and before every fall if asked to."""
        for _ in range(clocks):
            self._add(0, 0, 0b1100, drive, self.low)
            self.samples.append(len(self.states))
            self._add(0, 1, 0b1100, drive, self.high + both)
            if both:
                self.samples.append(len(self.states))
        return self

    def end(self, nanoseconds=52):
        """Deselect the chip, for so long or longer."""
        self._add(0, 0, 0b1100, SINGLE, 1)
        return self.wait(nanoseconds)

    def awake(self):
        """Wake the chip."""
        return self.wait(8).send(0xAB).end(3000)

    def quad_enabled(self):
        """Wake it, and set QE."""
        return self.awake().send(0x50).end().send(0x31, 2).end()


@pytest.fixture
def play(tmp_path_factory, rng):
    """Return ``play(pins)``, which gives the lines at the samples, and the flash's bytes."""
    contents = np.random.default_rng(7).integers(0, 256, 64)
    image = tmp_path_factory.getbasetemp() / "image.hex"
    image.write_text("\n".join(f"{byte:02x}" for byte in contents))
    runner = FastRunner(TOP.replace("{image}", str(image)) + MODEL)

    def run(pins):
        states = np.array([*pins.states, 0x200, 0x200], np.uint64)
        lines = runner.run(states, expected_beats=len(states)).payloads
        return [int(lines[sample]) for sample in pins.samples]

    return run, contents.tolist()


def as_bytes(values, bits):
    """Join samples of so many bits, the highest ones first."""
    number = 0
    for value in values:
        number = number << bits | (value if bits == 4 else value >> 1 & 1)
    return list(number.to_bytes(len(values) * bits // 8, "big"))


def test_id_and_status(play):
    run, _ = play
    pins = Pins().awake().send(0x9F).read(24, SINGLE).end().send(0x35).read(8, SINGLE).end()
    assert as_bytes(run(pins), 1) == [0xEF, 0x70, 0x18, 0]
    pins = Pins().quad_enabled().send(0x35).read(8, SINGLE).end()
    assert as_bytes(run(pins), 1) == [2]


@pytest.mark.parametrize(
    ("opcode", "dummies", "low"), [(0x03, 0, 4), (0x0B, 8, 2)], ids=["read", "fast"]
)
def test_one_line(play, opcode, dummies, low):
    run, contents = play
    pins = Pins(low).awake().send(opcode, 0, 0, 5, *[0] * (dummies // 8)).read(32, SINGLE).end()
    assert as_bytes(run(pins), 1) == contents[5:9]


def test_four_lines(play):
    run, contents = play
    pins = Pins().quad_enabled()
    pins.send(0x6B, 0, 0, 7, 0).read(4).end(12)
    pins.send(0xEB).quad(0, 0, 9, 0xFF)
    for _ in range(4):
        pins.clock(0, 0)
    pins.read(6).end()
    assert as_bytes(run(pins), 4) == [*contents[7:9], *contents[9:12]]


def test_both_edges(play):
    run, contents = play
    pins = Pins(2, 2).quad_enabled().send(0xED).both_edges(0, 0, 3, 0xFF)
    for _ in range(7):
        pins.clock(0, 0)
    pins.read(5, both=True).end()
    assert as_bytes(run(pins), 4) == contents[3:8]


def test_a_command_that_is_cut_off_is_not_executed(play):
    run, _ = play
    pins = Pins().awake().clock(0b1101).end().send(0x50).end().send(0x31).clock(0b1101).end()
    pins.send(0x35).read(8, SINGLE).end()
    assert as_bytes(run(pins), 1) == [0]


READ = (0x03, 0, 0, 0)
VIOLATIONS = {
    "a command in power-down": Pins().wait(8).send(0x9F),
    "tRES1: selected before it was awake": Pins().wait(8).send(0xAB).end(2900).send(0x9F),
    "tSHSL: selected again too soon (opcode 9fh": (
        Pins().awake().send(0x9F).read(24, SINGLE).end(8).send(0x9F)
    ),
    "tSHSL: selected again too soon (opcode 31h": (
        Pins().awake().send(0x50).end().send(0x31, 2).end(48).send(0x9F)
    ),
    "tSLCH: a clock too soon behind /CS": Pins(1, 2).awake().send(0x9F),
    "fC: the clock is too fast for the command (opcode 01h": (
        Pins(1, 1).wait(8).select().send(0xAB)
    ),
    "fC: the clock is too fast for the command (opcode 03h": (
        Pins(2, 2).awake().send(*READ).read(8)
    ),
    "fC: the clock is too fast for the command (opcode edh": (
        Pins(2, 1).quad_enabled().send(0xED).both_edges(0, 0, 0, 0xFF).read(9)
    ),
    "a quad command while QE is 0 (opcode ebh": Pins().awake().send(0xEB).quad(0),
    "a quad command while QE is 0 (opcode 6bh": Pins().awake().send(0x6B, 0),
    "31h without 50h before it": Pins().awake().send(0x31, 2).end(),
    "unknown command (opcode d8h": Pins().awake().send(0xD8),
    "continuous read mode has no model": (
        Pins().quad_enabled().send(0xEB).quad(0, 0, 0, 0xA5).clock(0)
    ),
    "/HOLD is low": Pins().awake().clock(0b0100),
    "an address beyond the modelled bytes": Pins(4).awake().send(0x03, 0, 0, 63).read(10, SINGLE),
}


@pytest.mark.parametrize("message", VIOLATIONS)
def test_a_violation_ends_the_simulation(message, play):
    run, _ = play
    with pytest.raises(ToolError, match=re.escape(message)):
        run(VIOLATIONS[message])
