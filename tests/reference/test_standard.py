"""Operators of the standard that are not windows, against their definition."""

import math

import numpy as np
import pytest
from operators import compute

from nnef_hw.errors import ModelError

RANKS = range(9)


def shape_of_rank(rank):
    return tuple([2, 3, 1, 2, 1, 2, 1, 2][:rank])


@pytest.mark.parametrize("rank", RANKS)
def test_elementwise_operators_take_every_rank(rank, rng):
    x = rng.standard_normal(shape_of_rank(rank))
    np.testing.assert_array_equal(compute("add", x, np.array(2.0)), x + 2)
    np.testing.assert_array_equal(compute("relu", x), np.maximum(x, 0))
    np.testing.assert_array_equal(compute("select", x > 0, x, np.array(-1.0), dtypes=["scalar"]),
                                  np.where(x > 0, x, -1))  # fmt: skip


@pytest.mark.parametrize("rank", RANKS)
def test_shape_operators_take_every_rank(rank, rng):
    x = rng.standard_normal(shape_of_rank(rank))
    order = rng.permutation(rank).tolist()
    np.testing.assert_array_equal(compute("transpose", x, axes=order), x.transpose(order))
    np.testing.assert_array_equal(compute("reshape", x, shape=[-1]), x.reshape(-1))
    np.testing.assert_array_equal(compute("unsqueeze", x, axes=[0, rank + 1]), x[None, ..., None])
    np.testing.assert_array_equal(compute("tile", x, repeats=[2] * rank), np.tile(x, [2] * rank))
    np.testing.assert_array_equal(compute("stack", x, x, axis=rank), np.stack([x, x], -1))
    axes = list(range(rank))
    np.testing.assert_allclose(
        compute("sum_reduce", x, axes=axes), x.sum(keepdims=True), atol=1e-12
    )
    singles = [axis for axis in axes if x.shape[axis] == 1]
    np.testing.assert_array_equal(compute("squeeze", x, axes=singles), np.squeeze(x))


def test_transpose_may_name_the_first_axes_only(rng):
    x = rng.standard_normal((2, 3, 4))
    np.testing.assert_array_equal(compute("transpose", x, axes=[1, 0]), x.transpose(1, 0, 2))


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5)])
def test_broadcasting_aligns_first_dimensions(shape, rng):
    x, y = rng.standard_normal(shape), rng.standard_normal((2, 1))
    expected = x * y.reshape(2, *[1] * (len(shape) - 1))
    np.testing.assert_array_equal(compute("mul", x, y), expected)
    np.testing.assert_array_equal(compute("mul", y, x), expected)


