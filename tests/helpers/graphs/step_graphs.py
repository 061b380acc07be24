"""Steps of small language models: a token, its position, and caches of keys and values."""

import numpy as np

from nnef_hw.testing import GraphBuilder

__all__ = ["MASKS", "WRITES", "step"]

CONTEXT = 8


def _unsqueezed(g, name, axes, shape):
    return g.op("unsqueeze", name, axes=axes, shape=shape)


def _by_select(g, cache, row, position, places):
    here = _unsqueezed(g, g.op("eq", places, position), [1], [CONTEXT, 1])
    return g.op("select", here, row, cache)


def _by_opposite(g, cache, row, position, places):
    elsewhere = _unsqueezed(g, g.op("ne", places, position), [1], [CONTEXT, 1])
    return g.op("select", elsewhere, cache, row)


def _by_scatter(g, cache, row, position, places):
    index = _unsqueezed(g, position, [1], [1, 1])
    return g.op("scatter_nd", cache, index, row, reduction="none")


def _select_past(g, scores, position, places):
    past = _unsqueezed(g, g.op("le", places, position), [0, 1], [1, 1, CONTEXT])
    return g.op("select", past, scores, np.asarray(-np.inf))


def _select_future(g, scores, position, places):
    future = _unsqueezed(g, g.op("gt", places, position), [0, 1], [1, 1, CONTEXT])
    return g.op("select", future, np.asarray(-1e9), scores)


def _add(g, scores, position, places):
    mask = g.op("select", g.op("gt", places, position), np.asarray(-1e9), np.asarray(0.0))
    return g.op("add", scores, _unsqueezed(g, mask, [0, 1], [1, 1, CONTEXT]))


WRITES = {"select": _by_select, "opposite": _by_opposite, "scatter": _by_scatter}
MASKS = {"past": _select_past, "future": _select_future, "add": _add}


def step(rng, *, heads=2, size=4, groups=1, write="select", mask="past", tokens=11, leak=False):
    """Return a step whose attention has ``heads`` of keys, each for ``groups`` of queries.

    If there is a ``leak``, the values are a result as well.
    """
    g = GraphBuilder("step")
    features = heads * size * groups
    token, position = (g.input(name, [1], "integer") for name in ("token", "position"))
    caches = [g.state(name, np.zeros((CONTEXT, heads * size))) for name in ("keys", "values")]
    places = g.constant("places", np.arange(CONTEXT), dtype="integer")

    def table(name, rows):
        return g.constant(name, rng.normal(size=(rows, features)), label=name)

    x = g.op(
        "add",
        g.op("gather", table("of_token", tokens), token, axis=0),
        g.op("gather", table("of_place", CONTEXT), position, axis=0),
    )

    def linear(source, inner, outer, name):
        weights = g.constant(name, rng.normal(size=(outer, inner)) / inner**0.5, label=name)
        return g.op("linear", source, weights, np.asarray(0.0), name=f"{name}_y")

    written = []
    for cache, name in zip(caches, ("k", "v"), strict=True):
        row = linear(x, features, heads * size, name)
        written.append(WRITES[write](g, cache, row, position, places))
        g.update(cache, written[-1])
    query = g.reshape(linear(x, features, features, "q"), [heads, groups, size])
    keys, values = (
        g.op("transpose", g.reshape(x, [CONTEXT, heads, size]), axes=[1, 0, 2]) for x in written
    )
    scores = g.op("matmul", query, keys, transposeA=False, transposeB=True)
    weights = g.op("softmax", MASKS[mask](g, scores, position, places), axes=[2])
    y = g.op("matmul", weights, values, transposeA=False, transposeB=False)
    y = g.op("add", g.reshape(y, [1, features]), x)
    scores = linear(y, features, tokens, "of_scores")
    if not leak:
        return g.build(scores)
    image = g.reshape(written[1], [1, CONTEXT, heads * size])
    return g.build(scores, g.op("max", image, np.asarray(0.25), name="leaked"))
