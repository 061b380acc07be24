"""Vision transformers of random weights, in the form of timm's and torchvision's exports."""

from nnef_hw.testing import GraphBuilder

DEIT_TINY = {
    "side": 224, "patch": 16, "features": 192, "heads": 3, "layers": 12, "classes": 1000,
}  # fmt: skip
"""Sizes of DeiT-Tiny: 5.7 million parameters."""


def vision_transformer(rng, *, side, patch, features, heads, layers, classes):
    """Return a network of patches, a class token, encoder layers with norms first, and a head."""
    g = GraphBuilder("vit")
    patches = (side // patch) ** 2
    tokens, size = patches + 1, features // heads

    def parameter(name, *shape, scale=1.0):
        return g.constant(name, rng.normal(size=shape) * scale, label=name)

    def linear(name, x, inputs, outputs):
        weights = parameter(f"{name}_w", 1, inputs, outputs, scale=inputs**-0.5)
        y = g.op("matmul", x, weights, transposeA=False, transposeB=False)
        return g.op("add", y, parameter(f"{name}_b", 1, 1, outputs, scale=0.1))

    def norm(name, x):
        gamma, beta = (parameter(f"{name}_{part}", 1, 1, features) for part in ("gamma", "beta"))
        return g.op("normalize", x, gamma, beta, axes=[2], epsilon=1e-6, centered=True)

    def attend(name, x):
        y = linear(f"{name}_qkv", x, features, 3 * features)
        y = g.op("transpose", g.reshape(y, [1, tokens, 3, heads, size]), axes=[2, 0, 3, 1, 4])
        query, key, value = (
            g.reshape(g.op("slice", y, axes=[0], begin=[n], end=[n + 1], stride=[1]),
                      [1, heads, tokens, size])
            for n in range(3)
        )  # fmt: skip
        scores = g.op("matmul", query, key, transposeA=False, transposeB=True)
        shares = g.op("softmax", g.op("mul", scores, size**-0.5), axes=[3])
        y = g.op("matmul", shares, value, transposeA=False, transposeB=False)
        y = g.reshape(g.op("transpose", y, axes=[0, 2, 1, 3]), [1, tokens, features])
        return linear(f"{name}_proj", y, features, features)

    def feed(name, x):
        y = linear(f"{name}_fc1", x, features, 4 * features)
        half = g.op("mul", y, 0.5)
        y = g.op("mul", half, g.op("add", g.op("erf", g.op("mul", y, 2**-0.5)), 1.0))
        return linear(f"{name}_fc2", y, 4 * features, features)

    x = g.input("image", [1, 3, side, side])
    filters = rng.normal(size=(features, 3, patch, patch)) * (3 * patch * patch) ** -0.5
    x = g.reshape(g.conv(x, filters, stride=patch), [1, features, patches])
    x = g.op("transpose", x, axes=[0, 2, 1])
    x = g.op("concat", parameter("token", 1, 1, features), x, axis=1)
    x = g.op("add", x, parameter("places", 1, tokens, features))
    for n in range(layers):
        x = g.op("add", x, attend(f"l{n}", norm(f"l{n}_norm1", x)))
        x = g.op("add", x, feed(f"l{n}", norm(f"l{n}_norm2", x)))
    x = g.op("slice", norm("norm", x), axes=[1], begin=[0], end=[1], stride=[1])
    return g.build(g.reshape(linear("head", x, features, classes), [1, classes]))
