"""Resizing."""

import pytest
from simplified import canonical_ops

from nnef_hw.testing import GraphBuilder


def resized(size, coordinates, interpolation, rounding="round_prefer_floor"):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 4, 6])
    scale = [after / before for before, after in zip((1, 2, 4, 6), size, strict=True)]
    g.op(
        "resize", x, size=size, scale=scale, coordinates=coordinates, interpolation=interpolation,
        rounding=rounding, cubic_coefficient=-0.75, exclude_outside=False, antialias=False,
        shape=size,
    )  # fmt: skip
    return g.build()


@pytest.mark.parametrize(
    ("how", "op"),
    [
        (("asymmetric", "nearest", "floor"), "nearest_upsample"),
        (("half_pixel", "nearest"), "nearest_upsample"),
        (("half_pixel", "linear"), "depth_to_space"),
        (("asymmetric", "linear"), "depth_to_space"),
        (("align_corners", "linear"), "transpose"),
    ],
)
def test_resizing_by_whole_factors(how, op, rng):
    assert op in canonical_ops(resized([1, 2, 8, 18], *how), rng)


def test_resizing_to_less(rng):
    ops = canonical_ops(resized([1, 2, 2, 2], "asymmetric", "nearest", "floor"), rng)
    assert ops == ["max_pool"]


@pytest.mark.parametrize(
    ("size", "how", "op"),
    [
        ([1, 2, 8, 18], ("half_pixel", "cubic"), "conv"),
        ([1, 2, 3, 4], ("align_corners", "linear"), "conv"),
        ([1, 2, 6, 12], ("asymmetric", "nearest"), "concat"),
        ([1, 2, 3, 5], ("half_pixel", "nearest"), "concat"),
    ],
)
def test_other_factors(size, how, op, rng):
    assert op in canonical_ops(resized(size, *how), rng)


@pytest.mark.parametrize(
    ("size", "how"),
    [
        ([1, 4, 4, 6], ("asymmetric", "nearest")),
        ([1, 3, 4, 9], ("half_pixel", "linear")),
        ([1, 4, 8, 12], ("half_pixel", "nearest")),
    ],
)
def test_channels(size, how, rng):
    assert "resize" not in canonical_ops(resized(size, *how), rng)