INTEGERS = np.array([-7, -2, -1, 0, 1, 3, 9])


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul", lambda a, b: a * b),
        ("div", lambda a, b: math.trunc(a / b)),
        ("min", min),
        ("max", max),
        ("pow", lambda a, b: math.trunc(float(a) ** b) if a else 0),
    ],
)
def test_integers_are_computed_as_integers(op, function):
    x, y = (grid.reshape(-1) for grid in np.meshgrid(INTEGERS, INTEGERS[INTEGERS != 0]))
    if op == "pow":
        x, y = x[x != 0], y[x != 0]
    found = compute(op, x, y)
    assert found.dtype == np.int64
    assert found.tolist() == [function(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_large_integers_are_exact():
    x = np.array([2**60 + 1])
    assert compute("add", x, x).tolist() == [2**61 + 2]
    assert compute("div", x, np.array([3])).tolist() == [(2**60 + 1) // 3]


def test_truth_values_count_as_zero_and_one():
    a, b = np.array([False, True]), np.array([True, True])
    for op in ("add", "sub", "mul", "pow"):
        expected = compute(op, a.astype(int), b.astype(int))
        assert compute(op, a, b, dtypes=["integer"]).tolist() == expected.tolist()
    assert compute("neg", a, dtypes=["integer"]).tolist() == [0, -1]


def test_logical_operators():
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert compute("and", a, b).tolist() == [False, False, False, True]
    assert compute("or", a, b).tolist() == [False, True, True, True]
    assert compute("not", a).tolist() == [True, True, False, False]
    assert compute("any_reduce", b, axes=[0]).tolist() == [True]
    assert compute("all_reduce", b, axes=[0]).tolist() == [False]
    assert compute("ne", a, b).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        ([-1.7, -0.2, 0.0, 2.9], "integer", [-1, 0, 0, 2]),
        ([-1.7, 0.0, 0.4, 1.0], "logical", [True, False, True, True]),
        ([True, False], "scalar", [1.0, 0.0]),
        ([True, False], "integer", [1, 0]),
        ([-3, 0, 2], "logical", [True, False, True]),
        ([-3, 0, 2], "scalar", [-3.0, 0.0, 2.0]),
    ],
)
def test_cast_converts_between_data_types(values, target, expected):
    found = compute("cast", np.array(values), dtypes=[target])
    assert found.tolist() == expected
    assert found.dtype == {"integer": np.int64, "logical": np.bool_, "scalar": np.float64}[target]


def test_clamp_prefers_its_lower_bound():
    x = np.array([-1.0, 0.5, 3.0])
    assert compute("clamp", x, np.array(2.0), np.array(1.0)).tolist() == [2.0, 2.0, 2.0]


def test_moments_are_those_of_the_population(rng):
    x = rng.standard_normal((2, 3, 4)) + 1e6
    mean, variance = compute("moments", x, axes=[0, 2])
    np.testing.assert_allclose(mean, x.mean(axis=(0, 2), keepdims=True))
    np.testing.assert_allclose(variance, x.var(axis=(0, 2), keepdims=True))


def test_copies_and_sums_of_many_tensors(rng):
    x, y, z = rng.standard_normal((2, 3)), rng.standard_normal(2), rng.standard_normal((1, 1))
    for copy in compute("copy_n", x, times=3):
        np.testing.assert_array_equal(copy, x)
    np.testing.assert_allclose(compute("add_n", x, y, z), x + y[:, None] + z)
    np.testing.assert_array_equal(compute("add_n", x), x)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_gather_puts_the_shape_of_the_indices_in_place(axis, shape, rng):
    x = rng.standard_normal((3, 4, 5))
    indices = rng.integers(0, x.shape[axis], shape)
    found = compute("gather", x, indices, axis=axis)
    for place in np.ndindex(*found.shape):
        at = place[axis : axis + len(shape)]
        source = (*place[:axis], indices[at], *place[axis + len(shape) :])
        assert found[place] == x[source]


def test_an_index_outside_is_refused():
    with pytest.raises(ModelError, match="gather 'y': the index 3 is outside of the 3 elements"):
        compute("gather", np.zeros(3), np.array([0, 3]), axis=0)


@pytest.mark.parametrize("extent", [1, 2, 5])
@pytest.mark.parametrize("stride", [-3, -1, 1, 2])
def test_slice_agrees_with_numpy(extent, stride):
    x = np.arange(extent)
    for begin in range(-extent - 2, extent + 3):
        for end in range(-extent - 2, extent + 3):
            to_end = stride == 1 and end == 0
            expected = x[begin:] if to_end else x[begin:end:stride]
            attrs = {"axes": [0], "begin": [begin], "end": [end], "stride": [stride]}
            if expected.size:
                np.testing.assert_array_equal(compute("slice", x, **attrs), expected)
            else:
                with pytest.raises(ModelError, match="nothing is left"):
                    compute("slice", x, **attrs)


@pytest.mark.parametrize(
    ("border", "expected"),
    [
        ("constant", [9, 9, 9, 1, 2, 3, 9, 9]),
        ("replicate", [1, 1, 1, 1, 2, 3, 3, 3]),
        ("reflect", [2, 3, 2, 1, 2, 3, 2, 1]),
        ("reflect-even", [3, 2, 1, 1, 2, 3, 3, 2]),
    ],
)
def test_pad_extends_by_its_border(border, expected):
    x = np.array([1.0, 2.0, 3.0])
    for padding, found in {
        (3, 2): expected,
        (-1, 2): [2, 3, *expected[6:]],
        (3, -2): expected[:4],
    }.items():
        result = compute("pad", x, padding=[padding], border=border, value=9.0)
        assert result.tolist() == found


@pytest.mark.parametrize(
    ("padding", "constant", "edge"),
    [((-5, 4), [9, 9], [3, 3]), ((4, -5), [9, 9], [1, 1]), ((-3, 1), [9], [3])],
)
def test_pad_may_crop_more_than_there_is(padding, constant, edge):
    x = np.array([1.0, 2.0, 3.0])
    assert compute("pad", x, padding=[padding], value=9.0).tolist() == constant
    assert compute("pad", x, padding=[padding], border="replicate").tolist() == edge


@pytest.mark.parametrize("transpose", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_multiplies_matrices_of_a_batch(transpose, rng):
    a, b = rng.standard_normal((2, 1, 3, 4)), rng.standard_normal((1, 5, 4, 6))
    left = a.swapaxes(2, 3) if transpose[0] else a
    right = b.swapaxes(2, 3) if transpose[1] else b
    found = compute("matmul", left, right, transposeA=transpose[0], transposeB=transpose[1])
    np.testing.assert_allclose(found, a @ b)


def test_the_bias_of_linear_is_aligned_at_the_batch(rng):
    x, w = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 5, 4))
    b = rng.standard_normal((2, 3))
    expected = x @ w.swapaxes(1, 2) + b[:, :, None]
    np.testing.assert_allclose(compute("linear", x, w, b), expected)


