"""RNN, GRU and LSTM in every form, against onnxruntime."""

import numpy as np
import pytest

from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.reference import run_float

STEPS, BATCH, INPUTS, SIZE = 5, 2, 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


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
def test_layers_compute_what_onnxruntime_does(kind, form, rng, make_node, read):
    runtime = pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
    attrs = dict(FORMS[form])
    lengths, at_run_time = attrs.pop("lengths", None), attrs.pop("at_run_time", False)
    layout = attrs.pop("layout", 0)
    d, rows = 2 if attrs.get("direction") == "bidirectional" else 1, GATES[kind] * SIZE

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    x, *weights = draw(STEPS, BATCH, INPUTS), draw(d, rows, INPUTS), draw(d, rows, SIZE)
    bias, states, peepholes = draw(d, 2 * rows), [draw(d, BATCH, SIZE) for _ in "hc"], draw(d, 12)
    count = None if lengths is None else np.array(lengths, np.int32)
    outputs = 3 if kind == "LSTM" else 2

    def layer(x, states, constant, **more):
        inputs = [x, *weights, bias, count, states[0]]
        inputs += [states[1], peepholes] if kind == "LSTM" else []
        model = make_node(
            kind, *inputs, outputs=outputs, constant=constant, opset=14, hidden_size=SIZE,
            **attrs, **more,
        )  # fmt: skip
        return model, {f"x{n}": value for n, value in enumerate(inputs) if n not in constant}

    # it has no layers with the batch first
    model, inputs = layer(x, states, [1, 2, 3, 7])
    given = {name: value for name, value in inputs.items() if value is not None}
    expected = runtime.InferenceSession(model.SerializeToString()).run(None, given)
    if layout:
        x, states = x.swapaxes(0, 1), [state.swapaxes(0, 1) for state in states]
        expected = [expected[0].transpose(2, 0, 1, 3), *(y.swapaxes(0, 1) for y in expected[1:])]
    constant = [1, 2, 3, 7] if at_run_time else [1, 2, 3, 4, 7]
    model, inputs = layer(x, states, constant, layout=layout)
    graph = read(model)
    found = run_float(graph, {name: inputs[name] for name in graph.inputs})
    for name, value in zip(graph.outputs, expected, strict=True):
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
