"""The reader of SDRAM against the model of the chip: every word, and the cycle of each."""

from dataclasses import replace

import numpy as np
import pytest
from memory_bench import next_taken, reader_verilog, run_reader

from nnef_hw import parts
from nnef_hw.boards import find_board
from nnef_hw.boards.board import Sdram
from nnef_hw.hardware.memories.sdram import GW2AR_SDRAM, SDRAM_256_MBIT
from nnef_hw.parts.readers.row_reader import Segment
from nnef_hw.sim.memories import SdramModel

DEVICE = find_board("ulx3s_85f").device
RAM = DEVICE.ram
# A short power-up, since nothing happens then.
CHIP = replace(SDRAM_256_MBIT, power_up_us=20.0)
READER = parts.SdramReader(chip=CHIP, clock_mhz=90.0, words=1677, ram=RAM)
HALVES = parts.SplitReader(
    chip=replace(GW2AR_SDRAM, power_up_us=20.0), clock_mhz=60.75, words=1600, ram=RAM
)
CASES = {
    "90 MHz": READER,
    "CAS latency 3": replace(READER, clock_mhz=125.0, words=528),
    "short bursts": replace(READER, clock_mhz=25.0, words=416),
    "32 bits": replace(
        READER, chip=replace(GW2AR_SDRAM, power_up_us=20.0), clock_mhz=60.75, words=800
    ),
    "halves": HALVES,
    "halves, the last one alone": replace(HALVES, words=1203),
    "words that come once": replace(READER, once=341),
    "short bursts, and words that come once": replace(READER, clock_mhz=25.0, words=416, once=48),
    "halves, some once": replace(HALVES, once=618),
    "halves, an odd number once": replace(HALVES, once=333),
    "an odd number of halves, and of those that come once": replace(HALVES, words=1203, once=65),
}
# The first item of i loads the image, from a generator of noise; the others read it.
BODY = """
    wire [2:0] command;
    wire [1:0] bank;
    wire [12:0] address;
    wire [{pins}-1:0] dq_o, dq_i;
    wire dq_oe, taken, given;
    reg loaded = 0;
    reg [31:0] noise = 1;
    assign i__ready = idle;
    assign error = 0;
    assign id = 0;
    always @(posedge clk) begin
        if (i__valid & i__ready) loaded <= 1;
        if (taken & ~rst) noise <= noise * 32'd1664525 + 32'd1013904223;
    end
{counted}
    reader reader (
        .clk(clk), .rst(rst), .start({start}), .load(i__valid & ~loaded), .idle(idle),
        .restart(1'b0), {places}
        .i__payload(noise[31 -: {width}]), .i__valid(1'b1), .i__ready(taken),
        .command(command), .bank(bank), .address(address), .dq_o(dq_o), .dq_oe(dq_oe), .dq_i(dq_i),
        .o__payload(word), .o__valid(given), .o__ready(o__ready)
    );
    wire pin_clk, pin_cke, pin_cs_n, pin_ras_n, pin_cas_n, pin_we_n;
    wire [1:0] pin_ba;
    wire [{rows}-1:0] pin_a;
    wire [{pins}/8-1:0] pin_dqm;
    wire [{pins}-1:0] pin_dq;
    nnef_hw_sdram_pads #(.WIDTH({pins}), .ADDRESS({rows})) pads (
        .clk(clk), .command(command), .bank(bank), .address(address), .dq_o(dq_o), .dq_oe(dq_oe),
        .dq_i(dq_i), .pin_clk(pin_clk), .pin_cke(pin_cke), .pin_cs_n(pin_cs_n),
        .pin_ras_n(pin_ras_n), .pin_cas_n(pin_cas_n), .pin_we_n(pin_we_n), .pin_ba(pin_ba),
        .pin_a(pin_a), .pin_dqm(pin_dqm), .pin_dq(pin_dq)
    );
{model}
"""


def noise(count, width):
    """What the bench writes."""
    values, state = [], 1
    for _ in range(count):
        values.append(state >> 32 - width)
        state = (state * 1664525 + 1013904223) % 2**32
    return values


def words_of(part):
    """Return the reader of whole words, and the bits of what is given."""
    if isinstance(part, parts.SplitReader):
        return part.whole, part.width
    return part, part.chip.width


def run(part, *, reads=2, words=None, device=None, counted="assign valid = given;", places="",
        start="i__valid & loaded", **options):  # fmt: skip
    whole, width = words_of(part)
    memory = Sdram(chip=part.chip, resource="")
    model = SdramModel(memory, part.clock_mhz, words=16 * whole.granules, prefix="pin_")
    body = BODY.format(
        width=width, pins=part.chip.width, model=model.instance(), rows=part.chip.row_bits,
        counted=counted, places=places, start=start,
    )  # fmt: skip
    return run_reader(
        body,
        reader_verilog(part, model, device),
        starts=1 + reads,
        words=words or reads * part.words - (reads - 1) * part.once,
        width=width,
        **options,
    )


