import numpy as np
import pytest

from nnef_hw import parts

# height, width, channels, factors
CASES = {
    "two_by_two": (3, 4, 2, (2, 2)),
    "rows_only": (3, 4, 2, (3, 1)),
    "columns_only": (2, 3, 2, (1, 3)),
    "identity": (2, 3, 2, (1, 1)),
    "one_code": (1, 1, 1, (1, 1)),
    "one_channel": (4, 5, 1, (2, 2)),
    "one_pixel": (1, 1, 3, (4, 4)),
    "one_column": (4, 1, 3, (2, 2)),
    "large_factors": (2, 3, 1, (4, 3)),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def depth_of(case, rows):
    _, width, channels, factors = case
    return 1 << (rows * width * channels * factors[0] * factors[1] - 1).bit_length()


def check(drive, ram, rng, case, *, rows=1, bits=8, signed=False, frames=4, **options):
    height, width, channels, factors = case
    lo = -(1 << bits - 1) if signed else 0
    images = rng.integers(lo, lo + (1 << bits), (frames, height, width, *factors, channels))
    component = parts.DepthToSpace(
        height=height, width=width, channels=channels, factors=factors, bits=bits, signed=signed,
        depth=depth_of(case, rows), ram=ram,
    ).build()  # fmt: skip
    size = images[0].size
    items = [
        {"data": [code], "last": n % size == size - 1}
        for n, code in enumerate(images.reshape(-1).tolist())
    ]
    expected = images.transpose(0, 1, 3, 2, 4, 5).reshape(-1).tolist()
    run = drive(component, items, len(expected), **options)
    assert [item.data[0] for item in run.items] == expected
    ends = [n for n, item in enumerate(run.items) if item.last]
    assert ends == list(range(size - 1, len(expected), size))
    return run


@every_case
def test_spreads_channels(case, stall, drive, ram, rng):
    check(drive, ram, rng, case, stall=stall)


@pytest.mark.parametrize(("bits", "signed"), [(2, False), (8, True), (16, True)])
def test_formats(bits, signed, stall, drive, ram, rng):
    check(drive, ram, rng, CASES["two_by_two"], bits=bits, signed=signed, stall=stall)


@every_case
def test_a_frame_takes_its_beats_with_two_rows_of_memory(case, drive, ram, rng):
    run = check(drive, ram, rng, case, rows=2)
    assert run.out_cycles[0] - run.in_cycles[0] == parts.DepthToSpace.latency
    assert (np.diff(run.in_cycles) == 1).all()
    frame = len(run.items) // 4
    assert (np.diff(run.out_cycles[frame - 1 :: frame]) == frame).all()


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "engine"),
    [("rows_only", "verilator"), pytest.param("two_by_two", "cocotb", marks=pytest.mark.nightly)],
)
def test_verilog(name, engine, drive, ram, rng):
    check(drive, ram, rng, CASES[name], stall=0.5, engine=engine)
