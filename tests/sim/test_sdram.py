"""The model of SDR SDRAM: what it keeps, and what it refuses."""

import re
from pathlib import Path

import numpy as np
import pytest

import nnef_hw.sim
from nnef_hw.errors import ToolError
from nnef_hw.sim.fast_runner import FastRunner

pytestmark = pytest.mark.verilator

MODEL = (Path(nnef_hw.sim.__file__).parent / "models" / "sdram.v").read_text()
# A short time to power up and between refreshes; and a tRC that tRAS and tRP do not hide.
TOP = """
module top (
    input clk, rst,
    input [37:0] i__payload, input i__valid, output i__ready,
    output [15:0] o__payload, output o__valid, input o__ready
);
    reg [37:0] pins = {4'b0111, 34'b0};
    reg [15:0] sample = 0;
    always @(posedge clk) if (i__valid) pins <= i__payload;
    always @(negedge clk) sample <= dq;
    assign i__ready = o__ready;
    assign o__valid = i__valid;
    assign o__payload = sample;
    wire [15:0] dq = pins[0] ? pins[16:1] : 16'bz;
    nnef_hw_sdram #(
        .PERIOD_PS({period}), .WORDS(4096), .POWER_UP_PS(1000000), .REFRESH_PS(1000000),
        .RC_PS(90000)
    ) sdram (
        .clk(~clk), .cke(~pins[37]), .cs_n(1'b0), .ras_n(pins[36]), .cas_n(pins[35]),
        .we_n(pins[34]), .ba(pins[33:32]), .a(pins[31:19]), .dqm(pins[18:17]), .dq(dq)
    );
endmodule
"""
MODE, REFRESH, PRECHARGE, ACTIVE, WRITE, READ, STOP, NOP = range(8)
ALL = AUTO = 1 << 10


class Commands:
    """A host that gives a command per cycle."""

    def __init__(self):
        self.states, self.samples = [], []

    def add(self, command, address=0, bank=0, data=None, *, wait=0, masked=0, cke=1):
        """Give a command, and then none for some cycles."""
        driven = (data << 1 | 1) if data is not None else 0
        pins = (1 - cke) << 37 | command << 34 | bank << 32 | address << 19 | masked << 17 | driven
        self.states += [pins] + [NOP << 34] * wait
        return self

    def read(self, address, bank=0, *, latency=2):
        """Read a word, and note where it comes."""
        # behind the register before the pins
        self.samples.append(len(self.states) + latency + 1)
        return self.add(READ, address, bank, wait=latency + 2)

    def ready(self, mode=0x20, *, wait=1):
        """Initialize the memory."""
        self.add(NOP, wait=120).add(PRECHARGE, ALL, wait=2)
        self.add(REFRESH, wait=7).add(REFRESH, wait=7)
        return self.add(MODE, mode, wait=wait)


@pytest.fixture
def play():
    """Return ``play(commands)``, which gives the words that were read."""
    runners = {}

    def run(commands, period=10000):
        if period not in runners:
            runners[period] = FastRunner(TOP.replace("{period}", str(period)) + MODEL)
        states = np.array(commands.states, np.uint64)
        words = runners[period].run(states, expected_beats=len(states)).payloads
        return [int(words[sample]) for sample in commands.samples]

    return run


@pytest.mark.parametrize("cas", [2, 3])
def test_words_are_kept(play, cas):
    commands = Commands().ready(cas << 4).add(ACTIVE, 1, bank=2, wait=2)
    commands.add(WRITE, 5, 2, 0x1234).add(WRITE, 6, 2, 0xABCD)
    # the upper byte is masked
    commands.add(WRITE, 5, 2, 0xFF78, masked=2)
    commands.read(5, 2, latency=cas).read(6, 2, latency=cas).add(PRECHARGE, 0, 2, wait=2)
    commands.add(REFRESH, wait=6).add(ACTIVE, 1, bank=2, wait=2).read(6, 2, latency=cas)
    assert play(commands) == [0x1278, 0xABCD, 0xABCD]


