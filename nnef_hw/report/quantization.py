"""Loss of accuracy by quantization: a fixed network beside the real one, layer by layer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import QType, Requant
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.input_readers import moved_features
from nnef_hw.quantize.calibration.observe import Histogram
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.reference import (
    Drift,
    dequantize_outputs,
    iterate_fixed,
    iterate_float,
    quantize_inputs,
)
from nnef_hw.reference.visible import EVERYTHING, comparable, visible_intervals
from nnef_hw.report.model.quantization import (
    Activation,
    Bars,
    Nats,
    Quantization,
    QuantizationScores,
)
from nnef_hw.samples.samples import Samples
from nnef_hw.samples.scoring import confusion, labelled, nats, score

__all__ = ["describe_quantization", "weight_bytes", "weight_widths"]

FloatArray: TypeAlias = NDArray[np.float64]
Limits: TypeAlias = tuple[FloatArray, FloatArray]

_CHUNK = 16
_MOST_STEPS = 512
"""Steps of sequences whose activations are in memory at once."""
_BARS = 64


@dataclass(slots=True, eq=False)
class _Comparison:
    """Sums over real values and what their codes stand for."""

    lo: float = np.inf
    hi: float = -np.inf
    count: int = 0
    clipped: int = 0
    real: float = 0.0
    fixed: float = 0.0
    product: float = 0.0
    error: float = 0.0
    histogram: Histogram = field(default_factory=Histogram)

    def add(self, finite: FloatArray, fixed: FloatArray, limits: Limits) -> None:
        self.lo = min(self.lo, float(finite.min()))
        self.hi = max(self.hi, float(finite.max()))
        self.count += finite.size
        self.clipped += int(((finite < limits[0]) | (finite > limits[1])).sum())
        self.real += float(np.vdot(finite, finite))
        self.fixed += float(np.vdot(fixed, fixed))
        self.product += float(np.vdot(finite, fixed))
        self.error += float(((finite - fixed) ** 2).sum())
        self.histogram.add(finite, max(abs(self.lo), abs(self.hi)))


def describe_quantization(
    canonical: Graph,
    fixed: Graph,
    samples: Samples | None,
    *,
    calibrated: bool = False,
    warnings: Sequence[QualityWarning] = (),
) -> Quantization:
    """Compare a fixed network with the real one, as ``nnef-hw quantize --json`` prints it.

    Parameters
    ----------
    canonical, fixed
        A network and its quantized form.
    samples
        Samples that calibration did not see, or all if there are few; None describes formats only.
    calibrated
        Whether these samples are those that calibrated.
    warnings
        Why to doubt the network.
    """
    accuracy, classes, steps = None, None, []
    compared: dict[str, _Comparison] = {}
    if samples is not None:
        outputs: dict[str, list[FloatArray]] = {"float": [], "fixed": []}
        drift, moved = None, moved_features(fixed)
        if fixed.is_sequential:
            drift = Drift(fixed, next(iter(samples.inputs.values())).shape[1])
        for real, found in _both(canonical, fixed, samples):
            if drift is not None:
                drift.add(real, found)
            visible = visible_intervals(canonical, real)
            for name, values in found.items():
                if name in real and name not in moved:
                    seen = visible.get(name, EVERYTHING)
                    signal = comparable(real[name], values, seen, _limits(fixed, name))
                    limits = _limits(fixed, name, 0.5)
                    compared.setdefault(name, _Comparison()).add(signal, values, limits)
            outputs["float"].append(real[fixed.outputs[0]])
            outputs["fixed"].append(found[fixed.outputs[0]])
        joined = {key: np.concatenate(parts) for key, parts in outputs.items()}
        if samples.labels is not None:
            judged = {key: _labelled(fixed, y, samples) for key, y in joined.items()}
            scores = {key: score(*pair) for key, pair in judged.items()}
            real_nats, fixed_nats = (
                nats(*judged[key]) if fixed.is_sequential else None for key in ("float", "fixed")
            )
            accuracy = QuantizationScores(
                scores["fixed"].kind, scores["float"].value, scores["fixed"].value,
                None if real_nats is None or fixed_nats is None else Nats(real_nats, fixed_nats),
            )  # fmt: skip
            classes = confusion(*judged["fixed"])
        if drift is not None:
            steps = drift.rows()
    producers = {node.name: node for node in fixed.nodes}
    from_source = {name for name, tensor in canonical.tensors.items() if tensor.quant is not None}
    shown = {**dict.fromkeys((*fixed.inputs, *fixed.states)), **producers}
    return Quantization(
        model=canonical.name,
        weight_bytes=weight_bytes(fixed),
        samples=0 if samples is None else len(samples),
        calibrated=calibrated,
        accuracy=accuracy,
        confusion=None if classes is None else tuple(map(tuple, classes)),
        steps=tuple(steps),
        warnings=tuple(warnings),
        layers=tuple(
            _layer(fixed, name, node, compared.get(name), from_source)
            for name, node in shown.items()
        ),
    )


def _both(
    canonical: Graph, fixed: Graph, samples: Samples
) -> Iterator[tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]]]:
    """Yield real values of both networks, a few samples at a time."""
    steps = next(iter(samples.inputs.values())).shape[1] if fixed.is_sequential else 1
    taken = max(1, min(_CHUNK, _MOST_STEPS // steps))
    for start in range(0, len(samples), taken):
        inputs = samples[start : start + taken].inputs
        real = _joined(iterate_float(canonical, inputs, chunk=_CHUNK))
        found = _joined(iterate_fixed(fixed, quantize_inputs(fixed, inputs)))
        yield real, dequantize_outputs(fixed, found)


def _joined(chunks: Iterator[dict[str, Array]]) -> dict[str, Array]:
    parts = list(chunks)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _labelled(graph: Graph, outputs: FloatArray, samples: Samples) -> tuple[Array, Array]:
    """Return the outputs, of all samples and their steps, that there are labels for; and these."""
    assert samples.labels is not None
    if graph.is_sequential:
        outputs = outputs.reshape(len(samples), -1, *outputs.shape[1:])
    return labelled(graph, outputs, samples.labels)


def _layer(
    graph: Graph,
    name: str,
    node: Node | None,
    found: _Comparison | None,
    from_source: Collection[str],
) -> Activation:
    qtype, features = _qtype(graph, name), graph.features.get(name)
    least, greatest = _limits(graph, name)
    lo, hi = float(np.min(least)), float(np.max(greatest))
    weight_bits = mult_bits = None
    if _has_filter(node):
        weight_bits = _qtype(graph, node.inputs[1]).bits
        requant = node.attrs["requant"]
        mult_bits = max(requant.mult).bit_length() if isinstance(requant, Requant) else 31
    row = Activation(
        name=name,
        op=node.op if node is not None else "state" if name in graph.states else "input",
        location=_location(node),
        bits=qtype.bits,
        signed=qtype.signed,
        scale=tuple(features.scale) if features else qtype.scale,
        zero_point=tuple(features.zero_point) if features else qtype.zero_point,
        range=(lo, hi),
        weight_bits=weight_bits,
        mult_bits=mult_bits,
        given=name in from_source,
        weights_given=_has_filter(node) and any(x in from_source for x in node.inputs[1:2]),
    )
    if found is None:
        return row
    power = (found.real * found.fixed) ** 0.5
    return replace(
        row,
        used=(found.lo, found.hi),
        clipped=found.clipped / found.count,
        sqnr_db=_decibels(found.real, found.error),
        cosine=found.product / power if power else None,
        histogram=_bars(found, lo, hi),
    )


def _has_filter(node: Node | None) -> TypeGuard[Node]:
    return node is not None and node.has(Trait.WEIGHTS)


def _location(node: Node | None) -> str | None:
    """Return where a node stands, without the folders of the file."""
    if node is None or node.location is None:
        return None
    return str(replace(node.location, file=PurePath(node.location.file).name))


def _bars(found: _Comparison, lo: float, hi: float) -> Bars:
    """Return counts in equal bins over all values and the whole format."""
    first, last = min(found.lo, lo), max(found.hi, hi)
    centers, counts = found.histogram.centers, found.histogram.counts
    edges = np.linspace(first, last, _BARS + 1)
    used = counts > 0
    inside = centers[used].clip(first, last)
    bars, _ = np.histogram(inside, edges, weights=counts[used].astype(np.float64))
    return Bars(first, last, tuple(bars.astype(int).tolist()))


def weight_widths(graph: Graph) -> dict[str, int]:
    """Return the bits of a weight by layer of a fixed graph."""
    return {
        node.name: _qtype(graph, node.inputs[1]).bits for node in graph.nodes if _has_filter(node)
    }


def weight_bytes(graph: Graph) -> int:
    """Return the bytes that a fixed graph's weights take, biases apart."""
    widths = weight_widths(graph)
    volumes = {node.name: graph.tensor(node.inputs[1]).volume for node in graph.nodes
               if node.name in widths}  # fmt: skip
    return sum(volume * widths[name] for name, volume in volumes.items()) // 8


def _decibels(signal: float, noise: float) -> float | None:
    return float(10 * np.log10(signal / noise)) if signal and noise else None


def _limits(graph: Graph, name: str, more: float = 0.0) -> Limits:
    """Return the real numbers of the lowest and the highest code, so much of a step further out.

    Of an input with scales for each feature one for each of them.
    """
    qtype = _qtype(graph, name)
    lo, hi = (
        dequantize_outputs(graph, {name: np.asarray(code)})[name]
        for code in (qtype.lo - more, qtype.hi + more)
    )
    return lo, hi


def _qtype(graph: Graph, name: str) -> QType:
    qtype = graph.tensor(name).qtype
    assert qtype is not None, name
    return qtype
