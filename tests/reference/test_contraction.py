"""Products of two activations: every code is that of integers summed one by one, rounded once."""

from fractions import Fraction
from itertools import permutations, product
from math import floor

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.ir import Graph, Node, Stage, Tensor
from nnef_hw.quantize import FixedParams, build_fixed
from nnef_hw.reference import run_fixed, run_float

FORMATS = {
    "zero points": (QType(8, False, 0.05, 131), QType(8, True, 0.03, -7), QType(8, False, 0.4, 90)),
    "none": (QType(8, True, 0.02), QType(4, True, 0.3), QType(8, True, 0.11)),
    "wide": (QType(12, True, 0.002, 5), QType(8, False, 0.01, 0), QType(16, True, 0.0007, 0)),
}


def graph_of(x, w, **attrs):
    """Return the canonical graph of one contraction."""
    attrs = {"sets": 1, "matrices": 1, "repeats": 1, "scale": 1.0, "offset": 0.0, **attrs}
    node = Node("contraction", ("x", "w"), ("y",), attrs)
    from_shapes = attrs["sets"] * attrs["matrices"] * x[1]
    columns = int(np.prod(w)) // from_shapes
    tensors = {"x": Tensor("x", x), "w": Tensor("w", w), "y": Tensor("y", (1, columns, *x[2:]))}
    return Graph("net", ("x", "w"), ("y",), tensors, (node,), stage=Stage.CANONICAL)


def half_up(value):
    return floor(value + Fraction(1, 2))


def oracle(x, w, sizes, order, formats, node):
    """Return the codes [column, row] of one frame, each from integers alone."""
    sets, matrices, repeats, inner, columns = sizes
    first, second, target = formats
    requant, rows = node.attrs["requant"], x.reshape(inner, -1)
    extents = {"m": matrices, "k": inner, "n": columns}
    last = extents[order[-1]]
    stream = w.reshape(last, -1).T.reshape(sets, *(extents[axis] for axis in order))
    result = np.zeros((columns, rows.shape[1]), int)
    each = rows.shape[1] // sets
    for row, column in product(range(rows.shape[1]), range(columns)):
        place = {"m": row % each // repeats % matrices, "n": column}
        total = 0
        for k in range(inner):
            at = tuple({**place, "k": k}[axis] for axis in order)
            total += (int(rows[k, row]) - first.zero_point) * (
                int(stream[(row // each, *at)]) - second.zero_point
            )
        acc = total * 2 ** node.attrs["gain"] + node.attrs["bias"]
        code = half_up(Fraction(acc * requant.mult[0], 2**requant.shift)) + target.zero_point
        result[column, row] = min(max(code, requant.lo), requant.hi)
    return result


@pytest.mark.parametrize("formats", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("order", ["".join(axes) for axes in permutations("mkn")])
def test_codes_are_those_of_exact_integers(order, formats, rng):
    sizes = sets, matrices, repeats, inner, columns = 2, 3, 2, 5, 4
    extents = {"m": matrices, "k": inner, "n": columns}
    outer, middle, last = (extents[axis] for axis in order)
    shapes = (1, inner, sets * matrices * repeats, 2), (1, last, sets * outer, middle)
    graph = graph_of(
        *shapes, sets=sets, matrices=matrices, repeats=repeats, order=order, scale=0.5,
        offset=-0.3,
    )  # fmt: skip
    fixed = build_fixed(graph, FixedParams(dict(zip("xwy", formats, strict=True)), {}))
    codes = {
        name: rng.integers(form.lo, form.hi + 1, (3, *shape[1:]))
        for name, form, shape in zip("xw", formats, shapes, strict=False)
    }
    codes["x"][0], codes["w"][0] = formats[0].hi, formats[1].lo
    found = run_fixed(fixed, codes)["y"]
    for n in range(3):
        wanted = oracle(codes["x"][n], codes["w"][n], sizes, order, formats, fixed.nodes[0])
        np.testing.assert_array_equal(found[n].reshape(columns, -1), wanted)


@pytest.mark.parametrize("formats", FORMATS.values(), ids=FORMATS)
def test_codes_are_within_a_step_of_real_numbers(formats, rng):
    graph = graph_of((1, 6, 4), (1, 6, 5), order="mnk", scale=0.25, offset=1.7)
    fixed = build_fixed(graph, FixedParams(dict(zip("xwy", formats, strict=True)), {}))
    codes = {
        name: rng.integers(form.lo // 8, form.hi // 8 + 1, (4, *graph.tensor(name).shape[1:]))
        for name, form in zip("xw", formats, strict=False)
    }
    codes = {name: code + form.zero_point for (name, code), form in
             zip(codes.items(), formats, strict=False)}  # fmt: skip
    codes = {
        name: code.clip(form.lo, form.hi)
        for (name, code), form in zip(codes.items(), formats, strict=False)
    }
    real = {name: form.dequantize(codes[name]) for name, form in zip("xw", formats, strict=False)}
    wanted, target = run_float(graph, real)["y"], formats[2]
    lo, hi = target.dequantize([target.lo, target.hi])
    found = target.dequantize(run_fixed(fixed, codes)["y"])
    # half a step of rounding, and what 16 bits of a factor leave
    limit = 0.51 * target.scale + 2.0**-15 * np.abs(wanted)
    assert (np.abs(found - wanted.clip(lo, hi)) <= limit).all()


def test_an_offset_that_is_no_whole_number_of_steps_misses_a_thousandth_of_one(rng):
    """Sums that are cut off, as integer networks do, are those that the author computed."""
    x, w, y = QType(8, True, 1.0), QType(8, True, 1.0), QType(8, True, 1.0)
    graph = graph_of((1, 2, 66), (1, 2, 66), order="mnk", scale=257 / 2**15, offset=1 / 2**18 - 0.5)
    fixed = build_fixed(graph, FixedParams({"x": x, "w": w, "y": y}, {}))
    codes = {name: rng.integers(-128, 128, (5, 2, 66)) for name in "xw"}
    sums = np.einsum("bkr,bkn->bnr", codes["x"], codes["w"])
    wanted = ((sums * 257) >> 15).clip(-128, 127)
    np.testing.assert_array_equal(run_fixed(fixed, codes)["y"], wanted)
