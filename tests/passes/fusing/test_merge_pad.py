"""Windows pad their own input."""

import numpy as np
from simplified import check


def test_pad_with_minus_infinity_is_a_border_that_max_pool_ignores(image, rng):
    spatial = [(0, 0), (0, 0), (1, 2), (0, 1)]
    p = image.op("pad", "x", padding=spatial, border="constant", value=-np.inf)
    graph = check(image.build(image.pool("max_pool", p, 3)), rng, ["max_pool"])
    assert graph.nodes[0].attrs["border"] == "ignore"
    assert graph.nodes[0].attrs["padding"] == spatial


def test_pad_merges_into_conv_and_pools(image, rng):
    spatial = [(0, 0), (0, 0), (1, 2), (0, 1)]
    p = image.op("pad", "x", padding=spatial, border="constant", value=0.0)
    a = image.conv(p, rng.standard_normal((4, 3, 3, 3)), padding=1)
    b = image.pool("max_pool", p, 3)
    c = image.pool("avg_pool", p, 3)
    graph = check(image.build(a, b, c), rng, ["conv", "max_pool", "avg_pool"])
    assert graph.nodes[0].attrs["padding"] == [(2, 3), (1, 2)]
    assert graph.nodes[1].attrs["padding"] == spatial
