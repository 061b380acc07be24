"""Networks with states, built by hand."""

import numpy as np

from nnef_hw.testing import GraphBuilder


def gru(inputs=3, units=4, classes=2, seed=0, initial=None):
    """Return a GRU of one step with a linear layer behind it: x [1, inputs] to y [1, classes]."""
    rng = np.random.default_rng(seed)
    net = GraphBuilder("gru")
    x = net.input("x", (1, inputs))
    h = net.state("h", np.zeros((1, units)) if initial is None else initial)

    def linear(source, count, outputs, name):
        weights = rng.normal(0, 1 / np.sqrt(count), (outputs, count))
        return net.op("linear", source, weights, rng.normal(0, 0.1, (1, outputs)), name=name)

    def gate(function, name, state):
        total = net.op(
            "add",
            linear(x, inputs, units, f"{name}_x"),
            linear(state, units, units, f"{name}_h"),
            name=f"{name}_sum",
        )
        return net.op(function, total, name=name)

    z, r = gate("sigmoid", "z", h), gate("sigmoid", "r", h)
    n = gate("tanh", "n", net.op("mul", r, h, name="reset"))
    step = net.op("mul", z, net.op("sub", h, n, name="difference"), name="kept")
    net.update("h", net.op("add", n, step, name="h_next"))
    linear("h_next", units, classes, "y")
    return net.build("y")


def delay_line(taps=3, channels=2, seed=0):
    """Return a filter over the last steps, kept in a shift register [1, channels, taps - 1]."""
    rng = np.random.default_rng(seed)
    net = GraphBuilder("delay_line")
    x = net.input("x", (1, channels, 1))
    old = net.state("old", np.zeros((1, channels, taps - 1)))
    both = net.op("concat", old, x, name="both", axis=2)
    shifted = net.op(
        "slice", both, name="shifted", axes=[2], begin=[1], end=[taps], stride=[1],
        shape=(1, channels, taps - 1),
    )  # fmt: skip
    net.update("old", shifted)
    net.conv(both, rng.normal(0, 1, (3, channels, taps)), rng.normal(0, 1, (1, 3)), name="y")
    return net.build("y")
