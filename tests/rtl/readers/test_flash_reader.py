"""The reader of SPI flash against the model of the chip: every word, and the cycle of each."""

import re
from dataclasses import replace

import numpy as np
import pytest
from memory_bench import next_taken, reader_verilog, run_reader
from sweeps import few

from nnef_hw import parts
from nnef_hw.boards import find_board
from nnef_hw.boards.board import SpiFlash
from nnef_hw.errors import CheckError
from nnef_hw.hardware.memories import find_flash
from nnef_hw.hardware.memories.flash import FAST_READ, QUAD_IO, QUAD_IO_DDR, QUAD_OUTPUT, READ
from nnef_hw.sim.memories import FlashModel

FLASH = find_flash(0xEF7018)
OTHER = find_flash(0xEF4018)
READER = parts.FlashReader(chips=(FLASH,), read=QUAD_IO, clock_mhz=24.0, base=0x120, words=9)
QUEUE = parts.BlockFifo(
    bits=16, signed=False, frame=1, depth=18, ram=find_board("icebreaker").device.ram
)
CASES = {
    "one line, any chip": replace(READER, any_chip=True, read=READ),
    "one line, fast": replace(READER, read=FAST_READ),
    "four lines out, 48 MHz": replace(READER, read=QUAD_OUTPUT, clock_mhz=48.0, base=0),
    "four lines": READER,
    "both edges": replace(READER, read=QUAD_IO_DDR),
    "some words once": replace(READER, once=4),
    "a queue in block RAM": replace(READER, queue=QUEUE, words=30),
    "a queue, both edges, some words once": replace(
        READER, queue=QUEUE, words=40, once=11, read=QUAD_IO_DDR
    ),
}
# Every read command, with and without a queue, and words that come once.
USUAL = (
    "one line, any chip", "four lines out, 48 MHz", "four lines",
    "a queue, both edges, some words once",
)  # fmt: skip
BODY = """
    wire cs_n;
    wire [1:0] sck;
    wire [3:0] dq_o, dq_oe, dq_i, dq_i_mid;
    wire word_valid;
    assign valid = word_valid & settled;
    wire restart = {restart};
    wire settled = cycle >= {settled};
    assign i__ready = idle & settled;
    reader reader (
        .clk(clk), .rst(rst | restart), .start(i__valid | ~settled), .idle(idle), .error(error),
        .id(id), .cs_n(cs_n), .sck(sck), .dq_o(dq_o), .dq_oe(dq_oe), .dq_i(dq_i), {mid}
        .o__payload(word), .o__valid(word_valid), .o__ready(o__ready | ~settled)
    );
    wire pin_cs_n, pin_sck;
    wire [{top}:0] pin_dq;
    nnef_hw_flash_pads #(.LINES({lines})) pads (
        .clk(clk), .cs_n(cs_n), .sck(sck), .dq_o(dq_o), .dq_oe(dq_oe), .dq_i(dq_i),
        .dq_i_mid(dq_i_mid), .pin_cs_n(pin_cs_n), .pin_sck(pin_sck), .pin_dq(pin_dq)
    );
{model}
"""


@pytest.fixture
def flash(tmp_path, rng):
    """Return ``run(part, **options)``, and the bytes of the flash."""
    contents = rng.integers(0, 256, 4096)
    image = tmp_path / "image.hex"
    image.write_text("\n".join(f"{byte:02x}" for byte in contents))

    def run(
        part, *, starts=2, words=None, jedec_id=FLASH.jedec_id, resets=(), device=None, **options
    ):
        lines = part.read.lines
        memory = SpiFlash(chips=(FLASH,), lines=lines, resource="")
        model = FlashModel(
            memory, part.clock_mhz, image, len(contents), jedec_id=jedec_id, prefix="pin_"
        )
        body = BODY.format(
            restart=" | ".join(["0", *(f"cycle == {reset}" for reset in resets)]),
            settled=max(resets, default=-1) + 1, model=model.instance(), lines=lines,
            top=3 if lines == 4 else 1,
            mid=".dq_i_mid(dq_i_mid)," if part.read.double_rate else "",
        )  # fmt: skip
        verilog = reader_verilog(part, model, device)
        again = part.words - part.once
        words = starts * again + part.once if words is None else words
        return run_reader(
            body, verilog, starts=starts, words=words, **{"idle_limit": 10_000, **options}
        )

    return run, contents


def check(part, result, contents, first=0):
    """Compare words and cycles with the image and the prediction.

    ``first`` is the first cycle after the last reset.
    """
    image = contents[part.base : part.base + 2 * part.words]
    expected = image[::2] | image[1::2] << 8
    again = [expected[part.once :]] * (len(result.started) - 1)
    assert (result.words == np.concatenate([expected, *again])).all()
    times = part.words_from()
    offered = iter((result.offered - first).tolist())
    taken = iter((result.taken - first).tolist())
    for start in (result.started - first).tolist():
        # its request was there long before
        assert times.begin(0) == start
        for _ in range(times.left):
            next_taken(times, offered, taken)


@pytest.mark.verilator
@pytest.mark.parametrize("name", few(list(CASES), USUAL))
def test_words_come_when_they_are_predicted(name, flash):
    (run, contents), part = flash, CASES[name]
    for stall in (0.0, 0.5, 0.9):
        result = run(part, stall=stall)
        check(part, result, contents)
        if stall == 0.0:
            times = part.words_from()
            begin = times.begin(0)
            assert result.started[0] == begin == len(part.startup)
            assert result.offered[0] == begin + part.first_word_cycles
            assert result.taken[part.words - 1] == begin + part.image_cycles()
            assert set(np.diff(result.taken[: part.words])) == {part.word_cycles}
            for k in range(part.words):
                assert times.take(0) == result.taken[k]
            assert times.begin(0) == result.started[1]


@pytest.mark.verilator
def test_a_reset_may_come_at_any_time(flash):
    """Within the first opcode, in tRES1, in the ID, in 31h, in the read command, between words."""
    run, contents = flash
    stages = len(READER.startup)
    resets = np.cumsum([76, 110, 180, stages - 10, stages + 12, stages + 40, stages + 60]).tolist()
    result = run(READER, resets=resets)
    check(READER, result, contents, first=resets[-1] + 1)


@pytest.mark.verilator
def test_a_wrong_chip_is_an_error_and_no_word_comes(flash):
    run, _ = flash
    assert run(READER, starts=0, words=1, jedec_id=OTHER.jedec_id, drain=0) == OTHER.jedec_id
    with pytest.raises(CheckError, match=re.escape("i took 0 of 1")):
        run(READER, starts=1, words=1, jedec_id=OTHER.jedec_id, idle_limit=2000)


@pytest.mark.verilator
def test_nobody_is_no_chip(flash):
    run, _ = flash
    part = replace(READER, any_chip=True, read=READ)
    assert run(part, starts=0, words=1, jedec_id=0xFFFFFF, drain=0) == 0xFFFFFF


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.verilator
@pytest.mark.parametrize("name", ["four lines", "both edges"])
@pytest.mark.parametrize("board", ["icebreaker", "tang_nano_20k"])
def test_netlist_has_the_same_cycles(name, board, flash):
    run, contents = flash
    result = run(CASES[name], stall=0.5, device=find_board(board).device)
    check(CASES[name], result, contents)
