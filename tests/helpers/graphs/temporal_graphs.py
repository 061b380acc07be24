"""Networks of windows in time, built by hand and at random: x [1, C, rows, W]."""

import numpy as np

from nnef_hw.testing import GraphBuilder


class Temporal:
    """A network in the making, of images whose rows are in time."""

    def __init__(self, name, rows, channels=3, width=1, seed=0):
        self.net = GraphBuilder(name)
        self.rng = np.random.default_rng(seed)
        self.net.input("x", (1, channels, rows, width))

    def shape(self, x):
        return self.net._tensors[x].shape

    def conv(self, x, channels, kernel=3, *, stride=1, dilation=1, padding=(0, 0), name=None,
             depthwise=False):  # fmt: skip
        """Windows of so many rows, and of 3 columns where there are some."""
        _, before, _, width = self.shape(x)
        columns, sides = (3, (1, 1)) if width > 1 else (1, (0, 0))
        channels, groups = (before, before) if depthwise else (channels, 1)
        shape = (channels, before // groups, kernel, columns)
        weights = self.rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)
        return self.net.op(
            "conv", x, weights, self.rng.normal(0, 0.3, (1, channels)), name=name,
            border="constant", padding=[padding, sides], stride=[stride, 1],
            dilation=[dilation, 1], groups=groups,
        )  # fmt: skip

    def pool(self, op, x, rows, stride, *, columns=1, padding=(0, 0), border="constant"):
        return self.net.op(
            op, x, size=[1, 1, rows, columns], border=border,
            padding=[(0, 0), (0, 0), padding, (0, 0)], stride=[1, 1, stride, columns],
            dilation=[1, 1, 1, 1],
        )  # fmt: skip

    def rows(self, x, begin, end):
        _, channels, _, width = self.shape(x)
        shape = (1, channels, end - begin, width)
        return self.net.op("slice", x, axes=[2], begin=[begin], end=[end], stride=[1], shape=shape)

    def crop(self, x, rows, place):
        """Leave so many rows, from that place on."""
        return self.rows(x, place, place + rows) if self.shape(x)[2] > rows else x


def causal(rows=16, seed=0):
    """A TCN as exporters write it: padded on the left, or on both sides and cropped, residual."""
    t = Temporal("causal", rows, seed=seed)
    y = t.net.op("relu", t.conv("x", 4, 3, padding=(2, 0)))
    both = t.conv(y, 4, 3, dilation=2, padding=(4, 4))
    y = t.net.op("relu", t.net.op("add", t.rows(both, 0, rows), y), name="block")
    t.conv(y, 2, 1, name="y")
    return t.net.build("y")


def classifier(rows=19, seed=0):
    """Strides, pools, and an average of all rows behind; no padding in time."""
    t = Temporal("classifier", rows, 2, 3, seed)
    y = t.pool("max_pool", t.net.op("tanh", t.conv("x", 4, 4)), 2, 2)
    y = t.net.op("relu", t.conv(y, 4, 3, depthwise=True))
    _, channels, left, width = t.shape(y)
    y = t.pool("avg_pool", y, left, left, columns=width)
    y = t.net.reshape(y, (1, channels))
    t.net.op("linear", y, t.rng.normal(size=(3, channels)), t.rng.normal(size=(1, 3)), name="y")
    return t.net.build("y")


def unlike_branches(rows=12, seed=0):
    """Branches of unlike reach side by side, in the middle of each other, and around both."""
    t = Temporal("unlike_branches", rows, seed=seed)
    wide, narrow = t.conv("x", 2, 5), t.conv("x", 3, 2)
    left = t.shape(wide)[2]
    y = t.net.op("concat", wide, t.crop(narrow, left, 2), axis=1, name="both")
    y = t.net.op("relu", t.conv(y, 3, 2))
    t.net.op("add", y, t.crop("x", t.shape(y)[2], 1), name="around")
    t.pool("avg_pool", "around", t.shape(y)[2], 1)
    return t.net.build()


def one_channel(rows=9, seed=0):
    """The same of images of one channel."""
    return flattened(rows, seed, channels=1)


def flattened(rows=9, seed=0, channels=4):
    """A linear layer over all rows, as at the end of small detectors."""
    t = Temporal("flattened", rows, seed=seed)
    y = t.net.op("relu", t.conv("x", channels, 3, stride=2))
    count = int(np.prod(t.shape(y)))
    y = t.net.reshape(y, (1, count))
    t.net.op("linear", y, t.rng.normal(size=(2, count)), t.rng.normal(size=(1, 2)), name="y")
    return t.net.build("y")


def whole(rows=6, seed=0):
    """A linear layer over all rows of the input."""
    t = Temporal("whole", rows, seed=seed)
    count = int(np.prod(t.shape("x")))
    y = t.net.reshape("x", (1, count))
    t.net.op("linear", y, t.rng.normal(size=(2, count)), t.rng.normal(size=(1, 2)), name="y")
    return t.net.build("y")


