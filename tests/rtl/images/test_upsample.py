import numpy as np
import pytest

from nnef_hw import parts

# height, width, channels, factors
CASES = {
    "both": (3, 4, 2, (2, 2)),
    "rows_only": (3, 4, 2, (3, 1)),
    "columns_only": (2, 3, 2, (1, 3)),
    "identity": (2, 3, 2, (1, 1)),
    "one_code": (1, 1, 1, (2, 3)),
    "one_channel": (4, 5, 1, (2, 2)),
    "one_pixel_of_many_channels": (1, 1, 7, (4, 4)),
    "one_column": (4, 1, 3, (2, 2)),
    "large_factors": (2, 3, 2, (4, 5)),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def least_depth(case):
    return max(2, case[1] * case[2])


def check(drive, ram, rng, case, *, depth=None, bits=8, signed=False, frames=3, **options):
    height, width, channels, factors = case
    lo = -(1 << bits - 1) if signed else 0
    images = rng.integers(lo, lo + (1 << bits), (frames, height, width, channels))
    component = parts.Upsample(
        height=height, width=width, channels=channels, factors=factors, bits=bits, signed=signed,
        depth=depth or least_depth(case), ram=ram,
    ).build()  # fmt: skip
    size = height * width * channels
    items = [
        {"data": [code], "last": n % size == size - 1}
        for n, code in enumerate(images.reshape(-1).tolist())
    ]
    expected = images.repeat(factors[0], axis=1).repeat(factors[1], axis=2).reshape(-1).tolist()
    run = drive(component, items, len(expected), **options)
    assert [item.data[0] for item in run.items] == expected
    frame = len(expected) // frames
    ends = [n for n, item in enumerate(run.items) if item.last]
    assert ends == list(range(frame - 1, len(expected), frame))
    return run


@pytest.mark.parametrize(("bits", "signed", "depth"), [(2, False, 9), (8, True, 30), (16, True, 8)])
def test_formats_and_depths(bits, signed, depth, stall, drive, ram, rng):
    check(drive, ram, rng, CASES["both"], depth=depth, bits=bits, signed=signed, stall=stall)


@every_case
def test_repeats_rows_and_columns(case, stall, drive, ram, rng):
    run = check(drive, ram, rng, case, stall=stall)
    assert run.out_cycles[0] - run.in_cycles[0] == parts.Upsample.latency
    assert (np.diff(run.out_cycles) == 1).all()


def test_takes_beats_until_memory_is_full_and_as_they_are_read_for_the_last_time(drive, ram, rng):
    run = check(drive, ram, rng, (2, 2, 1, (2, 2)), frames=1)
    # read in cycles 1..: a a b b a a b b, so a leaves in cycle 6 and b in 8
    assert run.in_cycles.tolist() == [0, 1, 7, 9]


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param("both", "cocotb", marks=pytest.mark.nightly),
        ("rows_only", "verilator"),
        ("one_code", "verilator"),
    ],
)
def test_verilog(name, engine, drive, ram, rng):
    check(drive, ram, rng, CASES[name], stall=0.5, engine=engine)
