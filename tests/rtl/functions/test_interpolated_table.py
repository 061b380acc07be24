# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from sweeps import few

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import QType, signed_bits
from nnef_hw.arithmetic.tables import look_up, table_size, unary_table
from nnef_hw.rtl.functions.interpolated_table import InterpolatedTable

FORMATS = [
    (9, False, 8, True),
    (10, True, 16, False),
    (11, False, 5, False),
    (12, True, 12, True),
    (13, False, 16, True),
    (16, True, 16, False),
    (16, False, 8, False),
]
SAMPLES = 400


def formats(in_bits, in_signed, out_bits, out_signed):
    return (QType(in_bits, in_signed, 12.0 / (1 << in_bits)),
            QType(out_bits, out_signed, 2.0 ** (1 - out_bits)))  # fmt: skip


def describe(source, target, ram, rises, lanes=1):
    return parts.InterpolatedTable(
        in_bits=source.bits, in_signed=source.signed, out_bits=target.bits,
        out_signed=target.signed, lanes=lanes, ram=ram,
        rise_bits=signed_bits(int(rises.min()), int(rises.max())),
    )  # fmt: skip


def check(drive, ram, knots, source, target, codes, *, lanes=1, **options):
    """Send codes through; compare results, frame ends and, without stalls, cycles."""
    codes = codes.reshape(-1, lanes)
    items = [{"data": beat, "last": n % 5 == 4} for n, beat in enumerate(codes.tolist())]
    part = describe(source, target, ram, np.diff(knots), lanes)
    run = drive(part.build(knots=knots.tolist()), items, len(items), **options)
    assert [list(item.data) for item in run.items] == look_up(knots, codes, source).tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    if run.flowing:
        assert (run.out_cycles - run.in_cycles == part.latency).all()
        assert (np.diff(run.in_cycles) == 1).all()


def sampled(source, rng):
    """All codes of narrow formats; of wide ones the ends, those at a knot, and others."""
    every = np.arange(source.lo, source.hi + 1)
    if len(every) <= 2 * SAMPLES:
        return rng.permutation(every)
    step = 1 << source.bits - 8
    near = source.lo + step * rng.integers(1, 256, SAMPLES // 8) + rng.integers(-1, 2, SAMPLES // 8)
    return np.concatenate([every[:4], every[-4:], near, rng.choice(every, SAMPLES // 2)])


@pytest.mark.parametrize("fmt", FORMATS)
def test_results_lie_on_the_lines_between_knots(fmt, stall, drive, ram, rng):
    source, target = formats(*fmt)
    knots = unary_table(np.tanh, source, target)
    check(drive, ram, knots, source, target, sampled(source, rng), stall=stall)


@pytest.mark.parametrize("fmt", [FORMATS[0], FORMATS[-2], FORMATS[-1]])
def test_any_knots(fmt, stall, drive, ram, rng):
    """Noise has differences of both signs and of the full width."""
    source, target = formats(*fmt)
    knots = rng.integers(target.lo, target.hi + 1, table_size(source.bits))
    knots[:4] = target.lo, target.hi, target.lo, target.lo
    check(drive, ram, knots, source, target, sampled(source, rng), stall=stall)


def test_lanes_have_memories_of_their_own(stall, drive, ram, rng):
    source, target = formats(*FORMATS[1])
    knots = unary_table(np.tanh, source, target)
    check(drive, ram, knots, source, target, sampled(source, rng)[:90], lanes=3, stall=stall)


@pytest.mark.verilator
@pytest.mark.parametrize("engine", few(["verilator", "cocotb"], ["verilator"]))
def test_verilog_of_interpolated_tables(engine, drive, ram, rng):
    source, target = formats(*FORMATS[-2])
    knots = rng.integers(target.lo, target.hi + 1, table_size(source.bits))
    codes = sampled(source, rng)[:120]
    check(drive, ram, knots, source, target, codes, stall=0.5, engine=engine)


@pytest.mark.parametrize(
    ("rises", "knots", "message"),
    [
        ([0], [0] * 256, "InterpolatedTable needs 257 knots, not 256"),
        ([-2, 1], [0, 2, *[0] * 255], "InterpolatedTable rises -2..2 do not fit 2 bits"),
    ],
)
def test_refuses_what_is_no_table_of_knots(rises, knots, message, ram):
    part = describe(*formats(12, False, 8, False), ram, np.array(rises))
    with pytest.raises(ValueError, match=re.escape(message)):
        InterpolatedTable(part, knots=knots)
