"""RNN, GRU and LSTM in every form, against a plain evaluation of ONNX's formulas."""

import numpy as np
import pytest

from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.reference import run_float

STEPS, BATCH, INPUTS, SIZE = 5, 2, 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(kind, x, h, c, parameters, *, clip, reset_behind, coupled):
    """Return the next h and c."""
    w, r, b, p = parameters
    bound = (lambda v: v) if clip is None else (lambda v: np.clip(v, -clip, clip))
    wb, rb = np.split(b, 2)
    a = x @ w.T + wb
    if kind == "RNN":
        return np.tanh(bound(a + h @ r.T + rb)), c
    if kind == "GRU":
        az, ar, ah = np.split(a, 3, axis=1)
        (rz, rr, rh), (bz, br, bh) = np.split(r, 3), np.split(rb, 3)
        z, t = sigmoid(bound(az + h @ rz.T + bz)), sigmoid(bound(ar + h @ rr.T + br))
        inner = t * (h @ rh.T + bh) if reset_behind else (t * h) @ rh.T + bh
        return (1 - z) * np.tanh(bound(ah + inner)) + z * h, c
    i, o, f, g = np.split(a + h @ r.T + rb, 4, axis=1)
    pi, po, pf = np.split(p, 3)
    i = sigmoid(bound(i + pi * c))
    f = 1 - i if coupled else sigmoid(bound(f + pf * c))
    c = f * c + i * np.tanh(bound(g))
    return sigmoid(bound(o + po * c)) * np.tanh(c), c


def expected(kind, x, weights, states, lengths, direction, **options):
    """Return Y [T, D, N, H] and the last h and c [D, N, H]."""
    every, hs, cs = [], [], []
    for d, backwards in enumerate(
        {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    ):
        h, c = (state[d].copy() for state in states)
        y = np.zeros((STEPS, BATCH, SIZE))
        for n, length in enumerate(lengths):
            for t in range(length)[::-1] if backwards else range(length):
                now = cell(
                    kind, x[t, n : n + 1], h[n : n + 1], c[n : n + 1],
                    [w[d] for w in weights], **options,
                )  # fmt: skip
                h[n], c[n] = now[0][0], now[1][0]
                y[t, n] = h[n]
        every.append(y)
        hs.append(h)
        cs.append(c)
    return np.stack(every, axis=1), np.stack(hs), np.stack(cs)


FORMS = {
    "plain": {},
    "reverse": {"direction": "reverse"},
    "bidirectional": {"direction": "bidirectional"},
    "clipped": {"clip": 0.3},
    "batch_first": {"layout": 1, "direction": "bidirectional"},
    "lengths": {"lengths": [5, 2], "direction": "bidirectional"},
    "lengths_of_the_run": {"lengths": [3, 5], "at_run_time": True},
    "reset_behind": {"linear_before_reset": 1},
    "coupled": {"input_forget": 1},
}


ONLY = {"reset_behind": "GRU", "coupled": "LSTM"}


@pytest.mark.parametrize(
    ("kind", "form"),
    [(kind, form) for kind in GATES for form in FORMS if ONLY.get(form, kind) == kind],
)
def test_layers_compute_the_formulas(kind, form, rng, make_node, read):
    attrs = dict(FORMS[form])
    lengths, at_run_time = attrs.pop("lengths", None), attrs.pop("at_run_time", False)
    direction, layout = attrs.get("direction", "forward"), attrs.get("layout", 0)
    d, rows = 2 if direction == "bidirectional" else 1, GATES[kind] * SIZE

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    x = draw(STEPS, BATCH, INPUTS)
    peepholes = draw(d, 3 * SIZE)
    weights = draw(d, rows, INPUTS), draw(d, rows, SIZE), draw(d, 2 * rows), peepholes
    states = draw(d, BATCH, SIZE), draw(d, BATCH, SIZE)
    y, h, c = expected(
        kind, x, weights, states, lengths or [STEPS] * BATCH, direction, clip=attrs.get("clip"),
        reset_behind=attrs.get("linear_before_reset"), coupled=attrs.get("input_forget"),
    )  # fmt: skip
    if layout:
        x, y, h = x.swapaxes(0, 1), y.transpose(2, 0, 1, 3), h.swapaxes(0, 1)
        states = [state.swapaxes(0, 1) for state in states]
        c = c.swapaxes(0, 1)
    count = None if lengths is None else np.array(lengths, np.int32)
    inputs = [x, *weights[:3], count, states[0]]
    inputs += [states[1], peepholes] if kind == "LSTM" else []
    constant = [1, 2, 3, 7] if at_run_time else [1, 2, 3, 4, 7]
    outputs = 3 if kind == "LSTM" else 2
    model = make_node(
        kind, *inputs, outputs=outputs, constant=constant, opset=14, hidden_size=SIZE, **attrs
    )
    graph = read(model)
    samples = {f"x{index}": value for index, value in enumerate(inputs)}
    found = run_float(graph, {name: samples[name] for name in graph.inputs})
    for name, value in zip(graph.outputs, (y, h, c), strict=False):
        np.testing.assert_allclose(found[name].reshape(value.shape), value, rtol=1e-5, atol=1e-6)


FUNCTIONS = {
    "Affine": lambda x: 0.5 * x + 0.1,
    "Elu": lambda x: np.where(x < 0, 0.5 * np.expm1(x), x),
    "HardSigmoid": lambda x: np.clip(0.5 * x + 0.1, 0, 1),
    "LeakyRelu": lambda x: np.where(x < 0, 0.5 * x, x),
    "Relu": lambda x: np.maximum(x, 0),
    "ScaledTanh": lambda x: 0.5 * np.tanh(0.1 * x),
    "Sigmoid": sigmoid,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Tanh": np.tanh,
    "ThresholdedRelu": lambda x: np.where(x > 0.5, x, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_activation(name, rng, make_node, read):
    x, w = rng.standard_normal((1, 2, 3)), rng.standard_normal((1, 4, 3))
    x, w, r = x.astype(np.float32), w.astype(np.float32), np.zeros((1, 4, 4), np.float32)
    attrs = {"activations": [name], "activation_alpha": [0.5], "activation_beta": [0.1]}
    graph = read(make_node("RNN", x, w, r, constant=[1, 2], hidden_size=4, **attrs))
    found = run_float(graph, {"x0": x})["y0"]
    np.testing.assert_allclose(found.reshape(2, 4), FUNCTIONS[name](x[0] @ w[0].T), rtol=1e-5)


@pytest.mark.parametrize(
    ("attrs", "error", "reason"),
    [
        ({"direction": "sideways"}, ModelError, "there is no direction 'sideways'"),
        ({"activations": ["Sine"]}, UnsupportedError, "there is no activation 'Sine'"),
        ({"hidden_size": 3}, ModelError, "hidden_size is 3, not 4"),
        ({"direction": "bidirectional"}, ModelError, r"input 1 has shape \[1, 4, 3\], but must"),
    ],
)
def test_what_does_not_fit_is_refused(attrs, error, reason, make_node, read):
    x, w, r = (np.zeros(shape, np.float32) for shape in ((1, 2, 3), (1, 4, 3), (1, 4, 4)))
    with pytest.raises(error, match=reason):
        read(make_node("RNN", x, w, r, constant=[1, 2], **attrs))
