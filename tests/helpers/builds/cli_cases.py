"""Models and samples for the command line, good and bad, and what commands answer."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor
from nnef_hw.testing import GraphBuilder

EXAMPLE = Path(__file__).parents[3] / "examples" / "digits_cnn"
MODEL, SAMPLES = EXAMPLE / "digits_cnn.nnef.tgz", EXAMPLE / "samples.npz"


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def tiny_graph(seed=0):
    """Return a network of a few layers on 6x6 pixels."""
    rng = np.random.default_rng(seed)
    net = GraphBuilder("tiny")
    y = net.input("image", [1, 1, 6, 6])
    y = net.conv(y, rng.normal(size=(3, 1, 3, 3)), rng.normal(size=(1, 3)), name="conv1")
    y = net.pool("max_pool", net.op("relu", y, name="relu1"), name="pool1")
    y = net.reshape(y, [1, 12], name="flat")
    net.op("linear", y, rng.normal(size=(4, 12)), rng.normal(size=(1, 4)), name="scores")
    return net.build()


def write_samples(path, shape, labels=None, count=20):
    rng = np.random.default_rng(1)
    arrays = {} if labels is None else {"labels": labels(rng, count)}
    np.savez(path, inputs=rng.uniform(-1, 1, [count, *shape]), **arrays)
    return path


def write_model(folder, *body, shape="[1, 2, 4, 4]", **arrays):
    """Write a folder from statements, the first in line 5, and arrays or bytes by label."""
    lines = ["version 1.0;", "graph net(x) -> (y)", "{"]
    lines += [f"    {line}" for line in (f"x = external(shape = {shape});", *body)] + ["}"]
    folder.mkdir()
    (folder / "graph.nnef").write_text("\n".join(lines) + "\n")
    for label, array in arrays.items():
        data = array if isinstance(array, bytes) else write_tensor(np.asarray(array, np.float32))
        (folder / f"{label}.dat").write_bytes(data)
    return folder


def truncated_archive(folder):
    path = folder / "cut.nnef.tgz"
    path.write_bytes(MODEL.read_bytes()[:3000])
    return path


def random_bytes(folder):
    path = folder / "noise.nnef.tgz"
    path.write_bytes(bytes(range(256)) * 8)
    return path


FILTER = "w = variable(shape = [2, 2, 3, 3], label = 'w');"


CONV = "y = conv(x, w, padding = [(1, 1), (1, 1)], stride = [1, 1], dilation = [1, 1], groups = 1);"


WEIGHTS = np.ones((2, 2, 3, 3))


NAN = np.where(np.arange(36) == 7, np.nan, 1.0).reshape(2, 2, 3, 3)


WRONG_MODELS = {
    "missing": (lambda folder: folder / "nope.nnef.tgz", r"nope\.nnef\.tgz does not exist"),
    "truncated archive": (truncated_archive, r"cut\.nnef\.tgz: the gzip file is truncated; get it"),
    "no archive": (random_bytes, r"noise\.nnef\.tgz: the file is not an NNEF model; give a folder"),
    "truncated data": (
        lambda folder: write_model(folder / "m", FILTER, CONV, w=write_tensor(WEIGHTS)[:-20]),
        r"w\.dat: variable 'w': .*288 bytes.* 268; is it truncated\?",
    ),
    "data of another shape": (
        lambda folder: write_model(folder / "m", FILTER, CONV, w=WEIGHTS[:, :1]),
        r"graph\.nnef:5:\d+: .*the graph says shape \[2, 2, 3, 3\], but w\.dat has \[2, 1, 3, 3\]",
    ),
    "no data": (
        lambda folder: write_model(folder / "m", FILTER, CONV),
        r"graph\.nnef:5:\d+: .*no file 'w\.dat'",
    ),
    "NaN in weights": (
        lambda folder: write_model(folder / "m", FILTER, CONV, w=NAN),
        r"graph\.nnef:5:\d+: .*w\.dat holds nan at \[0, 0, 2, 1\]",
    ),
    "infinity in weights": (
        lambda folder: write_model(folder / "m", FILTER, CONV, w=WEIGHTS * np.inf),
        r"graph\.nnef:6:\d+: conv 'y': its input 'w' holds inf at \[0, 0, 0, 0\]",
    ),
    "syntax error": (
        lambda folder: write_model(folder / "m", "y = relu(x;"),
        r"graph\.nnef:5:15: .*\n    +y = relu\(x;\n +\^",
    ),
    "unknown operators": (
        lambda folder: write_model(folder / "m", "a = foo(x);", "b = reluu(a);", "y = bar(b);"),
        r":5:9: .*'foo'.*:6:9: .*'reluu' is unknown; did you mean 'relu'\?.*:7:9: .*'bar'",
    ),
    "unsupported rank": (
        lambda folder: write_model(
            folder / "m",
            "w = variable(shape = [2, 2, 1, 1, 1], label = 'w');",
            "y = conv(x, w);",
            shape="[1, 2, 4, 4, 4]",
            w=np.ones((2, 2, 1, 1, 1)),
        ),
        r"conv 'y': its input has shape \[1, 2, 4, 4, 4\]",
    ),
}

# Valid models that the fixed model computes and no hardware exists for yet.
UNSTREAMED_MODELS = {
    "another order of the input": (
        lambda folder: write_model(folder / "m", "y = transpose(x, axes = [0, 2, 3, 1]);"),
        "the model has nothing to compute; give it a layer",
    ),
}
