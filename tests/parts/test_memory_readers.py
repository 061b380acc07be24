"""Predictions of the readers of memories: used wrongly, and as processes of the simulation."""

from dataclasses import replace
from itertools import groupby

import pytest

from nnef_hw import parts
from nnef_hw.boards import find_board
from nnef_hw.hardware.memories import find_flash
from nnef_hw.hardware.memories.flash import QUAD_IO, QUAD_IO_DDR, W25Q64JV
from nnef_hw.hardware.memories.sdram import GW2AR_SDRAM, SDRAM_256_MBIT
from nnef_hw.parts.base.timing import Kernel

DEVICE = find_board("ulx3s_85f").device
FLASH = parts.FlashReader(chips=(W25Q64JV,), read=QUAD_IO, clock_mhz=36.0, base=0, words=16)
QUEUE = parts.BlockFifo(bits=16, signed=False, frame=1, depth=66, ram=DEVICE.ram)
QUEUED = replace(FLASH, words=301, once=40, queue=QUEUE)
BOTH_EDGES = replace(QUEUED, chips=(find_flash(0xEF7018),), read=QUAD_IO_DDR)
SDRAM = parts.SdramReader(chip=SDRAM_256_MBIT, clock_mhz=90.0, words=1037, ram=DEVICE.ram)
HALVES = parts.SplitReader(chip=GW2AR_SDRAM, clock_mhz=60.75, words=2101, ram=DEVICE.ram)


@pytest.mark.parametrize("part", [FLASH, SDRAM, HALVES], ids=["flash", "sdram", "halves"])
def test_process_gives_the_words_of_the_prediction(part):
    count = 2 * part.words + 3

    def consumer(origin, seen):
        for k in range(count):
            offered = yield origin
            # pauses that the queue hides, and one that it does not
            seen.append(max(offered, seen[-1] + 1 + (k % 7 == 0) + 3000 * (k == 5)))
            origin.accept(seen[-1])
        yield

    kernel, seen = Kernel(), [-1]
    origin = part.start(kernel)
    kernel.start(consumer(origin, seen))
    kernel.run()

    times, cycle, expected = part.words_from(), -1, []
    for k in range(count):
        if k % part.words == 0:
            times.begin(0)
        cycle = times.take(cycle + 1 + (k % 7 == 0) + 3000 * (k == 5))
        expected.append(cycle)
    assert seen[1:] == expected


@pytest.mark.parametrize("part", [FLASH, SDRAM, HALVES], ids=["flash", "sdram", "halves"])
def test_words_are_taken_before_the_next_read(part):
    times = part.words_from()
    with pytest.raises(ValueError, match="no word is left"):
        times.take(0)
    times.begin(0)
    with pytest.raises(ValueError, match="of the last read were not taken"):
        times.begin(0)
    for _ in range(part.words):
        times.take(0)
    with pytest.raises(ValueError, match="no word is left"):
        times.take(0)


@pytest.mark.parametrize("part", [FLASH, QUEUED, BOTH_EDGES, SDRAM, HALVES])
def test_words_are_taken_many_at_a_time(part, rng):
    """In the same cycles as one by one, whatever the consumer waits for."""
    alone, together = part.words_from(), part.words_from()
    cycle = 0
    for _ in range(6):
        assert alone.begin(cycle) == together.begin(cycle)
        while together.left:
            count = min(int(rng.integers(1, 150)), together.left)
            wanted = cycle + int(rng.choice([0, 1, 5, 90, 700]))
            for _ in range(count):
                cycle = alone.take(wanted)
            assert together.take_all(count, wanted) == cycle
            assert alone.left == together.left
            assert alone.offered == together.offered or not together.left


@pytest.mark.parametrize("clock_mhz", [12.0, 50.0, 104.0])
def test_flash_is_deselected_for_long_enough(clock_mhz):
    part = replace(FLASH, clock_mhz=clock_mhz)
    gaps = [
        len(list(states)) * 1000 / clock_mhz
        for select, states in groupby(part.startup, key=lambda state: state.select)
        if not select
    ]
    # a reset, ABh, 9Fh, 50h, 31h
    assert all(gap >= least for gap, least in zip(gaps, (3000, 3000, 10, 10, 50), strict=True))
    assert len(part.ending) * 1000 / clock_mhz >= 10


def test_refreshes_of_an_idle_memory():
    """A read that begins just when a refresh is due waits for it; a later one does not."""
    interval = SDRAM.refresh_cycles
    due = (SDRAM.power_up_refreshes + 5) * interval
    part = replace(SDRAM, words=16)
    command = part.refresh_command_cycles
    assert part.words_from().begin(due) == due + command
    assert part.words_from().begin(due - 1) == due - 1
    for start, late in ((due - 1, command), (due - 2, 0), (due + command, 0)):
        times = part.words_from()
        assert times.begin(start) == start
        assert times.offered == start + part.first_word_cycles + late


def test_more_words_or_lines_take_no_fewer_luts():
    assert FLASH.resources(DEVICE).lut < replace(FLASH, words=1 << 20).resources(DEVICE).lut
    assert SDRAM.resources(DEVICE).lut < replace(SDRAM, words=1 << 20).resources(DEVICE).lut
    assert (FLASH.resources(DEVICE).bram, SDRAM.resources(DEVICE).bram) == (0, 1)
