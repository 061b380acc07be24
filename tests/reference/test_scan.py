"""The recurrent loop: against loops written out, and its refusals."""

import re
import time

import numpy as np
import pytest

from nnef_hw.errors import ModelError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.ir import Tensor
from nnef_hw.reference import run_float


def accumulator(x=(1, 2), full=(1, 2), state=(1, 2)):
    """Body of ``state' = state * full + x``; its output is the next state."""
    body = Builder("body")
    inputs = [body.input(Tensor(name, s)) for name, s in zip("xws", (x, full, state), strict=True)]
    (product,) = body.node("mul", [inputs[2], inputs[1]], {}, ["product"])
    body.node("add", [product, inputs[0]], {}, ["next"])
    return body.build(["next"])


def loop(body, *shapes, outputs, scans=((0, 1),), full=1, states=("next",)):
    builder = Builder("net")
    tensors = [builder.input(Tensor(f"t{i}", shape)) for i, shape in enumerate(shapes)]
    attrs = {
        "body": body,
        "scans": list(scans),
        "full": full,
        "states": list(states),
        "outputs": list(outputs),
    }
    results = builder.node("scan", tensors, attrs, "y", ["scalar"] * len(outputs))
    return builder.build([tensor.name for tensor in results])


def run(graph, *arrays):
    found = run_float(graph, {f"t{i}": x[np.newaxis] for i, x in enumerate(arrays)})
    return [found[name][0] for name in graph.outputs]


def test_the_state_goes_from_slice_to_slice(rng):
    x, w, s = rng.standard_normal((5, 2)), rng.standard_normal((1, 2)), rng.standard_normal((1, 2))
    outputs = [("next", "full", 0, 1), ("next", "last", 0, 1), ("product", "full", 1, 2)]
    found = run(loop(accumulator(), x.shape, w.shape, s.shape, outputs=outputs), x, w, s)
    states, products = [], []
    for row in x:
        products.append(s * w)
        s = s * w + row
        states.append(s)
    np.testing.assert_allclose(found[0], np.concatenate(states))
    np.testing.assert_allclose(found[1], s)
    np.testing.assert_allclose(found[2], np.concatenate(products, axis=1))


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_steps_cut_slices_and_go_backwards(step, rng):
    extent = abs(step)
    x = rng.standard_normal((2, 6))
    w, s = np.full((2, extent), 0.5), np.zeros((2, extent))
    graph = loop(
        accumulator((2, extent), w.shape, s.shape),
        x.shape,
        w.shape,
        s.shape,
        scans=[(1, step)],
        outputs=[("next", "full", 1, step), ("next", "full", 1, extent)],
    )
    backwards, forwards = run(graph, x, w, s)
    slices = [x[:, i : i + extent] for i in range(0, 6, extent)]
    expected = []
    for part in slices if step > 0 else slices[::-1]:
        s = s * w + part
        expected.append(s)
    np.testing.assert_allclose(forwards, np.concatenate(expected, axis=1))
    if step < 0:
        expected.reverse()
    np.testing.assert_allclose(backwards, np.concatenate(expected, axis=1))


def test_loops_nest(rng):
    """The sum of all elements, row by row and in each row element by element."""
    inner = accumulator((1, 1), (1, 1), (1, 1))
    outer = Builder("outer")
    row, one, total = (
        outer.input(Tensor(name, shape))
        for name, shape in {"r": (1, 4), "o": (1, 1), "t": (1, 1)}.items()
    )
    attrs = {
        "body": inner,
        "scans": [(1, 1)],
        "full": 1,
        "states": ["next"],
        "outputs": [("next", "last", 0, 1)],
    }
    outer.node("scan", [row, one, total], attrs, ["sum"])
    graph = loop(
        outer.build(["sum"]),
        (3, 4),
        (1, 1),
        (1, 1),
        states=["sum"],
        outputs=[("sum", "last", 0, 1)],
    )
    x = rng.standard_normal((3, 4))
    (found,) = run(graph, x, np.ones((1, 1)), np.zeros((1, 1)))
    np.testing.assert_allclose(found, [[x.sum()]])


