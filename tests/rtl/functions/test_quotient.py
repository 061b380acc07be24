# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tflite.division import tflite_quotient
from nnef_hw.rtl.functions.quotient import Quotient
from nnef_hw.sim.pysim import run_streams

FORMATS = {
    "signed": (QType(8, True, 0.05, 3), QType(8, True, 0.04, -20), QType(8, True, 0.05, 0)),
    "unsigned": (QType(8, False, 0.05, 131), QType(8, False, 0.05, 0), QType(8, False, 1.0, 128)),
    "ties": (QType(8, True, 0.3, -12), QType(8, True, 0.1, -128), QType(8, True, 0.25, 0)),
    "unequal": (QType(4, True, 0.5, 0), QType(6, False, 0.1, 5), QType(7, True, 0.3, 1)),
    "far": (QType(8, True, 2.0**-20, 0), QType(8, True, 4.0, 0), QType(8, True, 4.0, 5)),
    "nothing": (QType(8, True, 2.0**-12, 0), QType(8, True, 4.0, 0), QType(8, True, 4.0, 5)),
    "near": (QType(8, True, 300.0, 0), QType(8, True, 0.02, 0), QType(8, True, 0.02, 5)),
}  # fmt: skip
PAIRS = 30


def build(name, ram, *, digit_bits=4, inverts=False):
    first, second, target = FORMATS[name]
    part = parts.Quotient(
        in_bits=(first.bits, second.bits), in_signed=(first.signed, second.signed),
        out_bits=target.bits, out_signed=target.signed, digit_bits=digit_bits, inverts=inverts,
        ram=ram,
    )  # fmt: skip
    scales = (second.scale, first.scale) if inverts else (first.scale, second.scale)
    requant = tflite_quotient(scales, target, wraps=name != "nothing")
    zero_points = first.zero_point, second.zero_point
    return part.build(requant=requant, in_zero_points=zero_points), requant


def operands(name, rng):
    """Return codes of both: their limits, those around 0, ties if there are any, and noise."""
    formats, target = FORMATS[name][:2], FORMATS[name][2]
    every = np.meshgrid(*(np.arange(q.lo, q.hi + 1) for q in formats), indexing="ij")
    first, second = (x - q.zero_point for x, q in zip(every, formats, strict=True))
    ratio = formats[0].scale / (formats[1].scale * target.scale)
    quotients = ratio * first / np.where(second == 0, 1, second)
    is_tie = (np.abs(quotients) < 1 << target.bits) & (np.abs(quotients % 1 - 0.5) < 1e-6)
    ends = [
        np.array([q.lo, q.hi, q.zero_point, q.zero_point + 1, q.zero_point - 1]).clip(q.lo, q.hi)
        for q in formats
    ]
    pairs = [np.array(np.meshgrid(*ends)).reshape(2, -1)]
    if is_tie.any():
        tied = np.array([x[is_tie] for x in every])
        pairs.append(rng.choice(tied, PAIRS, axis=1))
    noise = [rng.integers(q.lo, q.hi + 1, PAIRS) for q in formats]
    return np.concatenate([*pairs, noise], axis=1)


def beats(codes):
    return [{"data": [int(code)], "last": n % 5 == 4} for n, code in enumerate(codes)]


def expected(name, requant, a, b, *, inverts=False):
    first, second, _ = FORMATS[name]
    differences = a - first.zero_point, b - second.zero_point
    return requant.apply(*(differences[::-1] if inverts else differences)).tolist()


@pytest.mark.parametrize(("name", "digit_bits"), covering([*FORMATS], [1, 2, 4]))
def test_quotients(name, digit_bits, stall, ram, rng):
    component, requant = build(name, ram, digit_bits=digit_bits)
    a, b = operands(name, rng)
    run = run_streams(
        component, {"a": beats(a), "b": beats(b)}, {"o": len(a)}, rng=rng, stall=stall
    )
    assert [item.data[0] for item in run.items["o"]] == expected(name, requant, a, b)
    assert [item.last for item in run.items["o"]] == [beat["last"] for beat in beats(a)]
    part, in_cycles = component.part, np.array(run.in_cycles["a"])
    assert run.in_cycles["b"] == run.in_cycles["a"]
    assert (np.array(run.out_cycles["o"]) - in_cycles == part.latency).all()
    assert (np.diff(in_cycles) == part.interval).all()


@pytest.mark.parametrize("name", ["signed", "unequal"])
def test_the_second_operand_by_the_first(name, ram, rng):
    component, requant = build(name, ram, inverts=True)
    a, b = operands(name, rng)
    run = run_streams(component, {"a": beats(a), "b": beats(b)}, {"o": len(a)}, rng=rng)
    wanted = expected(name, requant, a, b, inverts=True)
    assert [item.data[0] for item in run.items["o"]] == wanted


def test_refuses_limits_that_are_no_codes(ram):
    requant = tflite_quotient((0.5, 0.1), FORMATS["unequal"][2])
    message = "Quotient limits -64..63 must lie within -32..31"
    part = parts.Quotient(
        in_bits=(4, 4), in_signed=(True, True), out_bits=6, out_signed=True, digit_bits=1, ram=ram
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        Quotient(part, requant=requant, in_zero_points=(0, 0))
