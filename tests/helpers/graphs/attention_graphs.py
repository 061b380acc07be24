"""Small networks with products of two activations: attention, and matmul in every form."""

from nnef_hw.testing import GraphBuilder

__all__ = ["attention", "product", "random_attention", "random_product"]


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
