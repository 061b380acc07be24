"""Operators beyond the standard, against their definition written as loops."""

import math
import re

import numpy as np
import pytest
from operators import compute

from nnef_hw.errors import ModelError
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.shapes.extended import DEFAULTS, EXTENDED_RULES


def test_defaults_are_those_of_the_declarations():
    declared = {
        name: {
            parameter.name: parameter.default.value
            for parameter in declaration.parameters
            if parameter.default is not None
        }
        for name, declaration in load_library("extended").items()
    }
    assert {name: values for name, values in declared.items() if values} == DEFAULTS


INTEGERS = np.array([-7, -3, -1, 0, 1, 2, 5, 12])


def test_every_extended_operator_is_declared():
    library = load_library("extended")
    assert library.keys() == EXTENDED_RULES.keys()
    assert all(declaration.name == name for name, declaration in library.items())


def test_functions_of_one_number():
    x = np.array([-2.5, -1.5, -0.5, 0.0, 0.3, 0.5, 1.5, 2.5, 40.0])
    np.testing.assert_array_equal(compute("erf", x), [math.erf(v) for v in x.tolist()])
    assert compute("round_even", x).tolist() == [round(v) for v in x.tolist()]


def test_special_numbers_are_found():
    x = np.array([0.0, math.nan, math.inf, -math.inf])
    assert compute("is_nan", x).tolist() == [False, True, False, False]
    assert compute("is_inf", x).tolist() == [False, False, True, True]
    assert compute("is_inf", x, negative=False).tolist() == [False, False, True, False]
    assert compute("is_inf", x, positive=False).tolist() == [False, False, False, True]


def test_a_softmax_of_integers_knows_nothing_where_a_code_is_not_a_number():
    x = np.array([[3.0, math.nan], [1.0, 2.0], [math.inf, -math.inf]])
    found = compute("integer_softmax", x, np.array([[256.0, 64.0]]), axes=[1], levels=256)
    np.testing.assert_array_equal(found, [[math.nan, math.nan], [51, 204], [204, 51]])


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("bit_and", lambda a, b: a & b),
        ("bit_or", lambda a, b: a | b),
        ("bit_xor", lambda a, b: a ^ b),
        ("shift_left", lambda a, b: a << abs(b)),
        ("shift_right", lambda a, b: a >> abs(b)),
        ("mod", lambda a, b: a % b if b else 0),
    ],
)
def test_functions_of_two_integers_broadcast_from_the_left(op, function):
    left, right = np.meshgrid(INTEGERS, INTEGERS, indexing="ij")
    right = np.abs(right) if op.startswith("shift") else right
    found = compute(op, INTEGERS, right.T.copy() if op == "mod" else right)
    other = right.T if op == "mod" else right
    expected = np.vectorize(function)(left, other)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int64


def test_bits_and_truth_are_inverted():
    assert compute("bit_not", INTEGERS).tolist() == [~v for v in INTEGERS.tolist()]
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert compute("xor", a, b).tolist() == [False, True, True, False]


def test_remainders_have_the_sign_of_divisor_or_dividend():
    x, y = np.array([-5.5, 5.5, -5.5, 5.5]), np.array([3.0, 3.0, -3.0, -3.0])
    assert compute("mod", x, y).tolist() == [0.5, 2.5, -2.5, -0.5]
    assert compute("mod", x, y, fmod=True).tolist() == [-2.5, 2.5, -2.5, 2.5]


@pytest.mark.parametrize(
    ("expr", "shapes"),
    [
        ("mk,kn->mn", [(2, 3), (3, 4)]),
        ("bij , bkj -> bik", [(2, 3, 4), (2, 5, 4)]),
        ("ii->i", [(3, 3)]),
        ("i,i->", [(4,), (4,)]),
        ("a,,b->ba", [(2,), (), (3,)]),
        ("ij,jk,kl->li", [(2, 3), (3, 4), (4, 2)]),
        ("ij,ij->ij", [(1, 3), (2, 3)]),
    ],
)
def test_einsum_sums_over_letters_that_the_result_lacks(expr, shapes, rng):
    args = [rng.standard_normal(shape) for shape in shapes]
    left, right = expr.replace(" ", "").split("->")
    terms = left.split(",")
    extents = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, extent in zip(term, shape, strict=True):
            extents[letter] = max(extent, extents.get(letter, 1))
    expected = np.zeros([extents[letter] for letter in right])
    for index in np.ndindex(*extents.values()):
        place = dict(zip(extents, index, strict=True))
        product = math.prod(
            x[tuple(place[k] % n for k, n in zip(term, x.shape, strict=True))]
            for term, x in zip(terms, args, strict=True)
        )
        expected[tuple(place[letter] for letter in right)] += product
    np.testing.assert_allclose(compute("einsum", *args, expr=expr), expected, atol=1e-12)


