# amaranth: UnusedElaboratable=no
"""A sensor of motion: its registers, its numbers as codes, what is lost, what it refuses."""

import json

import numpy as np
import pytest
from amaranth.sim import Simulator
from two_wire_chip import Chip

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards.hardware.microphones.sample_queue import SampleQueue
from nnef_hw.boards.hardware.motion.receiver import MotionReceiver
from nnef_hw.boards.interfaces.interface import Feed
from nnef_hw.boards.interfaces.motion.imu import Imu
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.rtl.streams.stream import beat_layout

ENDS = (-32768, -32767, -1, 0, 1, 127, 128, 129, 16384, 32767)


def receive(source, instants, *, ready=True):
    """Return the codes and lasts that come of numbers [instants, words], and what was lost."""
    parameters = {**source.parameters(12_800_000), "wait": 32}
    parameters |= {"edges": 1, "cycles": 4000}
    layout = beat_layout(bits=source.bits, signed=source.signed, lanes=1)
    receiver = MotionReceiver(layout, **parameters)
    data = [[b for n in own for b in ((n & 0xFFFF) >> 8, n & 0xFF)] for own in instants.tolist()]
    chip = Chip(parameters["address"], [*data, *[[0] * 14] * 9])
    found, lost, error = [], 0, 0

    async def drive(ctx):
        nonlocal lost, error
        cycle = 0
        while len(chip.readings) <= len(instants) and cycle < 8000 * (len(instants) + 12):
            ctx.set(receiver.o.ready, ready)
            if ready and ctx.get(receiver.o.valid):
                found.append((ctx.get(receiver.o.p.data[0]), ctx.get(receiver.o.p.last)))
            await ctx.tick()
            cycle += 1
            sda = int(not ctx.get(receiver.imu_sda_low) and not chip.low)
            chip.see(ctx.get(receiver.imu_scl), sda)
            ctx.set(receiver.imu_sda_level, int(not ctx.get(receiver.imu_sda_low) and not chip.low))
        lost, error = ctx.get(receiver.lost), ctx.get(receiver.imu_error)

    simulator = Simulator(receiver)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
    assert chip.written == list(parameters["writes"])
    assert not error
    return found, lost


@pytest.mark.parametrize(
    ("channels", "form"),
    [
        (3, QType(8, True, 2.0**-7)), (6, QType(8, True, 0.0123)), (6, QType(8, False, 0.008, 120)),
        (3, QType(16, True, 2.0**-15)), (6, QType(12, True, 2.0**-12)),
    ],
    ids=str,
)  # fmt: skip
def test_numbers_become_codes(rng, channels, form):
    source = Imu.of(Feed("x", 2 * channels, picture=(channels, 1, 2), qtype=form))
    words = source.model.words if channels == 6 else 3
    instants = rng.integers(-32768, 32768, (4, words))
    instants.flat[: len(ENDS)] = ENDS
    found, lost = receive(source, instants)
    kept = [0, 1, 2, 4, 5, 6][:channels]
    assert [code for code, _ in found] == source.codes(instants[:, kept]).ravel().tolist()
    assert [last for _, last in found] == ([0] * (2 * channels - 1) + [1]) * 2
    assert lost == 0


@pytest.mark.parametrize(
    "form",
    [
        QType(8, True, 2.0**-7),
        QType(8, True, 0.0123),
        QType(8, False, 0.008, 120),
        QType(16, True, 3e-5),
    ],
    ids=str,
)
def test_codes_are_those_of_real_numbers(form):
    """Of all 65,536 numbers as shares of the full scale, but for halves between two codes."""
    source = Imu.of(Feed("x", 3, picture=(3, 1, 1), qtype=form))
    numbers = np.arange(-32768, 32768)
    real = numbers / 32768
    exact = np.clip(real / form.scale + form.zero_point, form.lo, form.hi)
    assert np.abs(source.codes(numbers) - exact).max() <= 0.5 + 2.0**-15 * form.hi


def test_instants_are_lost_as_a_whole():
    """Room for 256 codes is room for 42 instants of six."""
    layout = beat_layout(bits=8, signed=True, lanes=1)
    queue = SampleQueue(layout, frame=6, channels=6)
    found = []

    async def drive(ctx):
        ctx.set(queue.taken, 1)
        for n in range(45 * 6):
            ctx.set(queue.sample, n // 6)
            await ctx.tick()
        ctx.set(queue.taken, 0)
        assert ctx.get(queue.lost) == 3
        ctx.set(queue.o.ready, 1)
        for _ in range(600):
            if ctx.get(queue.o.valid):
                found.append(ctx.get(queue.o.p.data[0]))
            await ctx.tick()

    simulator = Simulator(queue)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
    assert found == [n // 6 for n in range(42 * 6)]


def test_what_it_says_in_the_manifest():
    source = Imu.of(Feed("x", 300, picture=(3, 1, 100)), rate=50, acceleration=8)
    assert Imu.from_json(json.loads(json.dumps(source.to_json()))) == source
    assert source.frames_per_second == 0.5
    assert sorted(source.pins) == ["imu_error", "imu_scl", "imu_sda"]
    assert source.parameters(25_000_000)["writes"] == (
        (0x6B, 1), (0x19, 0), (0x1A, 4), (0x1B, 0), (0x1C, 0x10)
    )  # fmt: skip


def test_what_it_refuses():
    with pytest.raises(TargetError, match=r"3 numbers per instant, or 6 .* its shape is 1x28x28"):
        Imu.of(Feed("x", 784, shape=(1, 28, 28), picture=(1, 28, 28)))
    with pytest.raises(UsageError, match="an MPU-6050 gives 1 to 1,000 instants per second, not 2"):
        Imu("x", 3, 3, rate=2000)
    with pytest.raises(UsageError, match="no full scale of 3 for its acceleration"):
        Imu("x", 3, 3, acceleration=3)
    with pytest.raises(UsageError, match="knows no sensor 'bmi270'"):
        Imu("x", 3, 3, sensor="bmi270")
    source = Imu("x", 300, 3)
    with pytest.raises(TargetError, match=r"100 instants every 12,000,000 cycles at 12 MHz"):
        source.check_interval(12_000_001, 12_000_000)
    with pytest.raises(TargetError, match=r"400 kHz need a clock of 3\.2 MHz, not 2"):
        source.check_clock(2_000_000)
