# amaranth: UnusedElaboratable=no
"""A sensor of motion: its registers, its numbers as codes, what is lost, what it refuses."""

import json

import numpy as np
import pytest
from amaranth.sim import Simulator
from simulators import run_benches
from two_wire_chip import Chip

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.microphones import sample_queue
from nnef_hw.boards.hardware.microphones.sample_queue import SampleQueue
from nnef_hw.boards.hardware.motion.receiver import MotionReceiver
from nnef_hw.boards.hardware.pins import plan_pins
from nnef_hw.boards.interfaces import Feed, Imu, find_source
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.rtl.streams.stream import beat_layout

ENDS = (-32768, -32767, -1, 0, 1, 127, 128, 129, 16384, 32767)


def receive(source, instants, *, count, lanes=1):
    """Return beats that come of numbers [instants, words], their lasts, and what was lost.

    They are as many as are wanted; if none are, all instants come and none is taken.
    """
    parameters = {**source.parameters(12_800_000), "wait": 32, "writes": ((0x6B, 1),)}
    parameters |= {"edges": 1, "cycles": 3200}
    layout = beat_layout(bits=source.bits, signed=source.signed, lanes=lanes)
    receiver = MotionReceiver(layout, **parameters)
    data = [[b for n in own for b in ((n & 0xFFFF) >> 8, n & 0xFF)] for own in instants.tolist()]
    chip = Chip(parameters["address"], [*data, *[[0] * 14] * 9])
    found, lost = [], 0

    async def wires(ctx):
        async for scl, low in ctx.changed(receiver.imu_scl, receiver.imu_sda_low):
            chip.see(scl, int(not low and not chip.low))
            ctx.set(receiver.imu_sda_level, int(not low and not chip.low))

    async def take(ctx):
        nonlocal lost
        ctx.set(receiver.o.ready, count > 0)
        while not count and len(chip.readings) <= len(instants):
            await ctx.tick().repeat(100)
        while len(found) < count:
            codes, last = await ctx.tick().sample(
                receiver.o.p.data, receiver.o.p.last).until(receiver.o.valid)  # fmt: skip
            found.append(([codes[n] for n in range(lanes)], last))
        lost = ctx.get(receiver.lost)
        assert not ctx.get(receiver.imu_error)

    simulator = Simulator(receiver)
    simulator.add_clock(1e-8)
    simulator.add_testbench(wires, background=True)
    simulator.add_testbench(take)
    simulator.run()
    assert chip.written == list(parameters["writes"])
    return np.array([codes for codes, _ in found]), [last for _, last in found], lost


def feed(channels, form=None, *, time=2, image=None):
    return Feed("x", channels * time, shape=(channels, time), qtype=form, image=image)