def check(part, result, *, waited=True):
    """Compare words and cycles with what was written and with the prediction.

    ``waited``: all reads but the first were asked for before they could begin.
    """
    reads = len(result.started) - 1
    whole, width = words_of(part)
    image = noise(part.words, width)
    assert result.words.tolist() == image + (reads - 1) * image[part.once :]
    assert result.started[0] == whole.setup_cycles
    times = part.words_from()
    offered, taken = iter(result.offered.tolist()), iter(result.taken.tolist())
    for n, start in enumerate(result.started[1:].tolist()):
        assert times.begin(0 if waited and n else start) == start
        assert times.left == part.words - (part.once if n else 0)
        for _ in range(times.left):
            next_taken(times, offered, taken)


@pytest.mark.verilator
@pytest.mark.parametrize("part", CASES.values(), ids=CASES)
def test_words_come_when_they_are_predicted(part):
    for stall in (0.0, 0.3, 0.9):
        result = run(part, stall=stall)
        check(part, result)
        if stall == 0.0:
            assert result.offered[0] - result.started[1] == part.first_word_cycles


# A row is chosen when a word of its frame is taken: another one in every frame.
COUNTED = """
    reg [31:0] count = 32'd0 - {once}, frame = 0;
    reg [31:0] total = 0;
    assign valid = given & total < {words};
    wire moves = valid & o__ready & ~rst;
    always @(posedge clk) if (moves) begin
        total <= total + 1;
        count <= count == {last} ? 0 : count + 1;
        if (count == {last}) frame <= frame + 1;
    end
"""
PLACES = ".place0(frame[2:0] * 3'd5 + 3'd3), .comes0(moves & count == {word}),"
SEGMENTS = Segment(0, 37), Segment(48, 200), Segment(256, 50, 0, 6, 64), Segment(640, 303)
ROWS = parts.RowReader(
    chip=CHIP, clock_mhz=90.0, words=960, ram=RAM, first=1, place_bits=((0, 3),), segments=SEGMENTS
)


@pytest.mark.verilator
@pytest.mark.parametrize(
    "part",
    [
        ROWS,
        replace(ROWS, segments=SEGMENTS[1:3], first=0),
        replace(ROWS, clock_mhz=25.0),
    ],
    ids=["some words once", "a row at the end", "short bursts"],
)
@pytest.mark.parametrize(("stall", "waits"), [(0.0, True), (0.0, False), (0.6, True)])
def test_rows_come_for_integers_when_they_are_predicted(part, stall, waits):
    """The integer comes with the first word of its frame, or with the last one before the row."""
    frames, once = 9, sum(segment.words for segment in part.segments[: part.first])
    count = once + frames * part.frame_words
    counted = COUNTED.format(once=once, last=part.frame_words - 1, words=count)
    word = part.segments[part.first].words - 1 if waits else 0
    result = run(
        part,
        reads=1,
        words=count,
        counted=counted,
        places=PLACES.format(word=word),
        start="loaded",
        stall=stall,
        seed=3,
    )
    image, times = noise(part.words, 16), part.words_from()
    offered, taken = iter(result.offered.tolist()), iter(result.taken.tolist())
    wanted, numbers = [], range(len(part.segments))
    for frame in range(frames):
        for n in numbers:
            own = part.segments[n]
            row = 0 if own.port is None else min((frame * 5 + 3) % 8, own.rows - 1)
            first = own.first + row * own.pitch
            wanted += image[first : first + own.words]
            times.begin(0 if frame or n else result.started[1])
            for k in range(own.words):
                cycle = next_taken(times, offered, taken)
                if n == part.first and k == word:
                    times.give(0, cycle)
        numbers = range(part.first, len(part.segments))
    assert result.words.tolist() == wanted


@pytest.mark.verilator
def test_reads_begin_at_any_time_between_refreshes():
    part = replace(READER, clock_mhz=25.0, words=16)
    result = run(part, reads=200, stall=0.9, seed=5)
    check(part, result, waited=False)
    # in some a refresh is due when the first burst should begin
    assert ((result.started[1:] + 1) % part.refresh_cycles == 0).sum() > 1


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.verilator
def test_netlist_has_the_same_cycles():
    check(READER, run(READER, stall=0.3, device=DEVICE))


def test_rate():
    """What a consumer gets that takes a word in every cycle."""
    part = replace(READER, words=1 << 17)
    times = part.words_from()
    times.begin(0)
    taken = [times.take(0) for _ in range(part.words)]
    rate = (part.words - 1) / (taken[-1] - taken[0])
    assert rate == pytest.approx(part.words_per_cycle, rel=2e-3)
    assert np.diff(taken).max() == (part.burst_cycles(0) + part.refresh_command_cycles + 1)