def lstm(steps, hidden):
    """A graph x [T, 1, H] -> h [T, 1, H] with gates of constant weights, and the weights."""
    rng = np.random.default_rng(1)
    gates = {
        (name, gate): rng.standard_normal((1, hidden, hidden)) / 8
        for name in "wu"
        for gate in "ifgo"
    }
    body = Builder("body")
    x, h, c = (body.input(Tensor(name, (1, 1, hidden))) for name in ("x", "h", "c"))
    parts = {}
    for gate in "ifgo":
        sums = [
            body.node(
                "matmul",
                [source, body.constant(f"{name}_{gate}", gates[name, gate])],
                {"transposeA": False, "transposeB": True},
                f"{name}{gate}",
            )[0]
            for name, source in (("w", x), ("u", h))
        ]
        (total,) = body.node("add", sums, {}, f"sum_{gate}")
        parts[gate] = body.node("tanh" if gate == "g" else "sigmoid", [total], {}, gate)[0]
    (keep,) = body.node("mul", [parts["f"], c], {}, "keep")
    (new,) = body.node("mul", [parts["i"], parts["g"]], {}, "new")
    (cell,) = body.node("add", [keep, new], {}, ["cell"])
    (shown,) = body.node("tanh", [cell], {}, "shown")
    body.node("mul", [parts["o"], shown], {}, ["hidden"])
    state = (1, 1, hidden)
    graph = loop(
        body.build(["hidden"]),
        (steps, 1, hidden),
        state,
        state,
        full=0,
        states=["hidden", "cell"],
        outputs=[("hidden", "full", 0, 1)],
    )
    return graph, gates


def test_an_lstm_is_computed_quickly_and_rightly(rng):
    graph, gates = lstm(100, 64)
    x, zero = rng.standard_normal((100, 1, 64)), np.zeros((1, 1, 64))
    run(graph, x, zero, zero)
    start = time.perf_counter()
    (found,) = run(graph, x, zero, zero)
    seconds = time.perf_counter() - start
    h = c = np.zeros(64)
    for t in range(100):
        sums = {gate: gates["w", gate][0] @ x[t, 0] + gates["u", gate][0] @ h for gate in "ifgo"}
        i, f, o = (1 / (1 + np.exp(-sums[gate])) for gate in "ifo")
        c = f * c + i * np.tanh(sums["g"])
        h = o * np.tanh(c)
        np.testing.assert_allclose(found[t, 0], h, atol=1e-9)
    assert seconds < 0.5, "100 steps take 0.02 s on an idle core"


NEXT = [("next", "full", 0, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"full": 0}, "3 tensors are given for 1 scanned, 0 full and 1 state inputs"),
        ({"scans": [(2, 1)]}, "'t0' is scanned along 2, which it does not have"),
        ({"scans": [(0, 4)]}, "the step 4 does not divide the 6 elements of dimension 0 of 't0'"),
        ({"scans": [(0, 0)]}, "the step 0 does not divide"),
        ({"scans": [], "full": 2}, "no tensor is scanned"),
        ({"scans": [(0, 1), (0, 1)], "full": 0}, "runs 6 times for 't0', 1 times for 't1'"),
        ({"scans": [(0, 2)]}, "'x' of the body takes 't0' and must have shape [2, 2], not [1, 2]"),
        ({"states": ["gone"]}, "the body has no tensor 'gone'"),
        ({"outputs": [("gone", "full", 0, 1)]}, "the body has no tensor 'gone'"),
        ({"outputs": [("next", "all", 0, 1)]}, "the output 'next' must be 'full' or 'last', not"),
        ({"outputs": [("next", "full", 2, 1)]}, "'next' is joined along 2, but has rank 2"),
        ({"outputs": [("next", "full", 1, 1)]}, "joined along 1 with step 1, but has 2 elements"),
    ],
)
def test_misfits_are_refused(options, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        loop(accumulator(), (6, 2), (1, 2), (1, 2), **{"outputs": NEXT, **options})


def test_a_state_of_another_shape_is_refused():
    with pytest.raises(ModelError, match=re.escape("'next' of the body is the next value of the")):
        loop(accumulator((1, 2), (1, 2), (1, 1)), (6, 2), (1, 2), (1, 1), outputs=NEXT)
