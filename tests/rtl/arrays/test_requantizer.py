# amaranth: UnusedElaboratable=no
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from amaranth.sim import Simulator
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.rtl.arrays.requantizer import Requantizer


@dataclass(frozen=True)
class Case:
    """A requantizer of sums of ``in_bits``; one bias per channel."""

    requant: Requant
    bias: tuple[int, ...] = (0,)
    in_bits: int = 20
    acc_bits: int = 21
    digit_bits: int = 1
    stages: int = 1
    bits: int = 8
    signed: bool = False

    def part(self):
        return parts.Requantizer(
            channels=len(self.bias), acc_bits=self.acc_bits,
            factor_bits=max(self.requant.mult).bit_length(), digit_bits=self.digit_bits,
            stages=self.stages, bits=self.bits, signed=self.signed,
        )  # fmt: skip

    def build(self):
        return Requantizer(self.part(), requant=self.requant, bias=self.bias)


CASES = {
    "typical": Case(Requant((40503, 65535, 1), 23, 7, 0, 255), (100, -3000, 0)),
    "signed": Case(Requant((30011,), 24, -5, -128, 127), digit_bits=4, signed=True),
    "one_mult_many_biases": Case(Requant((51,), 14, 0, 0, 255, mult_bits=6), (5, -6, 7, 8)),
    "relu": Case(Requant((20000, 47), 22, 100, 100, 255), (-1000, 1000), digit_bits=3),
    "highest_code_is_zero": Case(
        Requant((40000,), 20, -128, -128, 0), in_bits=4, acc_bits=5, signed=True
    ),
    "shift_only": Case(Requant((1,), 6, 0, -128, 127, mult_bits=1), signed=True),
    "least_shift": Case(Requant((1,), 1, 3, 0, 255, mult_bits=1), in_bits=9, acc_bits=10),
    "mult_beyond_shift": Case(Requant((65535, 9), 3, 0, 0, 255), (2, -2), digit_bits=16),
    "halves": Case(Requant((1 << 15,), 16, 0, -128, 127), digit_bits=6, signed=True),
    "halves_of_small_mult": Case(Requant((12,), 5, -1, -8, 7, mult_bits=4), bits=4, signed=True),
    "digits_divide_badly": Case(Requant((40503,), 20, 0, 0, 255), digit_bits=5),
    "wide_sum": Case(Requant((65535, 40000), 36, 0, 0, 255), (1 << 30, -7), 34, 36, 8),
    "greatest_shift": Case(Requant((32768, 1), 46, 12, 0, 255), (0, 0), 36, 37, 4),
    "many_channels": Case(Requant(tuple(range(1, 40)), 14, 9, 0, 200), tuple(range(-20, 19))),
    **{
        f"split_table_of_{channels}": Case(
            Requant(tuple(1100 + 7919 * n % 900 for n in range(channels)), 14, 9, 0, 255),
            tuple(37 * n % 2001 - 1000 for n in range(channels)),
            digit_bits=2,
            stages=stages,
        )
        for channels, stages in ((64, 6), (65, 6), (128, 3), (131, 6), (256, 1))
    },
    "sum_per_cycle": Case(
        Requant((40503, 65535, 1), 23, 7, 0, 255), (100, -3000, 0), digit_bits=2, stages=8
    ),
    "sum_in_three_cycles": Case(
        Requant((30011,), 24, -5, -128, 127), digit_bits=2, stages=3, signed=True
    ),
    "sum_in_two_cycles": Case(Requant((9000, 47), 22, 100, 100, 255), (-7, 9), stages=7),
    "two_bits": Case(Requant((700,), 18, 1, 0, 3, mult_bits=10), digit_bits=2, bits=2),
    "sixteen_bits": Case(Requant((50000, 3), 16, 30000, 0, 65535), (9, 9), bits=16),
    "wide_mult": Case(Requant(((1 << 24) - 1,), 30, 0, -128, 127, 24), digit_bits=8, signed=True),
    "offset_beyond_the_sum": Case(Requant((255,), 8, 200, 0, 255, 8), (0,), 8, 8, digit_bits=2),
    "narrow_range": Case(Requant((999,), 16, 5, 5, 6, mult_bits=10), digit_bits=1),
}


