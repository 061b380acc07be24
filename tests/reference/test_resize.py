"""resize, element by element as the definition of ONNX's Resize has it."""

import math

import numpy as np
import pytest
from operators import compute

COORDINATES = {
    "half_pixel": lambda i, n, m, s: (i + 0.5) / s - 0.5,
    "asymmetric": lambda i, n, m, s: i / s,
    "align_corners": lambda i, n, m, s: 0 if m == 1 else i * (n - 1) / (m - 1),
    "pytorch_half_pixel": lambda i, n, m, s: (i + 0.5) / s - 0.5 if m > 1 else 0,
    "half_pixel_symmetric": lambda i, n, m, s: n / 2 * (1 - m / (n * s)) + (i + 0.5) / s - 0.5,
    "tf_half_pixel_for_nn": lambda i, n, m, s: (i + 0.5) / s,
}
ROUNDINGS = {
    "round_prefer_floor": lambda x: math.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: math.floor(x + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}
SIZES = [(5, 10), (4, 7), (7, 3), (6, 1), (1, 4)]


def kernel(kind, t, a):
    t = abs(t)
    if kind == "linear":
        return max(1 - t, 0)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0


def interpolate(line, place, kind, a=-0.75, stretch=1.0, exclude=False):
    """Weighted mean around one place; beyond the ends stand the outermost elements."""
    taps = range(math.floor(place - 3 * stretch) - 1, math.ceil(place + 3 * stretch) + 2)
    weights = {k: kernel(kind, (k - place) / stretch, a) for k in taps}
    if exclude:
        weights = {k: w for k, w in weights.items() if 0 <= k < len(line)}
    total = sum(weights.values()) if exclude or stretch > 1 else 1
    return sum(w * line[min(max(k, 0), len(line) - 1)] for k, w in weights.items()) / total


def resized(x, size, **attrs):
    return compute("resize", x, size=[size], scale=[size / len(x)], **attrs)


@pytest.mark.parametrize(("extent", "size"), SIZES, ids=str)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nearest_takes_the_element_that_rounding_names(extent, size, coordinates, rounding):
    x = np.arange(float(extent))
    found = resized(x, size, coordinates=coordinates, rounding=rounding)
    for i in range(size):
        place = COORDINATES[coordinates](i, extent, size, size / extent)
        assert found[i] == min(max(ROUNDINGS[rounding](place), 0), extent - 1)


@pytest.mark.parametrize(("extent", "size"), SIZES, ids=str)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("kind", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
def test_interpolation_is_the_mean_its_kernel_weighs(
    extent, size, coordinates, kind, exclude, antialias, rng
):
    x = rng.standard_normal(extent)
    found = resized(
        x,
        size,
        coordinates=coordinates,
        interpolation=kind,
        exclude_outside=exclude,
        antialias=antialias,
        cubic_coefficient=-0.5,
    )
    stretch = max(extent / size, 1.0) if antialias else 1.0
    for i in range(size):
        place = COORDINATES[coordinates](i, extent, size, size / extent)
        if exclude and not 0 <= place <= extent - 1:
            continue
        expected = interpolate(x, place, kind, -0.5, stretch, exclude)
        assert found[i] == pytest.approx(expected, abs=1e-9)


def test_axes_are_resized_one_after_the_other(rng):
    x = rng.standard_normal((2, 3, 4, 5))
    scale = [1.0, 1.0, 1.75, 0.6]
    found = compute("resize", x, size=[2, 3, 7, 3], scale=scale, interpolation="linear")
    rows = np.apply_along_axis(resized, 2, x, 7, interpolation="linear")
    expected = np.apply_along_axis(resized, 3, rows, 3, interpolation="linear")
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_scale_that_is_no_quotient_of_extents_places_the_elements():
    """ONNX's own example: 2.4 columns of 4 make 2, whose second stands at 2.142857."""
    x = np.array([1.0, 2.0, 3.0, 4.0])
    found = compute(
        "resize", x, size=[2], scale=[0.6], coordinates="align_corners", interpolation="linear"
    )
    np.testing.assert_allclose(found, [1.0, 3.142857], rtol=1e-6)