ROIS = np.array([[0.0, 1.0, 6.0, 7.4], [1.6, 0.4, 5.0, 3.0], [-1.0, 2.0, 3.0, 9.0]])


@pytest.mark.parametrize(("op", "pool"), [("avg_roi_pool", np.mean), ("max_roi_pool", np.max)])
def test_roi_pool_divides_regions_into_cells(op, pool, rng):
    x = rng.standard_normal((2, 3, 6, 8))
    images = np.array([[1], [0], [1]])
    found = compute(op, x, ROIS, images, output_size=[2, 3])
    assert found.shape == (3, 3, 2, 3)
    for n, c, i, j in np.ndindex(*found.shape):
        y0, x0, y1, x1 = (math.floor(v + 0.5) for v in ROIS[n])
        top, left = y0 + i * ((y1 - y0) // 2), x0 + j * ((x1 - x0) // 3)
        bottom, right = top + math.ceil((y1 - y0) / 2), left + math.ceil((x1 - x0) / 3)
        cell = x[images[n, 0], c, max(top, 0) : bottom, max(left, 0) : right]
        assert found[n, c, i, j] == pytest.approx(pool(cell))


def test_a_region_beside_the_map_is_zero():
    found = compute(
        "max_roi_pool", np.ones((1, 1, 4)), np.array([[6.0, 9.0]]), np.array([[0]]), output_size=[2]
    )
    assert found.tolist() == [[[0.0, 0.0]]]


def bilinear(image, row, column):
    row, column = (min(max(v, 0), n - 1) for v, n in zip((row, column), image.shape, strict=True))
    total = 0.0
    for i, j in np.ndindex(*image.shape):
        total += max(1 - abs(row - i), 0) * max(1 - abs(column - j), 0) * image[i, j]
    return total


PLACES = {
    "asymmetric": lambda i, begin, end, n: begin + i * (end - begin) / n,
    "symmetric": lambda i, begin, end, n: begin + (i + 0.5) * (end - begin) / n - 0.5,
    "aligned": lambda i, begin, end, n: begin + i * (end - begin - 1) / (n - 1),
}


@pytest.mark.parametrize("method", PLACES)
def test_roi_resample_and_align_interpolate(method, rng):
    x = rng.standard_normal((2, 2, 6, 8))
    images = np.array([[1], [0], [1]])
    found = compute("roi_resample", x, ROIS, images, output_size=[4, 6], method=method)
    for n, c, i, j in np.ndindex(*found.shape):
        y0, x0, y1, x1 = ROIS[n]
        row, column = PLACES[method](i, y0, y1, 4), PLACES[method](j, x0, x1, 6)
        assert found[n, c, i, j] == pytest.approx(bilinear(x[images[n, 0], c], row, column))
    sizes = {"output_size": [2, 3], "sampling_rate": [2, 2], "resize_method": method}
    blocks = found.reshape(3, 2, 2, 2, 3, 2)
    for op, pool in (("avg_roi_align", np.mean), ("max_roi_align", np.max)):
        np.testing.assert_allclose(compute(op, x, ROIS, images, **sizes), pool(blocks, axis=(3, 5)))
