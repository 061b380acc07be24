"""Sliding windows, element by element as the specification defines them (section 4.3)."""

import itertools
import math

import numpy as np
import pytest
from operators import compute

BORDERS = ["constant", "replicate", "reflect", "reflect-even"]
IGNORE = [*BORDERS, "ignore"]
WINDOWS = {
    # size, padding, stride, dilation of every spatial axis
    "line": ([3], [(1, 2)], [1], [1]),
    "strided": ([3], [(2, 0)], [2], [1]),
    "dilated": ([2], [(1, 2)], [2], [2]),
    "cropped": ([2], [(-1, 1)], [1], [1]),
    "plane": ([2, 3], [(0, 1), (2, 1)], [2, 1], [1, 2]),
    "space": ([2, 1, 2], [(1, 0), (0, 0), (0, 1)], [1, 2, 1], [1, 1, 1]),
}
EXTENTS = [5, 6, 4]
window_cases = pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)


def value(x, place, border):
    """Element of the extended input; None where a border is ignored."""
    inside = []
    for i, n in zip(place, x.shape, strict=True):
        if 0 <= i < n:
            inside.append(i)
        elif border in {"constant", "ignore"}:
            return 0.0 if border == "constant" else None
        elif border == "replicate":
            inside.append(0 if i < 0 else n - 1)
        elif border == "reflect":
            inside.append(0 if n == 1 else -i if i < 0 else 2 * n - 2 - i)
        else:
            inside.append(-i - 1 if i < 0 else 2 * n - 1 - i)
    return x[tuple(inside)]


def taps(x, window, border, at):
    """Every tap of a window over ``x``: elements, in row-major order."""
    size, padding, stride, dilation = window
    for tap in np.ndindex(*size):
        place = [
            i * s + j * d - p
            for i, j, s, d, (p, _) in zip(at, tap, stride, dilation, padding, strict=True)
        ]
        yield value(x, place, border)


