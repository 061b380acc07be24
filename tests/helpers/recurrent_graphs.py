"""Networks with states, built by hand."""

import numpy as np

from nnef_hw.frontend.builder import Builder
from nnef_hw.frontend.named_states import name_states
from nnef_hw.ir import Tensor
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


def delayed():
    """Return the difference of an input and the one before: a state that takes over an input."""
    net = GraphBuilder("delayed")
    x = net.input("x", (1, 3, 2, 2))
    net.state("before", np.full((1, 3, 2, 2), 0.5))
    net.update("before", x)
    net.op("sub", x, "before", name="y")
    return net.build("y")


def swapped():
    """Return a network whose two states change places, with values that differ."""
    net = GraphBuilder("swapped")
    x = net.input("x", (1, 4))
    v = net.state("v", [[0.5, -0.25, 1.0, 0.0]])
    w = net.state("w", np.zeros((1, 4)))
    net.update("v", w)
    net.update("w", net.op("tanh", net.op("add", x, v, name="sum"), name="w_next"))
    net.op("mul", "w_next", w, name="y")
    return net.build("y")


def convolved(seed=0):
    """Return a convolutional state: an image that each step blurs and adds to."""
    rng = np.random.default_rng(seed)
    net = GraphBuilder("convolved")
    x = net.input("x", (1, 2, 4, 5))
    h = net.state("h", rng.normal(size=(1, 3, 4, 5)))
    seen = net.conv(x, rng.normal(0, 0.3, (3, 2, 3, 3)), padding=1, name="seen")
    kept = net.conv(h, rng.normal(0, 0.3, (3, 3, 3, 3)), padding=1, name="kept")
    net.update("h", net.op("tanh", net.op("add", seen, kept, name="sum"), name="h_next"))
    net.pool("avg_pool", "h_next", 2, name="y")
    return net.build("y")


def of_two_inputs(seed=0):
    """Return a network of two inputs and two outputs; one of these is the state itself."""
    rng = np.random.default_rng(seed)
    net = GraphBuilder("of_two_inputs")
    a, b = net.input("a", (1, 3)), net.input("b", (1, 5))
    s = net.state("s", np.zeros((1, 5)))
    net.op("linear", a, rng.normal(size=(5, 3)), rng.normal(size=(1, 5)), name="seen")
    net.op("add", "seen", net.op("mul", b, s, name="scaled"), name="sum")
    net.update("s", net.op("sigmoid", "sum", name="s_next"))
    net.op("linear", "s_next", rng.normal(size=(2, 5)), rng.normal(size=(1, 2)), name="y")
    return net.build("y", "s_next")


def looped(steps, *, step=1, initial=None, last=False):
    """Return h = tanh(0.5 * h + x) over [1, steps, 3], from 0.25; all or the last are given."""
    body = Builder("body")
    x, h = body.input(Tensor("x", (1, 1, 3))), body.input(Tensor("h", (1, 1, 3)))
    (half,) = body.node("mul", [h, body.constant("k", np.asarray(0.5))], {}, ["half"])
    (total,) = body.node("add", [half, x], {}, ["sum"])
    body.node("tanh", [total], {}, ["next"])
    net = Builder("looped")
    source = net.input(Tensor("x", (1, steps, 3)))
    begin = net.constant("begin", np.full((1, 1, 3), 0.25)) if initial is None else initial(net)
    attrs = {
        "body": body.build(["next"]),
        "scans": [(1, step)],
        "full": 0,
        "states": ["next"],
        "outputs": [("next", "last" if last else "full", 1, step)],
    }
    (result,) = net.node("scan", [source, begin], attrs, ["y"], ["scalar"])
    return net.build([result.name])


STATEFUL = {
    "gru": lambda: gru(initial=[[0.5, -0.5, 0.25, 0.0]]),
    "delay line": delay_line,
    "delayed": delayed,
    "swapped": swapped,
    "convolved": convolved,
    "of two inputs": of_two_inputs,
    "continued loop": lambda: name_states(looped(1), "loops", "looped"),
}


def random_recurrent(seed):
    """Return a random network of images [1, C, H, W] with one to three states.

    Convolutions, functions and arithmetic over the input, the states and what was computed of them;
    a state takes over a function of any of these, the input itself, or another state.
    """
    rng = np.random.default_rng(seed)
    net = GraphBuilder("random_recurrent")
    channels, height, width = (int(n) for n in rng.integers(1, [4, 4, 5]))
    shape = (1, channels, height, width)
    pool = [net.input("x", shape)]
    states = [
        net.state(f"s{n}", rng.uniform(-1, 1, shape) * int(rng.integers(2)))
        for n in range(int(rng.integers(1, 4)))
    ]
    pool += states

    def some():
        return pool[int(rng.integers(max(0, len(pool) - 5), len(pool)))]

    for n in range(int(rng.integers(2, 8))):
        op = str(rng.choice(["conv", "pixel", "tanh", "sigmoid", "add", "sub", "mul", "max"]))
        if op in {"conv", "pixel"}:
            size = 3 if op == "conv" else 1
            weights = rng.normal(0, 1 / (size * channels), (channels, channels, size, size))
            pool.append(net.conv(some(), weights, padding=size // 2, name=f"t{n}"))
        elif op in {"tanh", "sigmoid"}:
            pool.append(net.op(op, some(), name=f"t{n}"))
        else:
            pool.append(net.op(op, some(), some(), name=f"t{n}"))
    for n, state in enumerate(states):
        if rng.random() < 0.2:
            net.update(state, str(rng.choice([pool[0], *states])))
        else:
            net.update(state, net.op("tanh", some(), name=f"next{n}"))
    net.op("sub", net.op("add", pool[-1], pool[0], name="mixed"), states[0], name="y")
    return net.build("y")
