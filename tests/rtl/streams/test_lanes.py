# amaranth: UnusedElaboratable=no
"""Copies of a component side by side: every lane is what one copy makes of its channels."""

import numpy as np
import pytest

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.sim.pysim import run_streams

FORMATS = {"in_bits": (6, 8), "in_signed": (True, False)}
REQUANTIZER = parts.Requantizer(
    channels=3, acc_bits=14, factor_bits=8, digit_bits=2, stages=2, bits=8, signed=True
)


def beats(values, field, frame):
    """Items [beat, lane] of a stream; ``last`` on every ``frame``-th one."""
    return [
        {field: row, "last": n % frame == frame - 1}
        for n, row in enumerate(np.array(values).tolist())
    ]


@pytest.mark.parametrize(
    "engine", ["pysim", pytest.param("verilator", marks=pytest.mark.verilator)]
)
@pytest.mark.parametrize("lanes", [2, 3])
def test_every_lane_has_constants_of_its_own(lanes, engine, stall, drive, rng):
    channels = 3 * lanes
    requant = Requant(tuple(rng.integers(1, 256, channels).tolist()), 12, 3, -128, 127)
    bias = rng.integers(-500, 500, channels)
    sums = rng.integers(-7000, 7000, (8, channels))
    component = parts.Lanes(part=REQUANTIZER, lanes=lanes).build(each=[
        {"requant": requant.of_channels(slice(n, None, lanes)), "bias": bias[n::lanes].tolist()}
        for n in range(lanes)
    ])  # fmt: skip
    items = beats(sums.reshape(-1, lanes), "acc", 12)
    run = drive(
        component, items, len(items), stall=stall if engine == "pysim" else 0.4, engine=engine
    )
    expected = requant.apply(sums + bias).reshape(-1, lanes)
    assert [list(item.data) for item in run.items] == expected.tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]


def test_two_operands(stall, rng):
    first, second = (rng.integers(0, 32, (20, 2)) for _ in range(2))
    part = parts.Lanes(part=parts.EltwiseProduct(**FORMATS), lanes=2)
    component = part.build(in_zero_points=(3, 5))
    items = {"a": beats(first, "data", 5), "b": beats(second, "data", 5)}
    for probability in stall:
        run = run_streams(component, items, {"o": 20}, rng=rng, stall=probability)
        expected = (first - 3) * (second - 5)
        assert [list(item.acc) for item in run.items["o"]] == expected.tolist()


def test_moves_as_a_copy_does(drive, ram, rng):
    window = Window(4, 4, 3, (2, 2), (2, 2), passes=3, by_channel=True)
    copy = parts.RunningMax(window=window, bits=8, signed=True, ram=ram)
    codes = rng.integers(-128, 128, (2 * 48, 2))
    wide, alone = parts.Lanes(part=copy, lanes=2).build(), copy.build()
    together = drive(wide, beats(codes, "data", 48), 24)
    for lane in range(2):
        single = drive(alone, beats(codes[:, lane : lane + 1], "data", 48), 24)
        assert [item.data[lane] for item in together.items] == [x.data[0] for x in single.items]
        assert (together.out_cycles == single.out_cycles).all()


def test_takes_what_its_copies_take(ram):
    device = parts.RunningSum(
        window=Window(4, 4, 8, (2, 2), (2, 2), passes=8, by_channel=True), bits=8, signed=True,
        acc_bits=10, ram=ram,
    )  # fmt: skip
    wide = parts.Lanes(part=device, lanes=3)
    assert len(wide.memories) == 3 * len(device.memories)
    assert wide.kept_bits == 3 * device.kept_bits


@pytest.mark.parametrize(
    ("part", "lanes", "reason"),
    [
        (REQUANTIZER, 1, "at least 2"),
        (parts.Concat(runs=(1, 2), bits=8, signed=True), 2, "copies of Concat"),
    ],
)
def test_refuses(part, lanes, reason):
    with pytest.raises(ValueError, match=reason):
        parts.Lanes(part=part, lanes=lanes)


def test_needs_a_copy_for_every_lane():
    part = parts.Lanes(part=REQUANTIZER, lanes=2)
    with pytest.raises(ValueError, match="2 copies, not 0"):
        part.component_class()(part, [])