def reverse_taps(x, window, border, at):
    """Every tap that reaches a result of a reverse window: its number and the element."""
    size, padding, stride, dilation = window
    for number, tap in enumerate(np.ndindex(*size)):
        offsets = [
            i + p - j * d for i, j, d, (p, _) in zip(at, tap, dilation, padding, strict=True)
        ]
        if all(offset % s == 0 for offset, s in zip(offsets, stride, strict=True)):
            place = [offset // s for offset, s in zip(offsets, stride, strict=True)]
            yield number, value(x, place, border)


def full(window):
    """The same window with items for batch and channels."""
    ones = [[1, 1], [(0, 0)] * 2, [1, 1], [1, 1]]
    return [head + tail for head, tail in zip(ones, window, strict=True)]


def named(window):
    return dict(zip(("size", "padding", "stride", "dilation"), window, strict=True))


def spatial(window):
    attrs = named(window)
    del attrs["size"]
    return attrs


@window_cases
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("groups", [1, 2, 0])
def test_conv(window, border, groups, rng):
    size, rank = window[0], len(window[0])
    x = rng.standard_normal((2, 2, *EXTENTS[:rank]))
    kernel = rng.standard_normal((4, 2 // (groups or 2), *size))
    bias = rng.standard_normal((1, 4))
    found = compute("conv", x, kernel, bias, groups=groups, border=border, **spatial(window))
    per_group, depth = 4 // (groups or 2), kernel.shape[1]
    for b, k, *at in np.ndindex(*found.shape):
        expected = bias[0, k]
        for c in range(depth):
            image = x[b, k // per_group * depth + c]
            weights = kernel[k, c].reshape(-1)
            expected += sum(np.multiply(list(taps(image, window, border, at)), weights))
        assert found[(b, k, *at)] == pytest.approx(expected)


@window_cases
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("groups", [1, 2, 0])
def test_deconv(window, border, groups, rng):
    size, rank = window[0], len(window[0])
    x = rng.standard_normal((2, 4, *EXTENTS[:rank]))
    kernel = rng.standard_normal((4, 3 if groups else 1, *size))
    outputs = kernel.shape[1] * (groups or 4)
    bias = rng.standard_normal((1, outputs))
    found = compute("deconv", x, kernel, bias, groups=groups, border=border, **spatial(window))
    depth = 4 // (groups or 4)
    for b, k, *at in np.ndindex(*found.shape):
        expected = bias[0, k]
        group, column = divmod(k, kernel.shape[1])
        for c in range(group * depth, (group + 1) * depth):
            weights = kernel[c, column].reshape(-1)
            for tap, element in reverse_taps(x[b, c], window, border, at):
                expected += element * weights[tap]
        assert found[(b, k, *at)] == pytest.approx(expected)


def test_automatic_padding_of_a_convolution_keeps_the_extent(rng):
    x, kernel = rng.standard_normal((1, 3, 5, 5)), rng.standard_normal((3, 1, 3, 3))
    attrs = {"groups": 0, "stride": [], "dilation": []}
    found = compute("conv", x, kernel, np.array(0.0), padding=[], **attrs)
    expected = compute("conv", x, kernel, np.array(0.0), padding=[(1, 1), (1, 1)], **attrs)
    np.testing.assert_array_equal(found, expected)


def test_a_kernel_of_the_whole_image(rng):
    x, kernel = rng.standard_normal((2, 3, 5, 6)), rng.standard_normal((4, 3, 5, 6))
    found = compute("conv", x, kernel, np.array(0.0), padding=[(0, 0), (0, 0)])
    np.testing.assert_allclose(found[..., 0, 0], np.einsum("nchw,kchw->nk", x, kernel))


@pytest.mark.parametrize("rank", [4, 5])
def test_convolutions_of_many_dimensions(rank, rng):
    x, kernel = rng.standard_normal((1, 2, *[3] * rank)), rng.standard_normal((3, 2, *[2] * rank))
    padding = [(1, 0)] * rank
    found = compute("conv", x, kernel, np.array(0.0), padding=padding)
    padded = np.pad(x, [(0, 0), (0, 0), *padding])
    axes = tuple(range(2, 2 + rank))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2,) * rank, axes)
    contracted = (1, *range(2 + rank, 2 + 2 * rank))
    expected = np.tensordot(windows, kernel, (contracted, range(1, 2 + rank)))
    np.testing.assert_allclose(found, np.moveaxis(expected, -1, 1), atol=1e-12)
    probe = rng.standard_normal(found.shape)
    back = compute("deconv", probe, kernel, np.array(0.0), padding=padding)
    np.testing.assert_allclose((back * x).sum(), (probe * found).sum())


@pytest.mark.parametrize("extent", [9, 10])
def test_deconv_has_the_output_shape_it_is_given(extent, rng):
    x, kernel = rng.standard_normal((1, 2, 5)), rng.standard_normal((2, 3, 3))
    attrs = {"stride": [2], "output_shape": [1, 3, extent]}
    found = compute("deconv", x, kernel, np.array(0.0), padding=[(1, 1)], **attrs)
    automatic = compute("deconv", x, kernel, np.array(0.0), **attrs)
    before = max(4 * 2 + 3 - extent, 0) // 2
    for y, padding in ((found, 1), (automatic, before)):
        assert y.shape == (1, 3, extent)
        window = [3], [(padding, 0)], [2], [1]
        for k, i in np.ndindex(3, extent):
            expected = sum(
                element * kernel[c, k, tap]
                for c in range(2)
                for tap, element in reverse_taps(x[0, c], window, "constant", [i])
            )
            assert y[0, k, i] == pytest.approx(expected)


def test_depthwise_deconv_may_join_channels_of_a_multiplier(rng):
    """groups = 0 with an output shape: as many groups as output channels."""
    x, kernel = rng.standard_normal((1, 4, 3)), rng.standard_normal((4, 1, 2))
    attrs = {"padding": [(0, 0)], "output_shape": [1, 2, 4]}
    found = compute("deconv", x, kernel, np.array(0.0), groups=0, **attrs)
    expected = compute("deconv", x, kernel, np.array(0.0), groups=2, **attrs)
    np.testing.assert_array_equal(found, expected)


@window_cases
@pytest.mark.parametrize("border", IGNORE)
def test_pools(window, border, rng):
    window = full(window)
    x = rng.standard_normal((2, 2, *EXTENTS[: len(window[0]) - 2])) - 1
    attrs = {**named(window), "border": border}
    largest, index = compute("max_pool_with_index", x, **attrs)
    found = {op: compute(op, x, **attrs) for op in ("box", "avg_pool", "rms_pool")}
    np.testing.assert_array_equal(compute("max_pool", x, **attrs), largest)
    np.testing.assert_array_equal(compute("argmax_pool", x, **attrs), index)
    np.testing.assert_array_equal(compute("box", x, normalize=True, **attrs), found["avg_pool"])
    for at in np.ndindex(*largest.shape):
        elements = list(taps(x, window, border, at))
        inside = [element for element in elements if element is not None]
        assert largest[at] == max(inside)
        assert index[at] == elements.index(max(inside))
        assert found["box"][at] == pytest.approx(sum(inside))
        assert found["avg_pool"][at] == pytest.approx(sum(inside) / len(inside))
        squares = sum(element**2 for element in inside)
        assert found["rms_pool"][at] == pytest.approx(math.sqrt(squares / len(inside)))


def test_pools_reach_over_batch_and_channels(rng):
    x = rng.standard_normal((3, 4, 2))
    attrs = {"size": [2, 3, 1], "stride": [1, 1, 1], "padding": [(0, 1), (0, 0), (0, 0)]}
    found = compute("max_pool", x, border="ignore", **attrs)
    for b, c, i in np.ndindex(*found.shape):
        assert found[b, c, i] == x[b : b + 2, c : c + 3, i].max()


def test_pools_of_integers_stay_integers():
    x = np.array([[[-5, -7, -2]]])
    found = compute(
        "max_pool", x, size=[1, 1, 2], border="ignore", padding=[(0, 0), (0, 0), (1, 0)]
    )
    assert found.tolist() == [[[-5, -5, -2]]]
    assert found.dtype == np.int64


@window_cases
@pytest.mark.parametrize("border", BORDERS)
def test_sample_fetches_what_argmax_pool_found(window, border, rng):
    window = full(window)
    x = rng.standard_normal((2, 2, *EXTENTS[: len(window[0]) - 2]))
    attrs = {**named(window), "border": border}
    shape = compute("box", x, **attrs).shape
    index = rng.integers(0, math.prod(window[0]), shape)
    found = compute("sample", x, index, **attrs)
    for at in np.ndindex(*shape):
        assert found[at] == list(taps(x, window, border, at))[index[at]]


@window_cases
def test_desample_puts_elements_back(window, rng):
    window = full(window)
    x = rng.standard_normal((2, 2, *EXTENTS[: len(window[0]) - 2]))
    index = rng.integers(0, math.prod(window[0]), x.shape)
    found = compute("desample", x, index, **named(window))
    numbers = index.astype(float)
    for at in np.ndindex(*found.shape):
        hits = zip(
            reverse_taps(x, window, "ignore", at),
            reverse_taps(numbers, window, "ignore", at),
            strict=True,
        )
        expected = sum(e for (tap, e), (_, n) in hits if e is not None and tap == n)
        assert found[at] == pytest.approx(expected)


@window_cases
@pytest.mark.parametrize("border", IGNORE)
def test_debox(window, border, rng):
    window = full(window)
    x = rng.standard_normal((2, 2, *EXTENTS[: len(window[0]) - 2]))
    attrs = {**named(window), "border": border}
    found, normalized = (compute("debox", x, normalize=flag, **attrs) for flag in (False, True))
    volume = math.prod(window[0])
    for at in np.ndindex(*found.shape):
        elements = [element for _, element in reverse_taps(x, window, border, at)]
        ignored = elements.count(None)
        total = sum(element for element in elements if element is not None)
        assert found[at] == pytest.approx(total)
        if ignored < volume:
            assert normalized[at] == pytest.approx(total / (volume - ignored))


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("groups", [1, 2])
def test_separable_convolutions_are_two_convolutions(border, groups, rng):
    x = rng.standard_normal((2, 4, 5, 6))
    plane, point = rng.standard_normal((8, 1, 2, 3)), rng.standard_normal((6, 8 // groups, 1, 1))
    bias, window = rng.standard_normal((1, 6)), {"stride": [2, 1], "padding": [(1, 1), (0, 2)]}
    attrs = {**window, "border": border, "dilation": [1, 2]}
    found = compute("separable_conv", x, plane, point, bias, groups=groups, **attrs)
    filtered = compute("conv", x, plane, np.array(0.0), groups=0, **attrs)
    np.testing.assert_allclose(found, compute("conv", filtered, point, bias, groups=groups))


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize(("groups", "outputs"), [(1, 6), (2, 6), (2, 3)])
def test_separable_deconvolutions_are_two_deconvolutions(border, groups, outputs, rng):
    x = rng.standard_normal((2, 4, 5, 6))
    plane, point = rng.standard_normal((6, 1, 2, 3)), rng.standard_normal((4, 6 // groups, 1, 1))
    bias, shape = rng.standard_normal((1, outputs)), [2, outputs, 10, 6]
    attrs = {"border": border, "stride": [2, 1], "output_shape": shape}
    found = compute("separable_deconv", x, plane, point, bias, groups=groups, **attrs)
    filtered = compute("deconv", x, point, np.array(0.0), groups=groups)
    np.testing.assert_allclose(found, compute("deconv", filtered, plane, bias, groups=0, **attrs))


METHODS = {
    "asymmetric": lambda i, f, x: i / f,
    "symmetric": lambda i, f, x: (i - (f - 1) / 2) / f,
    "aligned": lambda i, f, x: i * (x - 1) / (x * f - 1) if x > 1 else 0.0,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize(("extent", "factor"), [(4, 2), (3, 3), (2, 5), (1, 4), (5, 1)])
def test_multilinear_upsample_weighs_two_neighbours(method, border, extent, factor, rng):
    x = rng.standard_normal((1, 2, extent))
    found = compute("multilinear_upsample", x, factor=[factor], method=method, border=border)
    for c, i in np.ndindex(2, extent * factor):
        place = METHODS[method](i, factor, extent)
        left = math.floor(place)
        low, high = (value(x[0, c], [left + step], border) for step in (0, 1))
        expected = low + (place - left) * (high - low)
        assert found[0, c, i] == pytest.approx(expected, abs=1e-12)


def test_multilinear_upsample_interpolates_every_axis(rng):
    x = rng.standard_normal((1, 1, 3, 4))
    found = compute("multilinear_upsample", x, factor=[2, 3])
    rows = compute("multilinear_upsample", x, factor=[2, 1])
    np.testing.assert_allclose(found, compute("multilinear_upsample", rows, factor=[1, 3]))


def test_resampling_by_whole_factors(rng):
    x = rng.standard_normal((2, 3, 4, 6))
    np.testing.assert_array_equal(
        compute("nearest_downsample", x, factor=[2, 3]), x[:, :, ::2, ::3]
    )
    blocks = x.reshape(2, 3, 2, 2, 2, 3)
    np.testing.assert_allclose(
        compute("area_downsample", x, factor=[2, 3]), blocks.mean(axis=(3, 5))
    )
    up = compute("nearest_upsample", x, factor=[2, 3])
    np.testing.assert_array_equal(up, np.kron(x, np.ones((1, 1, 2, 3))))
    same = compute("debox", x, size=[1, 1, 2, 3], stride=[1, 1, 2, 3], padding=[(0, 0)] * 4)
    np.testing.assert_array_equal(up, same)


def test_local_normalization_is_what_the_standard_composes(rng):
    x = rng.standard_normal((1, 5, 4, 3))
    size = [1, 3, 2, 1]
    mean, squares = (compute("box", values, size=size, normalize=True) for values in (x, x * x))
    found = compute("local_response_normalization", x, size=size, alpha=0.2, beta=0.75, bias=2.0)
    np.testing.assert_allclose(found, x / (2.0 + 0.2 * squares) ** 0.75)
    np.testing.assert_allclose(compute("local_mean_normalization", x, size=size), x - mean)
    for bias, epsilon in itertools.product((0.0, 0.1), (0.0, 0.7)):
        scales = {"size": size, "bias": bias, "epsilon": epsilon}
        divisor = np.maximum(np.sqrt(squares) + bias, epsilon)
        np.testing.assert_allclose(
            compute("local_variance_normalization", x, **scales), x / divisor
        )
        np.testing.assert_allclose(
            compute("local_contrast_normalization", x, **scales),
            compute("local_variance_normalization", x - mean, **scales),
        )
