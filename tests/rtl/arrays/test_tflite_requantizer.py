# amaranth: UnusedElaboratable=no
from dataclasses import dataclass

import numpy as np
import pytest

from nnef_hw import parts
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant

MULTS = (1518500250, 1 << 30, (1 << 31) - 1, 1234567891)


@dataclass(frozen=True)
class Case:
    """A requantizer of sums of ``in_bits``; one bias per channel."""

    requant: TfliteRequant
    bias: tuple[int, ...] = (0,)
    in_bits: int = 20
    acc_bits: int = 21
    digit_bits: int = 2
    stages: int = 1
    bits: int = 8

    def build(self):
        part = parts.TfliteRequantizer(
            channels=len(self.bias), acc_bits=self.acc_bits,
            factor_bits=max(*self.requant.factors, 1).bit_length(), digit_bits=self.digit_bits,
            stages=self.stages, bits=self.bits, signed=True,
        )  # fmt: skip
        return part.build(requant=self.requant, bias=self.bias)


def signed_codes(mult, shift, zero_point=0, lo=-128, **more):
    return TfliteRequant(mult, shift, zero_point, lo, 127, **more)


CASES = {
    "typical": Case(signed_codes(MULTS, (-9, -7, -12, -8), -5), (100, -3000, 0, 7)),
    "relu": Case(signed_codes(MULTS[:2], (-11, -10), -128), (-1000, 1000), digit_bits=3),
    "one_shift": Case(signed_codes(MULTS, (-9,) * 4), (1, -2, 3, -4)),
    "one_mult_many_biases": Case(signed_codes(MULTS[:1], (-10,), 3), (5, -6, 7)),
    "some_channels_have_no_shift": Case(
        signed_codes(MULTS, (0, -3, 0, -14), 4), (0, 1, -1, 2), in_bits=9, acc_bits=10
    ),
    "no_shift": Case(signed_codes(MULTS[:1], (0,)), in_bits=8, acc_bits=9),
    "shifts_to_the_left": Case(signed_codes(MULTS, (3, -2, 0, 1)), (0, 0, 1, -1), 8, 9),
    "a_channel_that_is_nothing": Case(signed_codes((0, MULTS[0]), (0, -9), 11), (9, 9)),
    "nothing_at_all": Case(signed_codes((0,), (0,), -7), digit_bits=1),
    "halves": Case(signed_codes((1 << 30, 1 << 30), (-2, 0)), (0, 0), 10, 11),
    "sum_per_cycle": Case(
        signed_codes(MULTS, (-9, -7, -12, -8), -5), (0, -30, 2, 7), stages=16
    ),
    "sum_in_three_cycles": Case(
        signed_codes(MULTS, (-9, -10, -9, -11), -5), (0, -30, 2, 7), stages=6
    ),
    "wide_sum": Case(signed_codes(MULTS[:2], (-22, -23)), (1 << 30, -7), 31, 32, 8),
    "greatest_shift": Case(signed_codes(MULTS[:2], (-31, -20), 5), (0, 0), 31, 32, 4),
    "offset_beyond_the_sum": Case(signed_codes(MULTS[:1], (-3,), 127), (0,), 4, 4),
    "rounded_once": Case(signed_codes(MULTS[:1], (-8,), 9, rounds_once=True), (3, -400)),
    "rounded_once_by_channel": Case(
        signed_codes(MULTS, (-8, 0, -11, 2), 9, rounds_once=True), (3, -4, 5, -6)
    ),
    "four_bits": Case(TfliteRequant(MULTS[:2], (-12, -13), 1, -8, 7), (0, 77), bits=4),
}  # fmt: skip


def boundary_sums(case, channel):
    """Return sums around those where the output changes: limits, zero point, halves, extremes."""
    requant, bias = case.requant, case.bias[channel]
    position = channel % len(requant.mult)
    factor = requant.mult[position] * 2.0 ** (requant.shift[position] - 31)
    limit = 1 << case.in_bits - 1
    sums = {-limit, limit - 1, 0, 1, -1, -bias - 1, -bias, -bias + 1}
    halves = {-1.5, -0.5, 0.5, 1.5}
    halves |= {end - requant.zero_point + side for end in (requant.lo, requant.hi)
               for side in (-0.5, 0.5)}  # fmt: skip
    for half in halves if factor else ():
        middle = round(half / factor) - bias
        sums |= {middle + step for step in range(-2, 3)}
    return sorted(total for total in sums if -limit <= total < limit)


def stimulus(case, rng, noise=8):
    """Boundaries of every channel, then noise of every magnitude; channels take turns."""
    columns = [boundary_sums(case, channel) for channel in range(len(case.bias))]
    rows = max(map(len, columns)) + noise
    columns = [
        column
        + [
            int(rng.integers(-(1 << bits), 1 << bits))
            for bits in rng.integers(0, case.in_bits, rows - len(column))
        ]
        for column in columns
    ]
    return np.array(columns).T


def expected_codes(case, sums):
    return case.requant.apply(sums + np.array(case.bias)).reshape(-1).tolist()


def check(drive, case, rng, *, noise=8, **options):
    sums = stimulus(case, rng, noise)
    items = [{"acc": [int(v)], "last": n % 7 == 6} for n, v in enumerate(sums.reshape(-1))]
    requantizer = case.build()
    run = drive(requantizer, items, len(items), **options)
    assert [item.data[0] for item in run.items] == expected_codes(case, sums)
    assert [item.last for item in run.items] == [item["last"] for item in items]
    return requantizer.part, run


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_requantizes_exactly(case, stall, drive, rng):
    requantizer, run = check(drive, case, rng, stall=stall)
    assert requantizer.latency == case.stages * requantizer.interval + 5
    assert (run.out_cycles - run.in_cycles == requantizer.latency).all()
    assert (np.diff(run.in_cycles) == requantizer.interval).all()


@pytest.mark.parametrize("name", ["typical", "halves", "rounded_once"])
def test_stimulus_meets_halves_on_both_sides(name, rng):
    case = CASES[name]
    sums = stimulus(case, rng, 0)
    assert {-1, 0, 1} <= {code - case.requant.zero_point for code in expected_codes(case, sums)}


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "engine"),
    [("typical", "verilator"), pytest.param("sum_per_cycle", "cocotb", marks=pytest.mark.nightly)],
)
def test_verilog(name, engine, drive, rng):
    noise = 300 if engine == "verilator" else 8
    check(drive, CASES[name], rng, noise=noise, stall=0.5, engine=engine)
