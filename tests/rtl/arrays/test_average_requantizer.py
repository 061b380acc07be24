# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.rtl.arrays.average_requantizer import AverageRequantizer

BORDERS = [[0, 1, 1, 0], [2, 3, 3, 2], [2, 3, 3, 2], [0, 1, 1, 0]]
PLACES = {
    "border": BORDERS,
    "one row": [[0, 1, 2, 1, 0]],
    "one column": [[1], [0], [0]],
    "one place": [[0]],
    "all differ": [[0, 1], [2, 3]],
}


def build(positions, channels, **folding):
    requant = Requant((16384, 10923, 8192, 7282), 17, -3, -128, 127)
    part = parts.AverageRequantizer(
        channels=channels, acc_bits=13, factor_bits=15, bits=8, signed=True,
        **{"stages": 1, **folding},
    )  # fmt: skip
    return AverageRequantizer(part, requant=requant, bias=[-77], positions=positions)


def check(drive, rng, positions, channels, folding, **options):
    """Frames of noise: every place of every frame takes its own mult."""
    component = build(positions, channels, **folding)
    places = np.repeat(np.reshape(positions, -1), channels)
    sums = rng.integers(-1500, 1500, (4, len(places)))
    items = [
        {"acc": [int(value)], "last": n % len(places) == len(places) - 1}
        for n, value in enumerate(sums.reshape(-1))
    ]
    run = drive(component, items, sums.size, **options)
    mults = np.array(component.requant.mult)[places]
    expected = (((sums - 77) * mults + (1 << 16)) >> 17).clip(-125, 130) - 3
    assert [item.data[0] for item in run.items] == expected.reshape(-1).tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    return component, run


@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("positions", PLACES.values(), ids=PLACES)
def test_every_place_has_its_own_mult(positions, channels, drive, rng):
    check(drive, rng, positions, channels, {"digit_bits": 4}, stall=0.5)


@pytest.mark.parametrize(
    "folding", [{"digit_bits": 1}, {"digit_bits": 2, "stages": 8}, {"digit_bits": 4, "stages": 2}]
)
def test_cycles(folding, drive, rng):
    component, run = check(drive, rng, BORDERS, 3, folding)
    assert (run.out_cycles - run.in_cycles == component.part.latency).all()
    assert (np.diff(run.in_cycles) == component.part.interval).all()


@pytest.mark.verilator
def test_verilog(drive, rng):
    check(drive, rng, BORDERS, 3, {"digit_bits": 2}, stall=0.5, engine="verilator")


def test_refuses_places_without_a_mult():
    message = "AverageRequantizer has 4 mult, positions up to 4"
    with pytest.raises(ValueError, match=re.escape(message)):
        build([[0, 4]], 1, digit_bits=1)
