"""Train a recurrent network that reads scikit-learn's digits row by row; write it as NNEF.

Run ``pip install -e . scikit-learn``, then ``python train.py``. All but the data is NumPy:
gated recurrent units, their gradients through time, and Adam. It depends on nothing but the
versions of NumPy and scikit-learn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nnef_hw.frontend import save
from nnef_hw.testing import GraphBuilder

HERE = Path(__file__).parent
SEED = 7
EPOCHS = 120
BATCH = 32
RATE = 8e-3
DECAY = 1e-4
TEST_SAMPLES = 450
PIXELS, UNITS, CLASSES = 8, 24, 10

Array = NDArray[np.float64]
Parameters = dict[str, Array]


def make_parameters(rng: np.random.Generator) -> Parameters:
    """Return the untrained network: 2,626 parameters."""
    seen = PIXELS + UNITS
    shapes = {"gates": (2 * UNITS, seen), "candidate": (UNITS, seen), "output": (CLASSES, UNITS)}
    filters = {
        f"{name}_filter": rng.normal(0, shape[1] ** -0.5, shape) for name, shape in shapes.items()
    }
    return filters | {f"{name}_bias": np.zeros((1, shape[0])) for name, shape in shapes.items()}


def sigmoid(x: Array) -> Array:
    """Return the logistic function."""
    return np.asarray(1 / (1 + np.exp(-x)))


def run(p: Parameters, images: Array) -> tuple[Array, list[tuple[Array, ...]]]:
    """Return the last scores [N, 10] of images [N, 8, 8], and what every step computed."""
    h = np.zeros((len(images), UNITS))
    steps = []
    for row in np.moveaxis(images, 1, 0):
        seen = np.concatenate([row, h], axis=1)
        gates = sigmoid(seen @ p["gates_filter"].T + p["gates_bias"])
        keep, reset = gates[:, :UNITS], gates[:, UNITS:]
        again = np.concatenate([row, reset * h], axis=1)
        candidate = np.tanh(again @ p["candidate_filter"].T + p["candidate_bias"])
        steps.append((h, seen, gates, again, candidate))
        h = candidate + keep * (h - candidate)
    return h @ p["output_filter"].T + p["output_bias"], [*steps, (h,)]


def gradients(p: Parameters, images: Array, labels: NDArray[Any]) -> Parameters:
    """Return the gradient of the mean cross entropy of the last scores."""
    scores, (*steps, (h,)) = run(p, images)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    scores /= scores.sum(axis=1, keepdims=True)
    scores[np.arange(len(labels)), labels] -= 1
    scores /= len(labels)
    g = {name: np.zeros_like(value) for name, value in p.items()}
    g["output_filter"], g["output_bias"] = scores.T @ h, scores.sum(axis=0, keepdims=True)
    dh = scores @ p["output_filter"]
    for before, seen, gates, again, candidate in reversed(steps):
        keep, reset = gates[:, :UNITS], gates[:, UNITS:]
        dcandidate = dh * (1 - keep) * (1 - candidate**2)
        g["candidate_filter"] += dcandidate.T @ again
        g["candidate_bias"] += dcandidate.sum(axis=0, keepdims=True)
        dreset = (dcandidate @ p["candidate_filter"])[:, PIXELS:]
        dgates = np.concatenate([dh * (before - candidate), dreset * before], axis=1)
        dgates *= gates * (1 - gates)
        g["gates_filter"] += dgates.T @ seen
        g["gates_bias"] += dgates.sum(axis=0, keepdims=True)
        dh = dh * keep + dreset * reset + (dgates @ p["gates_filter"])[:, PIXELS:]
    return g


def train(p: Parameters, images: Array, labels: NDArray[Any], rng: np.random.Generator) -> None:
    """Train in place with Adam and a falling learning rate."""
    first = {name: np.zeros_like(value) for name, value in p.items()}
    second = {name: np.zeros_like(value) for name, value in p.items()}
    total, step = EPOCHS * -(-len(images) // BATCH), 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for begin in range(0, len(images), BATCH):
            chosen = order[begin : begin + BATCH]
            noisy = images[chosen] + rng.normal(0, 0.05, (len(chosen), 8, 8))
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / total))
            for name, slope in gradients(p, noisy, labels[chosen]).items():
                slope = slope + DECAY * p[name]
                first[name] += 0.1 * (slope - first[name])
                second[name] += 0.001 * (slope**2 - second[name])
                mean = first[name] / (1 - 0.9**step)
                square = second[name] / (1 - 0.999**step)
                p[name] -= rate * mean / (np.sqrt(square) + 1e-8)


def write_network(p: Parameters, path: Path) -> None:
    """Write one step of the trained network as an NNEF archive: a row in, scores out."""
    net = GraphBuilder("digits_gru")
    row, h = net.input("row", [1, PIXELS]), net.state("h", np.zeros((1, UNITS)))

    def linear(source: str, name: str) -> str:
        variables = (
            net.constant(f"{name}_{part}", p[f"{name}_{part}"].astype(np.float32), f"{name}/{part}")
            for part in ("filter", "bias")
        )
        return net.op("linear", source, *variables, name=f"{name}_sum")

    def part(source: str, begin: int, name: str) -> str:
        bounds = {"axes": [1], "begin": [begin], "end": [begin + UNITS], "stride": [1]}
        return net.op("slice", source, name=name, shape=[1, UNITS], **bounds)

    def joined(first: str, second: str, name: str) -> str:
        return net.op("concat", first, second, name=name, axis=1, shape=[1, PIXELS + UNITS])

    gates = net.op("sigmoid", linear(joined(row, h, "seen"), "gates"), name="gates")
    keep, reset = part(gates, 0, "keep"), part(gates, UNITS, "reset")
    again = joined(row, net.op("mul", reset, h, name="kept_of_h"), "again")
    candidate = net.op("tanh", linear(again, "candidate"), name="candidate")
    change = net.op("mul", keep, net.op("sub", h, candidate, name="difference"), name="change")
    net.update("h", net.op("add", candidate, change, name="h_next"))
    net.op("copy", linear("h_next", "output"), name="scores", shape=[1, CLASSES])
    save(net.build("scores"), path)


def main() -> None:
    """Train, write the archive and the held-out samples, print the accuracy."""
    rng = np.random.default_rng(SEED)
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8) / 16
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=TEST_SAMPLES, stratify=labels, random_state=SEED
    )
    network = make_parameters(rng)
    train(network, train_x, train_y, rng)
    found = run(network, test_x)[0].argmax(axis=1)
    print(f"test accuracy {np.mean(found == test_y):.4f} on {len(test_y)} images")
    np.savez_compressed(HERE / "samples.npz", inputs=test_x.astype(np.float32), labels=test_y)
    write_network(network, HERE / "digits_gru.nnef.tgz")


if __name__ == "__main__":
    main()