def test_broadcast_repeats_extents_of_one(rng):
    x = rng.standard_normal((2, 1, 3, 1))
    found = compute("broadcast", x, shape=[2, 4, 3, 2])
    np.testing.assert_array_equal(found, np.tile(x, (1, 4, 1, 2)))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_elements_reads_along_its_axis(axis, rng):
    x = rng.standard_normal((3, 4, 5))
    shape = [2, 3, 4]
    shape[axis] = 6
    indices = rng.integers(-x.shape[axis], x.shape[axis], shape)
    found = compute("gather_elements", x, indices, axis=axis)
    for place in np.ndindex(*shape):
        source = list(place)
        source[axis] = indices[place]
        assert found[place] == x[tuple(source)]


@pytest.mark.parametrize(
    ("source", "indices", "batch_dims"),
    [
        ((3, 4, 5), (2, 2), 0),
        ((3, 4, 5), (2, 3, 1), 0),
        ((3, 4, 5), (6, 3), 0),
        ((2, 4, 5), (2, 1), 1),
        ((2, 4, 5), (2, 3, 2), 1),
        ((2, 3, 4, 5), (2, 3, 7, 1), 2),
    ],
)
def test_gather_nd_reads_what_each_index_names(source, indices, batch_dims, rng):
    x = rng.standard_normal(source)
    depth = indices[-1]
    extents = source[batch_dims : batch_dims + depth]
    index = np.stack([rng.integers(-n, n, indices[:-1]) for n in extents], axis=-1)
    found = compute("gather_nd", x, index, batch_dims=batch_dims)
    for place in np.ndindex(*indices[:-1]):
        np.testing.assert_array_equal(found[place], x[place[:batch_dims]][tuple(index[place])])


REDUCTIONS = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_elements_merges_updates_in_order(reduction, axis, rng):
    x = rng.standard_normal((3, 4))
    shape = [2, 2]
    shape[axis] = 5
    indices = rng.integers(-x.shape[axis], x.shape[axis], shape)
    updates = rng.standard_normal(shape)
    expected = x.copy()
    for place in np.ndindex(*shape):
        target = list(place)
        target[axis] = indices[place]
        expected[tuple(target)] = REDUCTIONS[reduction](expected[tuple(target)], updates[place])
    found = compute("scatter_elements", x, indices, updates, axis=axis, reduction=reduction)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_scatter_nd_merges_updates_in_order(reduction, rng):
    x = rng.standard_normal((3, 2, 4))
    indices = np.stack([rng.integers(-3, 3, 9), rng.integers(-2, 2, 9)], axis=-1)
    updates = rng.standard_normal((9, 4))
    expected = x.copy()
    for (i, j), update in zip(indices, updates, strict=True):
        for k in range(4):
            expected[i, j, k] = REDUCTIONS[reduction](expected[i, j, k], update[k])
    found = compute("scatter_nd", x, indices, updates, reduction=reduction)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_topk_sorts_and_prefers_the_first_of_equals(largest, axis, rng):
    x = rng.integers(0, 4, (6, 7)).astype(float)
    values, indices = compute("topk", x, k=4, axis=axis, largest=largest)
    sign = -1 if largest else 1
    for line, best, places in zip(
        *(np.moveaxis(a, axis, -1) for a in (x, values, indices)), strict=True
    ):
        order = sorted(range(len(line)), key=lambda i: (sign * line[i], i))[:4]
        assert places.tolist() == order
        assert best.tolist() == [line[i] for i in order]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_one_hot_marks_the_index(axis):
    indices = np.array([[0, 2, -1], [7, 1, -5]])
    found = compute("one_hot", indices, 0.5, 3.0, depth=4, axis=axis, dtypes=["scalar"])
    for place in np.ndindex(*found.shape):
        others = place[:axis] + place[axis + 1 :]
        wanted = indices[others]
        wanted = wanted + 4 if wanted < 0 else wanted
        assert found[place] == (3.0 if place[axis] == wanted else 0.5)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("k", [-2, 0, 1])
def test_trilu_keeps_a_triangle(upper, k, rng):
    x = rng.standard_normal((2, 3, 4))
    found = compute("trilu", x, k=k, upper=upper)
    for place in np.ndindex(*x.shape):
        _, row, column = place
        kept = column - row >= k if upper else column - row <= k
        assert found[place] == (x[place] if kept else 0)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum_adds_what_stands_before(exclusive, reverse, rng):
    x = rng.standard_normal((2, 5, 3))
    found = compute("cumsum", x, axis=1, exclusive=exclusive, reverse=reverse)
    for i in range(5):
        part = x[:, i + exclusive :] if reverse else x[:, : i + 1 - exclusive]
        np.testing.assert_allclose(found[:, i], part.sum(axis=1))


