"""Steps of small language models: a token, its position, and caches of keys and values."""

import numpy as np

from nnef_hw.testing import GraphBuilder

__all__ = ["MASKS", "TURNS", "WRITES", "step"]

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


def _turned_pairs(g, x, heads, size, cos, sin):
    """Rotate neighbours, as llama2.c does."""
    x = g.reshape(x, [heads, size // 2, 2])
    parts = (
        g.op("slice", x, axes=[2], begin=[n], end=[n + 1], stride=[1], shape=[heads, size // 2, 1])
        for n in range(2)
    )
    a, b = (g.reshape(part, [heads, size // 2]) for part in parts)
    first = g.op("sub", g.op("mul", a, cos), g.op("mul", b, sin))
    second = g.op("add", g.op("mul", a, sin), g.op("mul", b, cos))
    return g.op("stack", first, second, axis=2, shape=[heads, size // 2, 2])


def _turned_halves(g, x, heads, size, cos, sin):
    """Rotate the halves of a head, as transformers does, with both halves of cos and sin."""
    x, half = g.reshape(x, [heads, size]), size // 2
    a, b = (
        g.op("slice", x, axes=[1], begin=[n], end=[n + half], stride=[1], shape=[heads, half])
        for n in (0, half)
    )
    turned = g.op("concat", g.op("neg", b), a, axis=1, shape=[heads, size])
    return g.op("add", g.op("mul", x, cos), g.op("mul", turned, sin))


WRITES = {"select": _by_select, "opposite": _by_opposite, "scatter": _by_scatter}
TURNS = {"pairs": _turned_pairs, "halves": _turned_halves}
MASKS = {"past": _select_past, "future": _select_future, "add": _add}


def step(
    rng,
    *,
    heads=2,
    size=4,
    groups=1,
    write="select",
    mask="past",
    tokens=11,
    leak=False,
    turn=None,
    tiled=False,
):
    """Return a step whose attention has ``heads`` of keys, each for ``groups`` of queries.

    Without a ``mask`` all places are read. If there is a ``leak``, the values are a result as well.
    Queries and keys may ``turn`` by their position (RoPE), and keys and values be ``tiled``, one
    copy for each query of a group.
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

    def turned(source, count):
        if turn is None:
            return source
        angles = np.arange(CONTEXT)[:, None] / 3.0 ** np.arange(size // 2)
        angles = np.tile(angles, (1, 2)) if turn == "halves" else angles
        rows = (
            g.op(
                "gather",
                g.constant(f"{name}_{source}", values, label=f"{name}_{source}"),
                position,
                axis=0,
            )
            for name, values in (("cos", np.cos(angles)), ("sin", np.sin(angles)))
        )
        return TURNS[turn](g, source, count, size, *rows)

    def grouped(x):
        if not tiled:
            return x
        one = g.reshape(x, [heads, 1, CONTEXT, size])
        several = g.op("tile", one, repeats=[1, groups, 1, 1], shape=[heads, groups, CONTEXT, size])
        return g.reshape(several, [heads * groups, CONTEXT, size])

    written = []
    for cache, name in zip(caches, ("k", "v"), strict=True):
        row = linear(x, features, heads * size, name)
        if name == "k" and turn is not None:
            row = g.reshape(turned(row, heads), [1, heads * size])
        written.append(WRITES[write](g, cache, row, position, places))
        g.update(cache, written[-1])
    query = turned(linear(x, features, features, "q"), heads * groups)
    query = g.reshape(query, [heads * groups, 1, size] if tiled else [heads, groups, size])
    keys, values = (
        grouped(g.op("transpose", g.reshape(x, [CONTEXT, heads, size]), axes=[1, 0, 2]))
        for x in written
    )
    scores = g.op("matmul", query, keys, transposeA=False, transposeB=True)
    if mask is not None:
        scores = MASKS[mask](g, scores, position, places)
    weights = g.op("softmax", scores, axes=[2])
    y = g.op("matmul", weights, values, transposeA=False, transposeB=False)
    y = g.op("add", g.reshape(y, [1, features]), x)
    scores = linear(y, features, tokens, "of_scores")
    if not leak:
        return g.build(scores)
    image = g.reshape(written[1], [1, CONTEXT, heads * size])
    return g.build(scores, g.op("max", image, np.asarray(0.25), name="leaked"))
