"""Any attributes give an error of the model, or a result of the inferred shape."""

import numpy as np
import pytest
from operators import compute

from nnef_hw.errors import NnefHwError

CASES = 150
BORDERS = ["constant", "replicate", "reflect", "reflect-even", "ignore", "odd"]


class Draw:
    """Random attributes, most of them fitting."""

    def __init__(self, rng):
        self.rng = rng

    def __call__(self, *options):
        return options[self.rng.integers(len(options))]

    def integers(self, count, low, high):
        count += self(0, 0, 0, 0, 0, 0, 0, -1, 1)
        return [int(value) for value in self.rng.integers(low, high, max(count, 0))]

    def shape(self, rank, high=6):
        return tuple(self.integers(rank, 1, high))

    def window(self, rank):
        pairs = zip(self.integers(rank, -2, 4), self.integers(rank, -2, 4), strict=False)
        return {
            "border": self(*BORDERS),
            "padding": self([], list(pairs)),
            "stride": self([], self.integers(rank, 1, 4)),
            "dilation": self([], self.integers(rank, 1, 3)),
        }


def array(draw, shape):
    return draw.rng.standard_normal(shape)


def _conv(draw, *, reverse=False):
    rank, groups = draw(1, 2), draw(0, 1, 2)
    x = array(draw, (draw(1, 2), 4, *draw.shape(rank)))
    channels = draw(4, 2) if reverse else 4 // (groups or 4)
    kernel = array(draw, (4, draw(channels, 1), *draw.shape(rank, 4)))
    attrs = {**draw.window(rank), "groups": groups}
    if reverse and draw(True, False):
        attrs["output_shape"] = [len(x), draw(4, 2), *draw.integers(rank, 1, 12)]
    return [x, kernel, np.array(0.5)], attrs


def _pool(draw, *, reverse=False):
    rank = draw(0, 1, 2, 3)
    attrs = {**draw.window(rank), "size": draw.integers(rank, 1, 4)}
    if reverse and draw(True, False):
        attrs["output_shape"] = draw.integers(rank, 1, 12)
    return [array(draw, draw.shape(rank))], attrs


def _slice(draw):
    x = array(draw, draw.shape(3))
    count = draw(0, 1, 2)
    bounds = {name: draw.integers(count, -7, 8) for name in ("begin", "end")}
    return [x], {
        **bounds,
        "axes": draw.integers(count, 0, 3),
        "stride": draw.integers(count, -3, 4),
    }


def _pad(draw):
    x = array(draw, draw.shape(2))
    pairs = list(zip(draw.integers(2, -7, 8), draw.integers(2, -7, 8), strict=False))
    return [x], {"padding": pairs, "border": draw(*BORDERS), "value": 1.5}


def _reshape(draw):
    attrs = {"shape": draw.integers(2, -1, 5), "axis_start": draw(0, 1, -1, 4)}
    return [array(draw, draw.shape(3, 4))], {**attrs, "axis_count": draw(-1, 0, 1, 2, -2)}


def _resize(draw):
    size = draw.integers(2, 0, 7)
    x = array(draw, draw.shape(2))
    scale = [n / k for n, k in zip(size, x.shape, strict=False)]
    attrs = {"coordinates": draw("half_pixel", "align_corners", "half_pixel_symmetric")}
    attrs["interpolation"] = draw("nearest", "linear", "cubic")
    return [x], {**attrs, "size": size, "scale": scale, "antialias": draw(True, False)}


def _indexed(draw):
    x, index = array(draw, draw.shape(2)), draw.rng.integers(-4, 4, draw.shape(2))
    return [x, index], {"axis": draw(0, 1, 2), "batch_dims": draw(0, 1, 2)}


def _scattered(draw):
    (x, index), attrs = _indexed(draw)
    del attrs["batch_dims"]
    updates = array(draw, draw(index.shape, (*index.shape[:-1], *x.shape[index.shape[-1] :])))
    return [x, index, updates], {**attrs, "reduction": draw("none", "add", "max")}


def _regions(draw):
    rank, count = draw(1, 2), draw(1, 3)
    rois = draw.rng.uniform(-3, 9, (count, 2 * rank))
    index = draw.rng.integers(0, 3, (count, 1))
    attrs = {"output_size": draw.integers(rank, 1, 4)}
    return [array(draw, (2, 2, *draw.shape(rank))), rois, index], attrs


def _reduced(draw):
    return [array(draw, draw.shape(3))], {"axes": draw.integers(draw(0, 1, 2), 0, 4)}


RECIPES = {
    "conv": _conv,
    "deconv": lambda draw: _conv(draw, reverse=True),
    **dict.fromkeys(("box", "max_pool", "argmax_pool"), _pool),
    "debox": lambda draw: _pool(draw, reverse=True),
    "slice": _slice,
    "pad": _pad,
    "reshape": _reshape,
    "resize": _resize,
    **dict.fromkeys(("gather", "gather_elements", "gather_nd"), _indexed),
    **dict.fromkeys(("scatter_elements", "scatter_nd"), _scattered),
    **dict.fromkeys(("max_roi_pool", "roi_resample"), _regions),
    **dict.fromkeys(("argmax_reduce_last", "moments", "squeeze", "unsqueeze"), _reduced),
}


@pytest.mark.parametrize("op", RECIPES)
def test_errors_are_of_the_model_and_results_have_their_shape(op, rng):
    computed = 0
    for _ in range(CASES):
        args, attrs = RECIPES[op](Draw(rng))
        try:
            compute(op, *args, **attrs)
            computed += 1
        except NnefHwError:
            continue
    assert 3 <= computed < CASES
