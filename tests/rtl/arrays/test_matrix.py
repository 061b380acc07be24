import numpy as np
import pytest
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.adders import multiply_matrix
from nnef_hw.arithmetic.numerics import Requant

FORMATS = {"u4": (4, False), "s8": (8, True), "u2": (2, False)}
REQUANTS = {
    "one mult": (lambda n: Requant((1,), 3, 0, 0, 15), (4, False)),
    "a mult each": (lambda n: Requant(tuple(range(3, 3 + n)), 5, 3, 3, 200), (8, False)),
    "signed": (lambda n: Requant((5,), 4, -7, -128, 127), (8, True)),
    "clamped": (lambda n: Requant((77,), 9, -1, -5, 6), (4, True)),
}
SIZES = {"1 x 1": (1, 1), "5 x 3": (3, 5), "4 x 16": (16, 4), "2 x 7": (7, 2)}


def make(rng, inputs, outputs, bits, signed, requant, target, *, lut_ram=True):
    """A part, and the golden model of its codes."""
    matrix = rng.integers(-31, 32, (outputs, inputs)) * (rng.random((outputs, inputs)) < 0.8)
    bias = rng.integers(-300, 300, outputs)
    mult = np.broadcast_to(requant.mult, outputs)
    offsets = bias * mult + (1 << requant.shift - 1)
    offsets += (requant.zero_point - requant.lo) << requant.shift
    graph = multiply_matrix(
        matrix, factors=mult.tolist(), offsets=offsets.tolist(), bits=bits, signed=signed
    )
    part = parts.MatrixProduct(
        graph=graph, products=int(np.count_nonzero(matrix)), shift=requant.shift, lo=requant.lo,
        hi=requant.hi, in_lanes=inputs, in_bits=bits, in_signed=signed, out_lanes=outputs,
        out_bits=target[0], out_signed=target[1], lut_ram=lut_ram,
    )  # fmt: skip
    return part, lambda codes: requant.apply(codes @ matrix.T + bias)


def vectors(rng, count, inputs, bits, signed):
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    codes = rng.integers(lo, hi + 1, (count, inputs))
    codes[0], codes[1] = lo, hi
    return codes


def items(codes, frame=3):
    return [{"data": row.tolist(), "last": n % frame == frame - 1} for n, row in enumerate(codes)]


def as_dicts(found):
    return [{"data": list(item.data), "last": bool(item.last)} for item in found]


@pytest.mark.parametrize(
    ("size", "codes", "requant"), covering(list(SIZES), list(FORMATS), list(REQUANTS))
)
def test_matrix_product(size, codes, requant, stall, drive, rng):
    make_requant, target = REQUANTS[requant]
    inputs, outputs = SIZES[size]
    part, golden = make(rng, inputs, outputs, *FORMATS[codes], make_requant(outputs), target)
    x = vectors(rng, 90, inputs, *FORMATS[codes])
    run = drive(part.build(), items(x), len(x), stall=stall)
    assert as_dicts(run.items) == items(golden(x))
    if not stall:
        assert (np.diff(run.in_cycles) == 1).all()
        assert (run.out_cycles - run.in_cycles == part.latency).all()
