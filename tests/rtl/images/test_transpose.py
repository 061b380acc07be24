import itertools

import numpy as np
import pytest
from sweeps import covering, few

from nnef_hw import parts

ORDERS = list(itertools.permutations(range(3)))
EXTENTS = [(2, 3, 4), (1, 4, 3), (3, 1, 2), (1, 1, 1)]
FRAMES = 4


def check(
    drive, ram, rng, extents, order, *, turns=1, backwards=(), bits=8, signed=False, **options
):
    lo = -(1 << bits - 1) if signed else 0
    images = rng.integers(lo, lo + (1 << bits), (FRAMES * turns, *extents))
    part = parts.Transpose(
        extents=extents, order=order, turns=turns, backwards=backwards, bits=bits, signed=signed,
        ram=ram,
    )  # fmt: skip
    size = images[0].size * turns
    items = [
        {"data": [code], "last": n % size == size - 1}
        for n, code in enumerate(images.reshape(-1).tolist())
    ]
    moved = [np.flip(image, backwards).transpose(order) for image in images]
    expected = np.stack(moved).reshape(-1).tolist()
    run = drive(part.build(), items, len(expected), **options)
    assert [item.data[0] for item in run.items] == expected
    ends = [n for n, item in enumerate(run.items) if item.last]
    assert ends == list(range(size - 1, len(expected), size))
    return run


@pytest.mark.parametrize(
    ("extents", "order"), covering([(x,) for x in EXTENTS], [(x,) for x in ORDERS]), ids=str
)
def test_axes_change_places(extents, order, stall, drive, ram, rng):
    check(drive, ram, rng, extents, order, stall=stall)


@pytest.mark.parametrize(("extents", "order", "turns"), [
    ((1, 2, 3), (0, 2, 1), 5), ((1, 3, 2), (0, 2, 1), 2), ((2, 2, 3, 2), (2, 0, 3, 1), 1),
    ((2, 3, 2, 2, 2), (0, 3, 1, 4, 2), 3),
])  # fmt: skip
def test_turns_and_more_axes(extents, order, turns, stall, drive, ram, rng):
    check(drive, ram, rng, extents, order, turns=turns, stall=stall)


@pytest.mark.parametrize(("extents", "order", "backwards"), [
    ((1, 4, 3), (0, 1, 2), (1,)), ((2, 3, 4), (2, 0, 1), (0, 2)), ((1, 2, 1), (0, 1, 2), (1,)),
])  # fmt: skip
def test_axes_run_backwards(extents, order, backwards, stall, drive, ram, rng):
    check(drive, ram, rng, extents, order, backwards=backwards, stall=stall)


@pytest.mark.parametrize(("bits", "signed"), [(2, False), (16, True)])
def test_formats(bits, signed, drive, ram, rng):
    check(drive, ram, rng, (2, 3, 4), (2, 0, 1), bits=bits, signed=signed, stall=0.5)


def test_codes_leave_as_soon_as_they_may(drive, ram, rng):
    """Of the axes 2 and 3 the second becomes the first: the code of place 1 is the third."""
    run = check(drive, ram, rng, (2, 3, 1), (1, 0, 2))
    assert (run.in_cycles[:12] == np.arange(12)).all()
    in_cycles = run.in_cycles.reshape(FRAMES, 2, 3).transpose(0, 2, 1).reshape(-1)
    assert run.out_cycles[0] == in_cycles[0] + parts.Transpose.latency
    assert (run.out_cycles >= in_cycles + parts.Transpose.latency).all()
    assert run.out_cycles[1] == in_cycles[1] + parts.Transpose.latency


@pytest.mark.verilator
@pytest.mark.parametrize("engine", few(["verilator", "cocotb"], ["verilator"]))
def test_verilog(engine, drive, ram, rng):
    check(drive, ram, rng, (2, 3, 4), (2, 0, 1), stall=0.5, engine=engine)
