# amaranth: UnusedElaboratable=no
"""Registers of a chip are written, then read again and again."""

import numpy as np
import pytest
from simulators import run_benches
from two_wire_chip import Chip

from nnef_hw.boards.hardware.motion.two_wire import RegisterReader

WRITES = ((0x6B, 1), (0x1A, 3), (0x1C, 0x18))


def read(chip, *, quarter=8, count=14, readings=2, cycles=None, appears=0):
    """Return the bytes that a reader gets of a chip, and the cycles of each reading."""
    dut = RegisterReader(address=0x68, identity=(0x75, 0x68), writes=WRITES, register=0x3B,
                         count=count, quarter=quarter, wait=32)  # fmt: skip
    found, took, failures = [[]], [], []
    written = 600 * quarter

    async def bench(ctx):
        begin, cycle = None, 0
        while len(took) < readings and cycle < (cycles or 100_000):
            chip.answers = cycle >= appears
            wants = begin is None and cycle > written
            ctx.set(dut.begin, wants)
            begin = cycle if wants else begin
            await ctx.tick()
            cycle += 1
            chip.see(ctx.get(dut.scl), int(not ctx.get(dut.sda_low) and not chip.low))
            ctx.set(dut.sda_level, int(not ctx.get(dut.sda_low) and not chip.low))
            failures.append(ctx.get(dut.failed))
            if ctx.get(dut.taken):
                found[-1].append(ctx.get(dut.byte))
                if ctx.get(dut.ended):
                    took.append(cycle - begin)
                    begin = None
                    found.append([])

    run_benches(dut, bench)
    return dut, found[:-1], took, failures


@pytest.mark.parametrize("count", [1, 6, 14])
@pytest.mark.parametrize("quarter", [8, 11])
def test_what_is_written_and_read(rng, count, quarter):
    instants = rng.integers(0, 256, (3, count)).tolist()
    chip = Chip(0x68, instants)
    dut, found, took, failures = read(chip, count=count, quarter=quarter, readings=3)
    assert chip.written == list(WRITES)
    assert chip.readings == [0x3B] * 3
    assert found == instants
    assert not any(failures)
    assert max(took) <= dut.cycles


def test_a_chip_that_is_not_there(rng):
    """Its failure is told until it answers; then all is written, and it is read."""
    instants = rng.integers(0, 256, (2, 6)).tolist()
    chip = Chip(0x68, instants)
    _, found, _, failures = read(chip, count=6, appears=8_000, readings=2)
    assert chip.written[-3:] == list(WRITES)
    assert found == instants
    assert np.any(failures[:8_000])
    assert not failures[-1] or len(found) == 2


def test_a_chip_of_another_sort(rng):
    """Nothing is written to it, and nothing is read but what it is."""
    chip = Chip(0x68, rng.integers(0, 256, (2, 6)).tolist(), identity=(0x75, 0x69))
    _, found, _, failures = read(chip, count=6, cycles=8_000)
    assert (chip.written, chip.readings, found) == ([], [], [])
    first = failures.index(1)
    assert all(failures[first:])


def test_a_bus_that_is_too_fast():
    with pytest.raises(ValueError, match="needs 8 cycles, not 7"):
        RegisterReader(address=1, identity=(0, 0), writes=(), register=0, count=1, quarter=7,
                       wait=32)  # fmt: skip