def test_product_and_last_hits(rng):
    x = rng.integers(0, 3, (3, 4, 2)).astype(float)
    np.testing.assert_array_equal(
        compute("product_reduce", x, axes=[0, 2]), x.prod(axis=(0, 2), keepdims=True)
    )
    for op, best in (("argmax_reduce_last", np.max), ("argmin_reduce_last", np.min)):
        found = compute(op, x, axes=[1, 2])
        for i in range(3):
            flat = x[i].reshape(-1).tolist()
            assert found[i].item() == max(k for k, v in enumerate(flat) if v == best(x[i]))


@pytest.mark.parametrize(
    ("op", "args", "attrs", "message"),
    [
        ("einsum", [(2, 3)], {"expr": "ij"}, "expr 'ij' must have 1 terms and a '->'"),
        ("einsum", [(2, 3)], {"expr": "i->i"}, "the term 'i' must have 2 letters like the rank"),
        ("einsum", [(2,)], {"expr": "\u00e9->\u00e9"}, "must have 1 letters like the rank of 'x0'"),
        ("einsum", [(2, 3)], {"expr": "ii->i"}, "'i' of 'ii->i' is 2 and, for 'x0', 3"),
        ("einsum", [(2, 3)], {"expr": "ij->k"}, "the result 'k' of 'ij->k' must be made of"),
        ("broadcast", [(2, 3)], {"shape": [2, 6]}, "the shape [2, 3] of 'x0' does not extend to"),
        ("broadcast", [(3,)], {"shape": [2, 3]}, "only extents of 1 grow"),
        ("gather_elements", [(2, 3), (3, 3)], {"axis": 1}, "shape [3, 3] do not fit into the"),
        ("gather_nd", [(2, 3), (4, 3)], {}, "name 3 dimensions behind 0, but 'x0' has rank 2"),
        ("gather_nd", [(2, 3), (4, 1)], {"batch_dims": 1}, "[2, 3] and [4, 1] differ in the"),
        ("gather_nd", [(2, 3), (2, 1)], {"batch_dims": 2}, "batch_dims 2 do not fit ranks 2"),
        ("scatter_nd", [(2, 3), (4, 1), (4, 2)], {}, "have shape [4, 2], but must have [4, 3]"),
        (
            "scatter_elements",
            [(2, 3), (2, 1), (2, 1)],
            {"axis": 1, "reduction": "sum"},
            "reduction 'sum' does not exist here; use one of 'none', 'add', 'mul', 'min', 'max'",
        ),
        ("topk", [(2, 3)], {"k": 4, "axis": 1}, "k = 4 must be in 1..3, the extent of dimension"),
        ("one_hot", [(2,), (2,), ()], {"depth": 3, "axis": 0}, "'x1' of shape [2] is not one"),
        ("one_hot", [(2,), (), ()], {"depth": 0, "axis": 0}, "depth 0 must be positive"),
        ("trilu", [(2,)], {}, "'x0' is not a matrix"),
        ("cumsum", [(2,)], {"axis": 1}, "axis 1 must be in 0..0"),
        ("resize", [(2,)], {"size": [2, 2], "scale": [1.0]}, "size [2, 2] must have 1 positive"),
        ("resize", [(2,)], {"size": [4], "scale": [0.0]}, "scale [0.0] must have 1 positive"),
        (
            "resize",
            [(2,)],
            {"size": [4], "scale": [2.0], "coordinates": "pixel"},
            "coordinates 'pixel' does not exist here",
        ),
    ],
)
def test_misfits_are_refused(op, args, attrs, message):
    arrays = [np.zeros(shape) for shape in args]
    with pytest.raises(ModelError, match=re.escape(message)):
        compute(op, *arrays, **attrs)


def test_an_index_outside_is_refused():
    with pytest.raises(ModelError, match="gather_elements 'y': the index -4 is outside of the 3"):
        compute("gather_elements", np.zeros(3), np.array([0, -4]), axis=0)


@pytest.mark.parametrize("factor", [(2, 3), (1, 2)])
def test_depth_to_space_spreads_channels(factor):
    x = np.arange(2 * 12 * 3 * 2).reshape(2, 12, 3, 2)
    y = compute("depth_to_space", x, factor=list(factor))
    channels = 12 // math.prod(factor)
    assert y.shape == (2, channels, 3 * factor[0], 2 * factor[1])
    for n, c, row, column in np.ndindex(y.shape):
        (i, v), (j, h) = divmod(row, factor[0]), divmod(column, factor[1])
        assert y[n, c, row, column] == x[n, (v * factor[1] + h) * channels + c, i, j]


@pytest.mark.parametrize(
    ("factor", "reason"),
    [
        ([2], "factor [2] must have a positive item for each dimension of [1, 6, 2, 2]"),
        ([0, 2], "factor [0, 2] must have a positive item"),
        ([2, 2], "factor [2, 2] does not divide the 6 channels"),
    ],
)
def test_channels_that_cannot_be_spread(factor, reason):
    with pytest.raises(ModelError, match=re.escape(reason)):
        compute("depth_to_space", np.zeros((1, 6, 2, 2)), factor=factor)
