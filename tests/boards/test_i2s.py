# amaranth: UnusedElaboratable=no
"""A microphone with I2S: its clocks, its samples, and what is lost."""

import json
from dataclasses import replace

import numpy as np
import pytest
from audio import sounds
from simulators import run_benches

from nnef_hw import parts
from nnef_hw.arithmetic.audio.log_mel import LogMel, choose_log_mel
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.microphones.i2s import I2sReceiver
from nnef_hw.boards.hardware.microphones.sample_queue import QUEUE
from nnef_hw.boards.hardware.top import board_top
from nnef_hw.boards.interfaces.i2s import I2s
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.host.link import Host
from nnef_hw.rtl.streams.stream import beat_layout
from nnef_hw.sim.board_runner import BoardTransport

LAYOUT = beat_layout(bits=16, signed=True, lanes=1)


class Microphone:
    """A microphone's side of the wires: 24 bits of sound on the left, noise on the right."""

    def __init__(self, samples, rng):
        self.words = [int(sample) << 8 | int(rng.integers(256)) for sample in samples]
        self.rng = rng
        self.bits = []
        self.before = 0, 0
        self.data = 0

    def step(self, bclk, ws):
        """Return the level of the data line."""
        falls = self.before[0] and not bclk
        if falls:
            self.data = self.bits.pop(0) if self.bits else int(self.rng.integers(2))
            if ws != self.before[1]:
                word = self.words.pop(0) if not ws and self.words else 0
                if ws:
                    word = int(self.rng.integers(1 << 24))
                self.bits = [word >> (23 - n) & 1 for n in range(24)]
            self.before = bclk, ws
        self.before = bclk, self.before[1]
        return self.data


def receive(samples, rng, *, edges=1, cycles=4, frame=5, ready=lambda cycle: 1, count=None):
    """Return what comes out: (cycle, sample, last), and how many samples were lost."""
    receiver = I2sReceiver(LAYOUT, edges=edges, cycles=cycles, frame=frame)
    microphone = Microphone(samples, rng)
    total = int((len(samples) + 2) * receiver.sample_cycles)
    found, lost = [], 0

    async def drive(ctx):
        nonlocal lost
        for cycle in range(total):
            ctx.set(
                receiver.i2s_data,
                microphone.step(ctx.get(receiver.i2s_bclk), ctx.get(receiver.i2s_ws)),
            )
            ctx.set(receiver.o.ready, ready(cycle))
            if ctx.get(receiver.o.valid) and ctx.get(receiver.o.ready):
                found.append((cycle, ctx.get(receiver.o.p.data[0]), ctx.get(receiver.o.p.last)))
            await ctx.tick()
        lost = ctx.get(receiver.lost)

    run_benches(receiver, drive, period=1e-8)
    return found, lost, receiver


@pytest.mark.parametrize(("edges", "cycles"), [(1, 2), (1, 3), (32, 75)])
def test_takes_the_left_channel(edges, cycles, rng):
    samples = [-32_768, 32_767, 0, -1, *rng.integers(-32_768, 32_768, 8).tolist()]
    found, lost, receiver = receive(samples, rng, edges=edges, cycles=cycles)
    # the first slot has begun before the microphone saw word select change
    values = [sample for _, sample, _ in found]
    start = values.index(-32_768)
    assert start <= 1
    assert values[start : start + len(samples)] == samples
    assert [last for *_, last in found[:10]] == [0, 0, 0, 0, 1] * 2
    assert lost == 0
    steps = np.diff([cycle for cycle, *_ in found])
    assert abs(steps.mean() - float(receiver.sample_cycles)) < 0.2
    assert steps.max() - steps.min() <= 2


def test_samples_wait_while_nobody_takes_them(rng):
    samples = rng.integers(-32_768, 32_768, 30).tolist()
    found, lost, receiver = receive(
        samples, rng, cycles=2, ready=lambda cycle: cycle > 20 * 2 * 128
    )
    values = [sample for _, sample, _ in found]
    start = values.index(samples[0])
    assert values[start : start + 30] == samples
    assert lost == 0
    assert found[1][0] - found[0][0] == 2
    assert receiver.sample_cycles == 256


