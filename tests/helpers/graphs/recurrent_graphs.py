"""Networks with states, built by hand."""

import numpy as np

from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.named_states import name_states
from nnef_hw.ir import Tensor, open_states, without_dead_states
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


def random_loop(seed):
    """Return a loop of two to four steps around the step of :func:`random_recurrent`.

    Through any axis of its input, forwards or backwards; some of its states begin with inputs, one
    tensor may be read whole by all steps; all steps of one tensor and the last of others are given.
    """
    rng = np.random.default_rng(seed)
    inner = without_dead_states(random_recurrent(seed))
    body = open_states(inner)
    shape, steps, axis = inner.tensor("x").shape, int(rng.integers(2, 5)), int(rng.integers(4))
    net = Builder("random_loop")
    x = net.input(Tensor("x", (*shape[:axis], steps * shape[axis], *shape[axis + 1 :])))
    initial = [
        net.input(Tensor(f"{name}_begin", shape)) if rng.random() < 0.3
        else net.constant(f"{name}_begin", state.initial)
        for name, state in inner.states.items()
    ]  # fmt: skip
    step = shape[axis] * int(rng.choice([-1, 1]))
    joined = int(rng.integers(4))
    given = [("y", "full", joined, shape[joined] * int(rng.choice([-1, 1])))]
    if rng.random() < 0.5:
        given = [("y", "last", 0, 1), *given][:: int(rng.choice([-1, 1]))]
    attrs = {
        "body": body,
        "scans": [(axis, step)],
        "full": 0,
        "states": [state.result for state in inner.states.values()],
        "outputs": given,
    }
    names = [f"y{n}" for n in range(len(given))]
    results = net.node("scan", [x, *initial], attrs, names, ["scalar"] * len(names))
    return net.build([result.name for result in results])


def attending(steps=4):
    """Return h = tanh(h + x * (q + 0.5)) over [1, steps, 3]: every step reads q whole."""
    body = Builder("body")
    x, q, h = (body.input(Tensor(name, (1, 1, 3))) for name in "xqh")
    (more,) = body.node("add", [q, body.constant("k", np.asarray(0.5))], {}, ["more"])
    (seen,) = body.node("mul", [x, more], {}, ["seen"])
    (total,) = body.node("add", [h, seen], {}, ["sum"])
    body.node("tanh", [total], {}, ["next"])
    net = Builder("attending")
    source, query = net.input(Tensor("x", (1, steps, 3))), net.input(Tensor("q", (1, 1, 3)))
    begin = net.constant("begin", np.zeros((1, 1, 3)))
    attrs = {
        "body": body.build(["next"]),
        "scans": [(1, 1)],
        "full": 1,
        "states": ["next"],
        "outputs": [("next", "last", 1, 1), ("seen", "full", 1, 1)],
    }
    results = net.node("scan", [source, query, begin], attrs, ["y", "z"], ["scalar"] * 2)
    return net.build([result.name for result in results])


def onnx_layer(kind, path, *, steps=5, size=4, direction="forward", outputs=("Y",), begun=False):
    """Write an ONNX file with one ``RNN``, ``GRU`` or ``LSTM`` of 3 inputs; return its path."""
    import onnx
    from onnx import TensorProto, helper

    rng = np.random.default_rng(0)
    directions, rows = 1 + (direction == "bidirectional"), {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    shapes = {
        "W": (directions, rows * size, 3),
        "R": (directions, rows * size, size),
        "B": (directions, 2 * rows * size),
    }
    weights = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, rng.normal(0, 0.5, shape).reshape(-1))
        for name, shape in shapes.items()
    ]
    found = {
        "x": [steps, 1, 3], "h": [directions, 1, size], "Y": [steps, directions, 1, size],
        "Y_h": [directions, 1, size], "Y_c": [directions, 1, size],
    }  # fmt: skip

    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, found[name])

    given = [name if name in outputs else "" for name in ("Y", "Y_h", "Y_c")]
    node = helper.make_node(
        kind, ["x", "W", "R", "B", *(["", "h"] if begun else [])], given[: 2 + (kind == "LSTM")],
        hidden_size=size, direction=direction,
    )  # fmt: skip
    inputs = [info("x"), *([info("h")] if begun else [])]
    graph = helper.make_graph([node], "layer", inputs, [info(name) for name in outputs], weights)
    opset = [helper.make_opsetid("", 14)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path
