"""Small networks with products of two activations: attention, and matmul in every form."""

from itertools import count

import numpy as np

from nnef_hw.testing import GraphBuilder

__all__ = ["attention", "product", "random_attention", "random_encoder", "random_product"]


def product(first, second, *, transposes=(False, False), name="net"):
    """Return the product of two inputs."""
    g = GraphBuilder(name)
    turned = dict(zip(("transposeA", "transposeB"), transposes, strict=True))
    return g.build(g.op("matmul", g.input("a", first), g.input("b", second), **turned))


def attention(rng, tokens, features, heads, *, mask=False, sources=None, name="attention"):
    """Return self-attention of layers' results, or of ``sources`` other tokens."""
    g = GraphBuilder(name)
    x = g.input("x", [1, tokens, features])
    other = g.input("z", [1, sources, features]) if sources else x
    size = features // heads

    def project(source, count):
        weights = g.constant(f"w{source}{count}", rng.normal(size=(1, features, features)) / 3,
                             label=f"w{source}{count}")  # fmt: skip
        y = g.op("matmul", source, weights, transposeA=False, transposeB=False)
        length = sources if sources and source == other else tokens
        y = g.reshape(y, [1, length, heads, size])
        return g.op("transpose", y, axes=[0, 2, 1, 3])

    query, key, value = project(x, 0), project(other, 1), project(other, 2)
    scores = g.op("matmul", query, key, transposeA=False, transposeB=True)
    scores = g.op("mul", scores, size**-0.5)
    if mask:
        allowed = rng.random((1, 1, tokens, sources or tokens)) < 0.7
        allowed[..., 0] = True
        scores = g.op("add", scores, g.constant("mask", (allowed - 1.0) * 50.0))
    weights = g.op("softmax", scores, axes=[3])
    y = g.op("matmul", weights, value, transposeA=False, transposeB=False)
    y = g.op("transpose", y, axes=[0, 2, 1, 3])
    return g.build(g.reshape(y, [1, tokens, features]))


def random_product(rng):
    """Return a product of two inputs of random shapes, of up to two leading axes."""
    rows, inner, columns = rng.integers(1, 7, 3).tolist()
    shapes = [[1], [1]]
    for _ in range(rng.integers(0, 3)):
        extent = int(rng.integers(2, 4))
        kind = rng.choice(["both", "first", "second"])
        shapes[0].append(1 if kind == "second" else extent)
        shapes[1].append(1 if kind == "first" else extent)
    transposes = tuple(bool(turned) for turned in rng.integers(0, 2, 2))
    ends = [(rows, inner), (inner, columns)]
    for shape, end, turned in zip(shapes, ends, transposes, strict=True):
        shape += end[::-1] if turned else end
    return product(*shapes, transposes=transposes)


def random_attention(rng):
    """Return attention of random sizes, of tokens to themselves or to others."""
    heads, size = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    return attention(
        rng, int(rng.integers(1, 8)), heads * size, heads, mask=bool(rng.integers(2)),
        sources=int(rng.choice([0, 2, 5])) or None,
    )  # fmt: skip