def test_a_row_closes_by_itself(play):
    commands = Commands().ready().add(ACTIVE, 1, wait=2).add(WRITE, AUTO | 3, 0, 77, wait=5)
    commands.add(ACTIVE, 0, wait=2).read(3).add(PRECHARGE, wait=2)
    commands.add(ACTIVE, 1, wait=2).read(3).add(NOP)
    assert play(commands) == [0, 77]


def test_a_reset_host_initializes_it_anew(play):
    commands = Commands().ready().add(ACTIVE, 1, wait=2).add(WRITE, 3, 0, 77, wait=5)
    commands.ready(wait=2).add(ACTIVE, 1, wait=2).read(3).add(NOP, wait=2)
    assert play(commands) == [77]


def opened(wait=2, **options):
    return Commands().ready().add(ACTIVE, 0, wait=wait, **options)


VIOLATIONS = {
    "a command before the power-up time": Commands().add(NOP, wait=95).add(PRECHARGE, ALL),
    "REFRESH before PRECHARGE of all banks": Commands().add(NOP, wait=100).add(REFRESH),
    "LOAD MODE REGISTER before two refreshes": (
        Commands().add(NOP, wait=100).add(PRECHARGE, ALL, wait=2).add(REFRESH, wait=6).add(MODE, 32)
    ),
    "ACTIVE before the initialization": (
        Commands().add(NOP, wait=100).add(PRECHARGE, ALL, wait=2).add(ACTIVE)
    ),
    "CAS latency is neither 2 nor 3": Commands().ready(0x10),
    "a mode without a model": Commands().ready(0x27),
    "tMRD: a command too soon": Commands().ready(wait=0).add(ACTIVE),
    "tRFC: a command too soon": Commands().ready().add(REFRESH, wait=5).add(ACTIVE),
    "tRP: a command too soon behind PRECHARGE": (
        opened(4).add(PRECHARGE, ALL, wait=1).add(REFRESH)
    ),
    "tRP: ACTIVE too soon": opened(6).add(PRECHARGE, 0, wait=1).add(ACTIVE),
    "tRAS: PRECHARGE too soon": opened(3).add(PRECHARGE),
    "tRC: ACTIVE too soon": opened(4).add(PRECHARGE, wait=2).add(ACTIVE),
    "tRCD: READ or WRITE too soon": opened(1).add(READ),
    "tRRD: ACTIVE too soon": opened(0).add(ACTIVE, bank=1),
    "tWR: PRECHARGE too soon": opened(4).add(WRITE, 0, 0, 1).add(PRECHARGE),
    "READ or WRITE without an open row": opened().add(READ, bank=1),
    "ACTIVE of a bank with an open row": opened(7).add(ACTIVE),
    "REFRESH or LOAD MODE REGISTER with an open row": opened(7).add(REFRESH),
    "WRITE while data are read": opened().add(READ).add(WRITE, 0, 0, 1),
    "an address beyond the modelled words": (Commands().ready().add(ACTIVE, 2, wait=2).add(READ)),
    "a refresh is missing": Commands().ready().add(NOP, wait=210).add(REFRESH),
    "CKE low has no model": Commands().ready().add(NOP, cke=0),
    "BURST STOP has no model": Commands().ready().add(STOP),
}


@pytest.mark.parametrize("message", VIOLATIONS)
def test_a_violation_ends_the_simulation(message, play):
    commands = VIOLATIONS[message].add(NOP, wait=2)
    with pytest.raises(ToolError, match=re.escape(message)):
        play(commands)


def test_the_clock_may_be_too_fast_for_the_cas_latency(play):
    with pytest.raises(ToolError, match="tCK: the clock is too fast for the CAS latency"):
        play(Commands().ready().add(NOP), period=9000)