def padded(rows=12, seed=0):
    """Padding in time on both sides of every layer, and a mean: only with borders continued."""
    t = Temporal("padded", rows, 2, 2, seed)
    y = t.net.op("relu", t.conv("x", 3, 3, padding=(1, 1)))
    y = t.pool("avg_pool", y, 3, 2, padding=(1, 1), border="ignore")
    y = t.conv(y, 3, 3, padding=(1, 1))
    t.pool("avg_pool", y, t.shape(y)[2], 1, columns=2)
    return t.net.build()


def exported_tcn(path, rows=32, *, cropped=False, seed=0):
    """Write a residual TCN with dilations 1, 2, 4 as exporters of PyTorch write causal layers.

    Padded on the left by ``Pad``, or padded on both sides with a ``Slice`` behind.
    """
    import onnx
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(seed)
    nodes, constants = [], []

    def constant(name, values):
        constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"{op}{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    x, channels = "x", 4
    for dilation in (1, 2, 4):
        n, pad = len(nodes), 2 * dilation
        weights = rng.normal(0, 0.4, (6, channels, 3)).astype(np.float32)
        filters = constant(f"w{n}", weights), constant(f"b{n}", weights[:, 0, 0] / 4)
        shape = {"dilations": [dilation], "kernel_shape": [3]}
        if cropped:
            y = node("Conv", x, *filters, pads=[pad, pad], **shape)
            bounds = [constant(f"{k}{n}", [v]) for k, v in (("s", 0), ("e", -pad), ("a", 2))]
            y = node("Slice", y, *bounds)
        else:
            pads = constant(f"p{n}", np.array([0, 0, pad, 0, 0, 0]))
            y = node("Conv", node("Pad", x, pads, mode="constant"), *filters, **shape)
        y = node("Relu", y)
        x = node("Relu", node("Add", y, x)) if channels == 6 else y
        channels = 6
    y = node("Conv", x, constant("w", rng.normal(0, 0.4, (2, 6, 1)).astype(np.float32)))
    number = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "tcn", [helper.make_tensor_value_info("x", number, [1, 4, rows])],
        [helper.make_tensor_value_info(y, number, [1, 2, rows])], constants,
    )  # fmt: skip
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def centred(rows=14, seed=0):
    """Padded at both ends, in rows that are results: those in the middle are, some steps late."""
    t = Temporal("centred", rows, seed=seed)
    y = t.pool("avg_pool", "x", 3, 1, padding=(1, 1), border="ignore")
    y = t.net.op("add", t.conv(y, 3, 3, padding=(1, 1)), "x")
    t.conv(y, 2, 1, name="y")
    return t.net.build("y")


TEMPORAL = {
    f.__name__: f
    for f in (causal, classifier, unlike_branches, flattened, one_channel, whole, centred)
}


def random_temporal(seed):
    """Return a network of convolutions, pools and branches that can run step by step."""
    rng = np.random.default_rng(seed)
    t = Temporal("temporal", int(rng.integers(30, 50)), int(rng.integers(1, 5)),
                 int(rng.choice([1, 1, 3])), seed)  # fmt: skip
    y = t.conv("x", 3, 2)
    for _ in range(int(rng.integers(2, 5))):
        y = _grown(t, y, rng)
    left = t.shape(y)[2]
    end = rng.choice(["mean", "last", "rows", "conv"])
    if end == "mean" or (end == "conv" and left > 12):
        y = t.pool(str(rng.choice(["avg_pool", "max_pool"])), y, left, 1)
    elif end == "last":
        y = t.rows(y, left - 1, left)
    elif end == "conv":
        y = t.conv(y, 2, left)
    t.conv(y, 2, 1, name="y")
    return t.net.build("y")


def _grown(t, x, rng):
    left = t.shape(x)[2]
    kernel, dilation = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    reach = (kernel - 1) * dilation + 1
    if left < 2 * reach + 4:
        return t.net.op("tanh", x)
    kind = rng.choice(["conv", "depthwise", "strided", "pool", "residual", "branches"])
    channels = t.shape(x)[1]
    if kind == "strided":
        y = t.conv(x, int(rng.integers(1, 5)), kernel, stride=int(rng.integers(2, 4)))
    elif kind == "pool":
        op, size = str(rng.choice(["avg_pool", "max_pool", "box"])), int(rng.integers(1, 4))
        return t.pool(op, x, size, int(rng.integers(1, 3)))
    elif kind == "residual":
        y = t.conv(x, channels, kernel, dilation=dilation)
        kept = t.shape(y)[2]
        y = t.net.op("add", y, t.crop(x, kept, int(rng.integers(0, left - kept + 1))))
    elif kind == "branches":
        first, second = t.conv(x, 2, kernel, dilation=dilation), t.conv(x, 2, 1)
        kept = t.shape(first)[2]
        second = t.crop(second, kept, int(rng.integers(0, left - kept + 1)))
        y = t.net.op("concat", first, second, axis=1)
    else:
        y = t.conv(x, int(rng.integers(1, 5)), kernel, dilation=dilation,
                   depthwise=kind == "depthwise")  # fmt: skip
    return t.net.op(str(rng.choice(["sigmoid", "tanh"])), y)