class _Encoder:
    """Layers of a transformer in the making, of random forms."""

    def __init__(self, rng):
        self.rng, self.g, self.numbers = rng, GraphBuilder("encoder"), count()
        self.groups = int(rng.integers(1, 4))
        self.heads = self.groups * int(rng.integers(1, 3))
        self.size = int(rng.integers(1, 5))
        self.features = self.heads * self.size

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def parameter(self, *shape, scale=1.0):
        name = f"p{next(self.numbers)}"
        return self.g.constant(name, self.rng.normal(size=shape) * scale, label=name)

    def linear(self, x, inputs, outputs):
        weights = self.parameter(1, inputs, outputs, scale=inputs**-0.5)
        y = self.g.op("matmul", x, weights, transposeA=False, transposeB=False)
        return self.g.op("add", y, self.parameter(1, 1, outputs, scale=0.2))

    def norm(self, x):
        """A layer or an RMS normalization, as one operator or written out."""
        g, centered, eps = self.g, self.pick(True, False), self.pick(1e-5, 1e-2)
        gamma, beta = (self.parameter(1, 1, self.features) for _ in range(2))
        if self.pick(True, False):
            return g.op("normalize", x, gamma, beta, axes=[2], epsilon=eps, centered=centered)
        if centered:
            x = g.op("sub", x, g.op("mean_reduce", x, axes=[2]))
        square = self.pick(("sqr", x), ("mul", x, x), ("pow", x, 2.0))
        variance = g.op("add", g.op("mean_reduce", g.op(*square), axes=[2]), eps)
        if self.pick(True, False):
            y = g.op("mul", x, g.op("rsqrt", variance))
        else:
            y = g.op("div", x, g.op("sqrt", variance))
        return g.op("add", g.op("mul", y, gamma), beta)

    def split(self, x, tokens, heads):
        x = self.g.reshape(x, [1, tokens, heads, self.size])
        return self.g.op("transpose", x, axes=[0, 2, 1, 3])

    def repeat(self, x, tokens):
        """Keys or values for each head of a group of queries."""
        times = self.heads // self.groups
        if times == 1:
            return x
        x = self.g.reshape(x, [1, self.groups, 1, tokens, self.size])
        x = self.g.op("tile", x, repeats=[1, 1, times, 1, 1])
        return self.g.reshape(x, [1, self.heads, tokens, self.size])

    def mask(self, tokens, sources):
        """None, of random places, causal, or a bias by distance that differs by head."""
        kind = self.pick(None, "random", "causal", "distance")
        rows, columns = np.indices((tokens, sources))
        if kind == "random":
            hidden = self.rng.random((1, self.pick(1, self.heads), tokens, sources)) < 0.3
            hidden[..., 0] = False
            return np.where(hidden, self.pick(-50.0, -1e9, -np.inf), 0.0)
        if kind == "causal":
            return np.where(columns > rows, self.pick(-1e9, -np.inf), 0.0)[None, None]
        if kind == "distance":
            slopes = 2.0 ** -np.arange(1, self.heads + 1).reshape(1, -1, 1, 1)
            return -slopes * abs(rows - columns)
        return None

    def attend(self, x, tokens, other, sources):
        g, narrow = self.g, self.groups * self.size
        query = self.split(self.linear(x, self.features, self.features), tokens, self.heads)
        key, value = (
            self.repeat(self.split(self.linear(other, self.features, narrow), sources,
                                   self.groups), sources)
            for _ in range(2)
        )  # fmt: skip
        scaled = self.pick(True, False)
        if scaled:
            query = g.op("mul", query, self.size**-0.5)
        scores = g.op("matmul", query, key, transposeA=False, transposeB=True)
        if not scaled:
            scores = g.op("div", scores, self.size**0.5)
        mask = self.mask(tokens, sources)
        if mask is not None:
            scores = g.op("add", scores, g.constant(f"mask{next(self.numbers)}", mask))
        y = g.op("softmax", scores, axes=[3])
        y = g.op("matmul", y, value, transposeA=False, transposeB=False)
        y = g.op("transpose", y, axes=[0, 2, 1, 3])
        y = g.reshape(y, [1, tokens, self.features])
        return self.linear(y, self.features, self.features)

    def feed(self, x):
        g, wide = self.g, int(self.rng.integers(1, 4)) * self.features
        kind = self.pick("relu", "gelu", "tanh", "silu", "gated")
        y = self.linear(x, self.features, wide)
        if kind == "gelu":
            y = g.op("mul", g.op("mul", y, 0.5),
                     g.op("add", g.op("erf", g.op("mul", y, 2**-0.5)), 1.0))  # fmt: skip
        elif kind in {"silu", "gated"}:
            y = g.op("mul", y, g.op("sigmoid", y))
        else:
            y = g.op(kind, y)
        if kind == "gated":
            y = g.op("mul", y, self.linear(x, self.features, wide))
        return self.linear(y, wide, self.features)

    def beside(self, x, function):
        """Add the result of a function to its operand, with a norm before, behind, or none."""
        where = self.pick("before", "behind", "none")
        y = function(self.norm(x) if where == "before" else x)
        y = self.g.op("add", x, y)
        return self.norm(y) if where == "behind" else y


def random_encoder(rng):
    """Return layers of an encoder or a decoder: any heads, groups, masks, norms, and functions."""
    e = _Encoder(rng)
    g, tokens = e.g, int(rng.integers(2, 7))
    x = g.input("x", [1, tokens, e.features])
    other, sources = None, tokens
    if e.pick(True, False):
        sources = int(rng.integers(2, 7))
        other = g.input("z", [1, sources, e.features])
    if e.pick(True, False):
        x = g.op("add", x, e.parameter(1, tokens, e.features))
    if other is None or e.pick(True, False, False):
        x = e.beside(x, lambda y: e.attend(y, tokens, y, tokens))
    if other is not None:
        x = e.beside(x, lambda y: e.attend(y, tokens, other, sources))
    if e.pick(True, False):
        x = e.beside(x, e.feed)
    end = e.pick("tokens", "mean", "first")
    if end == "mean":
        x = g.op("mean_reduce", x, axes=[1])
    elif end == "first":
        x = g.op("slice", x, axes=[1], begin=[0], end=[1], stride=[1])
    return g.build(x)
