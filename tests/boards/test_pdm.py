# amaranth: UnusedElaboratable=no
"""A microphone with PDM: its clock, its samples, and what is lost."""

import json
from dataclasses import replace

import numpy as np
import pytest
from amaranth import ResetInserter, Signal
from simulators import run_benches

from nnef_hw.arithmetic.audio.pdm import PdmFilter
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.microphones.pdm import PdmReceiver
from nnef_hw.boards.hardware.top import board_top
from nnef_hw.boards.interfaces import Feed, Pdm, find_source, source_of
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.host.link import Host
from nnef_hw.rtl.streams.stream import Fifo, beat_layout
from nnef_hw.sim.board_runner import BoardTransport

LAYOUT = beat_layout(bits=16, signed=True, lanes=1)


def receive(given, bits, *, edges, cycles, frame=3, ready=lambda cycle: 1, resets=()):
    """Return what comes out: (cycle, sample, last), the bits that were taken, what was lost."""
    receiver = PdmReceiver(LAYOUT, edges=edges, cycles=cycles, bits=bits, frame=frame)
    reset = Signal()
    found, taken, lost = [], [], 0

    async def drive(ctx):
        nonlocal lost
        clk = bit = cycle = 0
        waiting = list(given)
        while waiting or len(found) < len(taken) // bits:
            now = ctx.get(receiver.pdm_clk)
            if clk and not now:
                bit = waiting.pop(0) if waiting else 0
                taken.append(bit)
            clk = now
            # what is on the line while the clock is high does not count
            ctx.set(receiver.pdm_data, bit if not now else 1 - bit)
            ctx.set(receiver.o.ready, ready(cycle))
            ctx.set(reset, cycle in resets)
            if cycle in resets:
                found.clear()
                taken.clear()
            if ctx.get(receiver.o.valid) and ctx.get(receiver.o.ready):
                found.append((cycle, ctx.get(receiver.o.p.data[0]), ctx.get(receiver.o.p.last)))
            await ctx.tick()
            cycle += 1
        lost = ctx.get(receiver.lost)

    run_benches(ResetInserter(reset)(receiver), drive, period=1e-8)
    return found, taken, lost, receiver


@pytest.mark.parametrize(
    ("bits", "edges", "cycles", "count"), [(128, 2, 9, 3), (64, 2, 17, 3), (32, 1, 17, 6)]
)
def test_samples_are_those_of_the_filter(rng, bits, edges, cycles, count):
    given = rng.integers(0, 2, count * bits).tolist()
    found, taken, lost, receiver = receive(given, bits, edges=edges, cycles=cycles)
    expected = PdmFilter(bits).apply([0, *taken])
    values = [sample for _, sample, _ in found]
    assert len(values) >= count - 1
    assert values == expected[: len(values)].tolist()
    assert [last for *_, last in found[:6]] == ([0, 0, 1] * 2)[: len(found)]
    assert lost == 0
    steps = np.diff([cycle for cycle, *_ in found])
    assert abs(steps.mean() - float(receiver.sample_cycles)) <= 2


def test_a_reset_forgets_all_numbers(rng):
    given = rng.integers(0, 2, 32 * 8).tolist()
    found, taken, _, _ = receive(given, 32, edges=1, cycles=17, resets={2 * 17 * 32 * 4 + 77})
    expected = PdmFilter(32).apply([0, *taken])
    values = [sample for _, sample, _ in found]
    assert len(values) >= 2
    assert values == expected[: len(values)].tolist()


def test_says_what_it_needs():
    source = find_source("pdm").kind.of(Feed("audio", 512, 16_000))
    assert source == Pdm("audio", 16_000, 512)
    assert source.title == "source pdm"
    assert sorted(source.pins) == ["pdm_clk", "pdm_data"]
    assert source.parameters(24_000_000) == {
        "edges": 64, "cycles": 375, "bits": 128, "frame": 512,
    }  # fmt: skip
    assert source_of(json.loads(json.dumps(source.to_json()))) == source
    source.check_clock(16_640_000)
    with pytest.raises(TargetError, match=r"PDM .* a clock of 16\.64 MHz, not 16; give --freq 16"):
        source.check_clock(16_000_000)
    assert [Pdm("x", rate, 1).clocks for rate in (8_000, 25_390, 44_100, 96_000)] == [
        128, 128, 64, 32,
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"1 to 3\.25 MHz, and 4,000 .* would be 0\.512 MHz; .*"):
        Pdm("x", 4_000, 1)
    with pytest.raises(UsageError, match=r"192,000 samples per second would be 6\.144 MHz"):
        Pdm("x", 192_000, 1)
    with pytest.raises(TargetError, match="no front end reads input 'x'"):
        Pdm.of(Feed("x", 512))
    with pytest.raises(ValueError, match="1040 cycles for a sample, and one comes every 512"):
        PdmReceiver(LAYOUT, edges=1, cycles=4, bits=64, frame=1)


@pytest.mark.parametrize("name", ["icebreaker", "tang_nano_20k", "ulx3s", "upduino_v3"])
def test_boards_have_its_pins(name):
    board = find_board(name)
    assert {"pdm_clk", "pdm_data", "alert", "text"} <= board.pins.keys()


def hear(given, frames, **changes):
    """Return what a board gives of a microphone's bits, and the bits that it took from power-on."""
    board = replace(find_board("icebreaker"), clock_mhz=18.0)
    source = replace(Pdm("audio", 16_000, 8), **changes)
    top, ports = board_top(board, Fifo(LAYOUT), sources={"i": source}, frames={"i": 8, "o": 8})
    verilog = to_verilog(top, name="board_top", ports=ports)
    words = np.packbits(np.asarray(given, np.uint8), bitorder="little").view("<u4")
    with BoardTransport(
        verilog, clk_hz=18_000_000, others=[source], numbers={"pdm": words}
    ) as transport:
        host = Host(transport)
        host.open(bytes(32))
        begin = transport.cycles
        read = b""
        while len(read) < frames * 16:
            read += host.read()
    return np.frombuffer(read[: frames * 16], "<i2"), begin


@pytest.mark.verilator
def test_full_scale_and_silence_on_a_board(rng):
    """From the pins of a board's top to the host: exact samples, of bits from a session on."""
    # the host's greeting takes 30 ms
    level = np.repeat([0.5, 1.0, 0.0, 0.3, 1.0, 0.0], 128 * np.array([540, 60, 60, 60, 60, 60]))
    given = (rng.random(len(level)) < level).astype(np.uint8)
    found, begin = hear(given, 40)
    # the host's greeting began the filters anew, some frames before the first that it read
    first = int(begin * 2.048 / 18)
    possible = [
        n for n in range(first - 400, first)
        for samples in [PdmFilter(128).apply(given[n : n + 128 * 400])]
        if any(np.array_equal(samples[8 * k : 8 * k + 320], found) for k in range(10))
    ]  # fmt: skip
    assert len(possible) == 1
    assert (found.max(), found.min()) == (32_767, -32_768)
