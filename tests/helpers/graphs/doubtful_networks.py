"""Random networks of what is hard to quantize: scalers, gates, norms, masks, few samples."""

from dataclasses import dataclass

import numpy as np

from nnef_hw.flow.fixed import judge_model
from nnef_hw.ir import Graph
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.quantize.calibration.scheme import CALIBRATIONS
from nnef_hw.quantize.judgement.measure import layer_noise
from nnef_hw.samples.samples import Samples
from nnef_hw.testing import GraphBuilder

MASKS = (-50.0, -1e4, -1e9, float(np.finfo(np.float32).min))
COUNTS = (1, 3, 5, 8, 12, 20, 40, 60, 120)
HELD_OUT = 128
LOSS_DB = 3.0


@dataclass(frozen=True)
class Doubtful:
    """A network, the samples that a user has, others of their kind, and what it is made of."""

    graph: Graph
    samples: Samples
    others: dict[str, np.ndarray]
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What quantization makes of one: dB of its worst result on samples that nobody has seen."""

    found: float
    best: float
    by: str
    kinds: tuple[str, ...]

    @property
    def is_silent(self) -> bool:
        """Whether another calibration is better by more than 3 dB, and nothing was said."""
        return self.best - self.found > LOSS_DB and not self.kinds


class _Maker:
    """A network [1, width, rows, 1] in the making."""

    def __init__(self, rng, name):
        self.rng, self.b = rng, GraphBuilder(name)
        self.width, self.rows = int(rng.integers(3, 9)), int(rng.choice([1, 4, 6]))
        self.parts = []
        shape = (self.rows, self.width)
        self.input = self.b.input("x", (1, *shape))
        self.x = self.input

    def normal(self, *shape, scale=1.0):
        return self.rng.normal(size=shape) * scale

    def dense(self, x, width=None, bias=0.3):
        """Multiply every row by a matrix."""
        inner = self.width
        width = width or inner
        weights = self.normal(1, inner, width, scale=inner**-0.5)
        y = self.b.op("matmul", x, weights, transposeA=False, transposeB=False)
        return self.b.op("add", y, self.normal(1, 1, width, scale=bias))

    def scaler(self):
        """Undo the ranges of raw features, inside of the network."""
        self.x = self.b.op("sub", self.x, self.means.reshape(1, 1, -1))
        self.x = self.b.op("mul", self.x, 1 / self.scales.reshape(1, 1, -1))

    def layer(self):
        function = str(self.rng.choice(["relu", "tanh", "sigmoid", "silu", "gelu"]))
        y = self.dense(self.x)
        if function in {"silu", "gelu"}:
            slope = 1.0 if function == "silu" else 1.702
            y = self.b.op("mul", y, self.b.op("sigmoid", self.b.op("mul", y, slope)))
        else:
            y = self.b.op(function, y)
        self.x = y

    def gate(self):
        gate = self.b.op("sigmoid", self.dense(self.x, bias=2.0))
        value = self.b.op("tanh", self.dense(self.x)) if self.rng.random() < 0.5 else self.x
        self.x = self.b.op("mul", gate, value)

    def residual(self):
        before = self.x
        self.layer()
        self.x = self.b.op("add", before, self.x)

    def norm(self):
        mean = self.b.op("mean_reduce", self.x, axes=[2])
        centered = self.b.op("sub", self.x, mean)
        square = self.b.op("mul", centered, centered)
        variance = self.b.op("mean_reduce", square, axes=[2])
        root = self.b.op("rsqrt", self.b.op("add", variance, 1e-5))
        y = self.b.op("mul", centered, root)
        y = self.b.op("mul", y, 1 + self.normal(1, 1, self.width, scale=0.3))
        self.x = self.b.op("add", y, self.normal(1, 1, self.width, scale=0.3))

    def attention(self):
        """Attend to rows before, with a mask of one of the numbers that exporters take."""
        query, key, value = (self.dense(self.x) for _ in range(3))
        scores = self.b.op("matmul", query, key, transposeA=False, transposeB=True)
        scores = self.b.op("mul", scores, self.width**-0.5)
        mask = np.triu(np.full((1, self.rows, self.rows), self.rng.choice(MASKS)), 1)
        scores = self.b.op("add", scores, mask)
        weights = self.b.op("softmax", scores, axes=[2])
        y = self.b.op("matmul", weights, value, transposeA=False, transposeB=False)
        self.x = self.b.op("add", self.x, y)

    def inputs(self, count):
        """Return samples as the network gets them, some of them far from the others."""
        x = self.rng.normal(size=(count, self.rows, self.width))
        if self.heavy:
            x *= np.exp(self.rng.normal(size=(count, 1, 1)) * 0.7)
        return x * self.scales + self.means

    def make(self):
        rng = self.rng
        self.heavy = rng.random() < 0.3
        has_scaler = rng.random() < 0.3
        spread = 2.0 if has_scaler else 0.0
        self.scales = 10.0 ** rng.uniform(-spread / 2, spread, self.width)
        self.means = self.scales * rng.normal(size=self.width) * (2 if has_scaler else 0)
        if has_scaler:
            self.parts.append("scaler")
            self.scaler()
        for _ in range(rng.integers(1, 5)):
            choices = ["layer", "gate", "residual", "norm"]
            choices += ["attention"] if self.rows > 1 else []
            part = str(rng.choice(choices))
            self.parts.append(part)
            getattr(self, part)()
        self.x = self.dense(self.x, int(rng.integers(2, 6)))
        graph = self.b.build()
        count = int(rng.choice(COUNTS))
        return Doubtful(
            graph, Samples({"x": self.inputs(count)}), {"x": self.inputs(HELD_OUT)},
            (*self.parts, f"{count} samples"),
        )  # fmt: skip


def doubtful_network(seed):
    """Return a random network with a name and samples that follow from a number."""
    return _Maker(np.random.default_rng(seed), f"doubtful_{seed}").make()


def judge(network):
    """Quantize a network by default and by each calibration, on the samples that there are."""
    canonical = simplify(network.graph)
    made = judge_model(network.graph, network.samples)
    found = _results(made.canonical, made.fixed, network.others)
    others = {
        name: _results(
            canonical,
            quantize(canonical, network.samples.inputs, Scheme(calibration=name)),
            network.others,
        )
        for name in CALIBRATIONS
    }
    by = max(others, key=lambda name: others[name])
    return Verdict(found, others[by], by, tuple(each.kind for each in made.warnings))


def _results(canonical, fixed, inputs):
    noise = layer_noise(canonical, fixed, inputs)
    known = [noise[name] for name in fixed.outputs if noise.get(name) is not None]
    return min(known, default=float("inf"))