@pytest.mark.parametrize(
    ("channels", "form"),
    [
        (3, QType(8, True, 2.0**-7)), (6, QType(8, True, 0.0123)), (6, QType(8, False, 0.008, 120)),
        (3, QType(16, True, 2.0**-15)), (6, QType(12, True, 2.0**-12)),
    ],
    ids=str,
)  # fmt: skip
def test_numbers_become_codes(rng, channels, form):
    source = Imu.of(feed(channels, form))
    instants = rng.integers(-32768, 32768, (4 if channels == 3 else 2, 7 if channels == 6 else 3))
    instants.flat[: len(ENDS)] = ENDS
    numbers = instants[:, [0, 1, 2, 4, 5, 6][:channels]]
    found, lasts, lost = receive(source, instants, count=numbers.size)
    assert found.ravel().tolist() == source.codes(numbers).ravel().tolist()
    assert not lost
    assert lasts == ([0] * (2 * channels - 1) + [1]) * (numbers.size // (2 * channels))


@pytest.mark.parametrize(("channels", "lanes"), [(3, 3), (3, 2), (6, 2)])
def test_several_codes_come_in_a_beat(rng, channels, lanes):
    """The last beat of an instant is filled up with 0."""
    source = Imu.of(feed(channels, QType(8, True, 2.0**-7), image=(2, 1, channels)))
    instants = rng.integers(-32768, 32768, (2, 7 if channels == 6 else 3))
    codes = source.codes(instants[:, [0, 1, 2, 4, 5, 6][:channels]])
    codes = np.pad(codes, ((0, 0), (0, -channels % lanes))).reshape(-1, lanes)
    found, lasts, lost = receive(source, instants, count=len(codes), lanes=lanes)
    assert found.tolist() == codes.tolist()
    assert not lost
    assert lasts == [0] * (len(codes) - 1) + [1]


def test_the_axis_of_an_instant_is_found():
    """The one of both axes whose numbers follow each other in the stream of a plan."""
    for shape, image, numbers in (
        ((3, 32), None, 3), ((6, 32), (32, 1, 6), 6), ((6, 1, 32), (1, 32, 6), 6), ((3,), None, 3),
        ((32, 6), None, 6), ((32, 6), (1, 1, 192), 6), ((1, 32, 6), (32, 6, 1), 6),
        ((6, 3), (3, 1, 6), 6), ((6, 3), (6, 3, 1), 3), ((3, 1), (1, 1, 3), 3),
    ):  # fmt: skip
        found = Imu.of(Feed("x", int(np.prod(shape)), shape=shape, image=image))
        assert (found.numbers, found.samples) == (numbers, np.prod(shape) // numbers)
        assert found.channels == len(found.channel_names) == numbers


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
    source = Imu.of(feed(3, form, time=1))
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

    run_benches(queue, drive, period=1e-8)
    assert found == [n // 6 for n in range(42 * 6)]


def test_what_does_not_fit_is_counted(monkeypatch):
    """Of five instants of six codes 16 codes hold two."""
    monkeypatch.setattr(sample_queue, "QUEUE", 16)
    instants = np.zeros((5, 7), int)
    _, _, lost = receive(Imu.of(feed(6, time=1)), instants, count=0)
    assert lost == 3


def test_what_it_says_in_the_manifest():
    source = Imu.of(feed(3, time=100), rate=50, acceleration=8)
    assert Imu.from_json(json.loads(json.dumps(source.to_json()))) == source
    assert source.frames_per_second == 0.5
    assert source.given == {"rate": 50, "sensor": "mpu6050", "acceleration": 8, "rotation": 250}
    assert sorted(source.pins) == ["imu_error", "imu_scl", "imu_sda"]
    parameters = source.parameters(25_000_000)
    assert parameters["writes"] == (
        (0x6B, 1), (0x19, 0), (0x1A, 4), (0x1B, 0), (0x1C, 0x10)
    )  # fmt: skip
    assert parameters["identity"] == (0x75, 0x68)
    for name in ("icebreaker", "tang_nano_20k", "ulx3s_85f", "upduino_v3"):
        assert source.pins.keys() <= find_board(name).pins.keys()


def test_a_board_without_its_pins_says_which_are_free():
    with pytest.raises(
        TargetError, match=r"no pins imu_scl, imu_sda, imu_error, .*; free on .*@B1"
    ):
        plan_pins(find_board("tinyfpga_bx"), (find_source("imu:rate=50"),))


def test_what_it_refuses():
    with pytest.raises(TargetError, match=r"3 numbers per sample, or 6 .* its shape is 1x28x28"):
        Imu.of(Feed("x", 784, shape=(1, 28, 28)))
    with pytest.raises(TargetError, match=r"3 numbers per sample, or 6 .* its shape is 3x32x32"):
        Imu.of(Feed("x", 3072, shape=(3, 32, 32)))
    with pytest.raises(TargetError, match=r"shape is 32x6, .* not take the numbers of a sample"):
        Imu.of(Feed("x", 192, shape=(32, 6), image=(6, 1, 32)))
    with pytest.raises(TargetError, match="its channels have scales of their own"):
        Imu.of(feed(3, QType(8, True, (1.0, 2.0, 1.0))))
    for form in (QType(18, True, 1.0), QType(16, True, 1e-10)):
        with pytest.raises(TargetError, match=r"codes have steps of .* 3\.05176e-05; give"):
            Imu.of(feed(3, form))
    with pytest.raises(UsageError, match="an MPU-6050 gives 1 to 1,000 samples per second, not 2"):
        Imu("x", 2000, 3, 3)
    with pytest.raises(UsageError, match="no full scale of 3 for its acceleration"):
        Imu("x", 100, 3, 3, acceleration=3)
    with pytest.raises(UsageError, match="knows no sensor 'bmi270'"):
        Imu("x", 100, 3, 3, sensor="bmi270")
    source = Imu("x", 100, 300, 3)
    source.check_interval(12_000_000, 12_000_000)
    with pytest.raises(TargetError, match=r"100 samples every 12,000,000 cycles at 12 MHz"):
        source.check_interval(12_000_001, 12_000_000)
    with pytest.raises(TargetError, match=r"400 kHz need a clock of 3\.2 MHz, not 2"):
        source.check_clock(2_000_000)
