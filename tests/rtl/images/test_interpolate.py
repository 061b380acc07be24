import numpy as np
import pytest

from nnef_hw import parts
from nnef_hw.arithmetic.interpolation import Places, interpolate_codes
from nnef_hw.parts.base.timing import Kernel

# rows, columns and channels; rows and columns of the result; how places are found
CASES = {
    "thirds": ((2, 3, 2), (6, 9), "half_pixel"),
    "corner": ((3, 2, 1), (5, 7), "asymmetric"),
    "aligned": ((3, 4, 2), (7, 6), "align_corners"),
    "one_pixel": ((1, 1, 3), (3, 4), "half_pixel"),
    "to_one_pixel": ((5, 7, 1), (1, 1), "align_corners"),
    "fewer": ((11, 7, 2), (3, 2), "half_pixel"),
    "far_fewer": ((23, 5, 1), (2, 3), "asymmetric"),
    "more_rows_fewer_columns": ((2, 9, 1), (9, 4), "half_pixel"),
    "the_same": ((3, 3, 2), (3, 3), "half_pixel"),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def make(case, ram, bits=8, signed=True):
    (height, width, channels), (rows, columns), mode = case
    return parts.Interpolate(
        rows=Places.of(height, rows, mode), columns=Places.of(width, columns, mode),
        channels=channels, bits=bits, signed=signed, ram=ram,
    )  # fmt: skip


def check(drive, ram, rng, case, *, bits=8, signed=True, frames=3, extremes=False, **options):
    part = make(case, ram, bits, signed)
    lo = -(1 << bits - 1) if signed else 0
    images = rng.integers(lo, lo + (1 << bits), (frames, *case[0]))
    if extremes:
        images = np.where(images < lo + (1 << bits - 1), lo, lo + (1 << bits) - 1)
    size = images[0].size
    items = [
        {"data": [code], "last": n % size == size - 1}
        for n, code in enumerate(images.reshape(-1).tolist())
    ]
    found = interpolate_codes(images.transpose(0, 3, 1, 2), part.rows, part.columns)
    expected = found.transpose(0, 2, 3, 1).reshape(-1).tolist()
    run = drive(part.build(), items, len(expected), **options)
    assert [item.data[0] for item in run.items] == expected
    frame = len(expected) // frames
    ends = [n for n, item in enumerate(run.items) if item.last]
    assert ends == list(range(frame - 1, len(expected), frame))
    return run


@pytest.mark.parametrize(("bits", "signed"), [(2, True), (8, False), (16, True), (1, False)])
def test_formats(bits, signed, drive, ram, rng):
    check(drive, ram, rng, CASES["thirds"], bits=bits, signed=signed, extremes=True)


def predicted(part, count):
    """Return when beats move if inputs are offered always, and outputs taken always."""
    kernel, seen = Kernel(), []
    origin = kernel.stream()

    def source():
        time = 0
        while True:
            time = (yield origin, time) + 1

    def sink(target):
        while len(seen) < count:
            offered = yield target
            target.accept(offered)
            seen.append(offered)
        yield

    kernel.start(sink(part.start(kernel, origin)))
    kernel.start(source())
    kernel.run()
    return list(origin.times), seen


def check_cycles(drive, ram, rng, case, stall):
    """Codes with pauses and without; the cycles without are those of the part."""
    run = check(drive, ram, rng, case, stall=stall)
    taken, given = predicted(make(case, ram), len(run.out_cycles))
    assert given == run.out_cycles.tolist()
    assert taken[: len(run.in_cycles)] == run.in_cycles.tolist()


@every_case
def test_interpolates(case, stall, drive, ram, rng):
    check_cycles(drive, ram, rng, case, stall)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(60))
def test_any_places(seed, stall, drive, ram):
    rng = np.random.default_rng(seed)
    image, size = rng.integers(1, 14, 3), rng.integers(1, 14, 2)
    mode = ("half_pixel", "asymmetric", "align_corners")[seed % 3]
    case = (*image[:2].tolist(), int(image[2]) % 4 + 1), tuple(size.tolist()), mode
    check_cycles(drive, ram, rng, case, stall)


def test_latency_begins_with_the_last_code(drive, ram, rng):
    run = check(drive, ram, rng, CASES["one_pixel"], frames=1)
    assert run.out_cycles[0] - run.in_cycles[-1] == parts.Interpolate.latency
    assert (np.diff(run.out_cycles) == 4).all()


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "engine"),
    [("fewer", "verilator"), pytest.param("thirds", "cocotb", marks=pytest.mark.nightly)],
)
def test_verilog(name, engine, drive, ram, rng):
    check(drive, ram, rng, CASES[name], stall=0.5, engine=engine)