def boundary_sums(case, channel):
    """Return sums around those where the output changes: clip limits, zero point, middle."""
    requant, bias = case.requant, case.bias[channel]
    mult = requant.mult[channel % len(requant.mult)]
    middle = (requant.lo + requant.hi) // 2
    sums = {0, 1, -1, -bias, -bias - 1, -bias + 1, -(1 << case.in_bits - 1)}
    sums |= {(1 << case.in_bits - 1) - 1}
    for code in {
        requant.lo,
        requant.lo + 1,
        middle,
        requant.zero_point,
        requant.hi,
        requant.hi + 1,
    }:
        # The least acc with floor((acc * mult + half) / 2**shift) + zero_point >= code.
        product = ((code - requant.zero_point) << requant.shift) - (1 << requant.shift - 1)
        sums |= {-(-product // mult) - bias + step for step in (-1, 0, 1)}
    limit = 1 << case.in_bits - 1
    return sorted(total for total in sums if -limit <= total < limit)


def stimulus(case, rng, noise=8):
    """Boundaries of every channel and noise of every magnitude; channels take turns.

    Each begins elsewhere, and the first turn with sums that are not clipped.
    """
    columns = [boundary_sums(case, channel) for channel in range(len(case.bias))]
    rows = max(map(len, columns)) + noise
    columns = [
        column + [
            int(rng.integers(-(1 << bits), 1 << bits))
            for bits in rng.integers(0, case.in_bits, rows - len(column))
        ]
        for column in columns
    ]  # fmt: skip
    return np.array([np.roll(column, -9 - n) for n, column in enumerate(columns)]).T


def check(drive, case, rng, *, noise=8, **options):
    sums = stimulus(case, rng, noise)
    items = [{"acc": [int(v)], "last": n % 7 == 6} for n, v in enumerate(sums.reshape(-1))]
    requantizer = case.build()
    run = drive(requantizer, items, len(items), **options)
    expected = case.requant.apply(sums + np.array(case.bias))
    assert [item.data[0] for item in run.items] == expected.reshape(-1).tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    return requantizer.part, run


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_requantizes_exactly(case, stall, drive, rng):
    requantizer, run = check(drive, case, rng, stall=stall)
    assert (run.out_cycles - run.in_cycles == requantizer.latency).all()
    assert (np.diff(run.in_cycles) == requantizer.interval).all()


@pytest.mark.parametrize(
    ("name", "digit_bits"),
    covering(["typical", "mult_beyond_shift"], [1, 2, 3, 4, 6, 8, 11, 16]),
)
def test_every_digit_width_gives_the_same(name, digit_bits, drive, rng):
    case = replace(CASES[name], digit_bits=digit_bits)
    requantizer, _ = check(drive, case, rng, stall=0.3)
    assert requantizer.interval == -(-16 // digit_bits)


@pytest.mark.parametrize("name", ["typical", "mult_beyond_shift", "digits_divide_badly"])
@pytest.mark.parametrize(
    ("digit_bits", "stages", "interval"),
    [(1, 2, 8), (1, 5, 4), (1, 16, 1), (2, 4, 2), (2, 8, 1), (4, 2, 2), (4, 4, 1), (8, 2, 1)],
)
def test_every_number_of_stages_gives_the_same(name, digit_bits, stages, interval, drive, rng):
    case = replace(CASES[name], digit_bits=digit_bits, stages=stages)
    requantizer, _ = check(drive, case, rng, stall=0.3)
    assert requantizer.interval == interval
    assert requantizer.latency == stages * interval + 3


def bench(requantizer, readiness):
    """Cycles in which sums enter and codes leave: sums always wait, ``o`` is ready at times."""
    entered, departed = [], []

    async def drive_ports(ctx):
        ctx.set(requantizer.i.valid, 1)
        for cycle, ready in enumerate(readiness):
            ctx.set(requantizer.o.ready, bool(ready))
            if ctx.get(requantizer.i.ready):
                entered.append(cycle)
            if ready and ctx.get(requantizer.o.valid):
                departed.append(cycle)
            await ctx.tick()

    simulator = Simulator(requantizer)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive_ports)
    simulator.run()
    return entered, departed


def expected_times(interval, latency, readiness):
    """Count cycles in which the queue of two codes is not full: those in which sums move."""
    entered, ages, queued, departed = [], [], 0, []
    for cycle, ready in enumerate(readiness):
        leaves = bool(ready) and queued > 0
        if queued < 2:
            ages = [age + 1 for age in ages]
            if not ages or ages[-1] >= interval:
                entered.append(cycle)
                ages.append(0)
            if ages[0] == latency - 1:
                queued += 1
                ages.pop(0)
        queued -= leaves
        departed += [cycle] * leaves
    return entered, departed


FOLDINGS = [(1, 1), (16, 1), (2, 8), (4, 2), (2, 3), (6, 1), (3, 6)]


@pytest.mark.parametrize(("digit_bits", "stages", "share"), covering(FOLDINGS, [0.1, 0.5, 0.9]))
def test_a_full_queue_stops_everything(digit_bits, stages, share, rng):
    requantizer = replace(CASES["typical"], digit_bits=digit_bits, stages=stages).build()
    readiness = rng.random(300) < share
    expected = expected_times(requantizer.part.interval, requantizer.part.latency, readiness)
    assert bench(requantizer, readiness) == expected


@pytest.mark.parametrize(("digit_bits", "stages"), FOLDINGS)
def test_every_stage_fills_while_the_output_waits(digit_bits, stages):
    requantizer = replace(CASES["typical"], digit_bits=digit_bits, stages=stages).build()
    entered, _ = bench(requantizer, [0] * 100)
    assert len(entered) == stages + 2 + 2 // requantizer.part.interval


@pytest.mark.parametrize("name", ["typical", "wide_sum", "mult_beyond_shift"])
def test_stimulus_meets_both_limits(name, rng):
    case = CASES[name]
    codes = case.requant.apply(stimulus(case, rng, 0) + np.array(case.bias))
    limits = {case.requant.lo, case.requant.lo + 1, case.requant.hi - 1, case.requant.hi}
    assert limits - {254} <= set(codes.reshape(-1).tolist())


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "noise", "engine"),
    [
        ("typical", 200, "verilator"),
        pytest.param("wide_sum", 8, "cocotb", marks=pytest.mark.nightly),
        ("sum_per_cycle", 200, "verilator"),
        ("split_table_of_131", 8, "verilator"),
        pytest.param("sum_in_three_cycles", 8, "cocotb", marks=pytest.mark.nightly),
    ],
)
def test_verilog(name, noise, engine, drive, rng):
    check(drive, CASES[name], rng, noise=noise, stall=0.5, engine=engine)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bias": (1, 2)}, "Requantizer has 2 biases for 3 channels"),
        ({"requant": Requant((1, 2), 23, 7, 0, 255)}, "Requantizer has 2 mult for 3 biases"),
        ({"requant": Requant((1 << 16,), 23, 7, 0, 255, 17)},
         "Requantizer factors have 17 bits, not 16"),
    ],
)  # fmt: skip
def test_refuses_constants_that_do_not_fit(change, message):
    part, case = CASES["typical"].part(), replace(CASES["typical"], **change)
    with pytest.raises(ValueError, match=re.escape(message)):
        Requantizer(part, requant=case.requant, bias=case.bias)