def test_what_does_not_fit_is_counted(rng):
    samples = np.arange(QUEUE + 24)
    found, lost, _ = receive(samples, rng, cycles=2, ready=lambda cycle: 0)
    assert found == []
    assert lost in {24, 25, 26}


def test_says_what_it_needs():
    source = I2s("audio", 16_000, 512)
    assert source.title == "source i2s"
    assert sorted(source.pins) == ["i2s_bclk", "i2s_data", "i2s_ws"]
    assert source.parameters(24_000_000) == {"edges": 32, "cycles": 375, "frame": 512}
    source.check_clock(4_096_000)
    with pytest.raises(TargetError, match=r"a clock of 4\.096 MHz, not 4; give --freq 4\.096"):
        source.check_clock(4_000_000)
    assert I2s.from_json(json.loads(json.dumps(source.to_json()))) == source
    with pytest.raises(UsageError, match="positive rate"):
        I2s("audio", 0, 512)
    with pytest.raises(ValueError, match="at least 2 cycles"):
        I2sReceiver(LAYOUT, edges=2, cycles=3, frame=1)
    with pytest.raises(ValueError, match="a code of 16 bits"):
        I2sReceiver(beat_layout(bits=8, signed=True, lanes=1), edges=1, cycles=8, frame=1)


def heard_by(points, rate):
    """Return a front end's requantizer, and the source and the Verilog of a board with both."""
    front = LogMel(rate=8_000, window=32, hop=16, points=points, bands=4, high=4_000.0)
    requant = choose_log_mel(front, QType(8, signed=True, scale=1 / 255, zero_point=-128))
    board = find_board("icebreaker")
    board = replace(board, clock_mhz=board.input_mhz)
    part = parts.LogMel(
        window=32, hop=16, points=points, lengths=requant.bank.lengths, frames=0, out_bits=8,
        out_signed=True, in_dsp=True, ram=board.device.ram,
    )  # fmt: skip
    source = I2s("audio", rate, 16)
    top, ports = board_top(
        board, part.build(requant=requant), sources={"i": source}, frames={"i": 16, "o": 4}
    )
    return requant, source, to_verilog(top, name="board_top", ports=ports)


@pytest.mark.verilator
def test_features_of_a_microphone_on_a_board(rng):
    """From the pins of a board's top to the host: codes of a front end."""
    requant, source, verilog = heard_by(points=32, rate=16_000)
    samples = sounds(rng, 1_200)["noise"]
    heard = {"i2s": samples}
    with BoardTransport(verilog, clk_hz=12_000_000, others=[source], numbers=heard) as transport:
        host = Host(transport)
        assert host.open(bytes(32)).in_bytes == 0
        read = b""
        while len(read) < 15 * 4:
            read += host.read()
    found = np.frombuffer(read[: 15 * 4], np.int8).reshape(15, 4)
    # The host's greeting began the stream anew, somewhere in the sound, and within a sample.
    past = np.zeros(16, np.int64)
    possible = (requant.apply(np.concatenate([past, samples[n:]]))[2:15] for n in range(900))
    assert sum(np.array_equal(frames, found[2:]) for frames in possible) == 1
    assert len(np.unique(found)) > 10


@pytest.mark.verilator
def test_a_board_tells_what_it_has_lost(rng):
    """An accelerator that no plan would allow: it does not take all samples that come."""
    _, source, verilog = heard_by(points=256, rate=46_875)
    sample_cycles = 256
    with BoardTransport(verilog, clk_hz=12_000_000, others=[source]) as transport:
        host = Host(transport)
        host.open(bytes(32))
        begin = transport.cycles
        transport.advance(600 * sample_cycles)
        counters = host.counters()
        came = (transport.cycles - begin) // sample_cycles
        taken = (counters.frames + 1) * 16
        assert abs(came - taken - QUEUE - counters.lost) <= 16
        assert counters.lost > 50
        host.abort()
        assert host.counters().lost == 0
