"""Samples that can hardly be those that a network was trained for: told before calibration."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Trait
from nnef_hw.quantize.judgement.measure import Inputs, sample_values, spread
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.reference import trace_float
from nnef_hw.reference.visible import are_masked

__all__ = ["suspect_samples"]

FEW = 24
"""Samples, or steps of sequences, below which ranges are those of chance."""
MOST_SAMPLES = 32
MOST_VALUES = 1 << 24
LEAST_FOR_RANGE = 4
"""Samples from which on it is told whether their range fits."""
WEAK_LAYER, WEAK_RESULTS = 0.3, 0.15
"""Deviation of the first layer's results over its biases, and share of results that varies, below
which samples are too small for a network."""
STRONG_LAYER, STRONG_INPUT = 100.0, 16.0
"""The same of samples that are too large, and the least size of these."""

SCALING = "scale them as those that the network was trained with, such as 0..1 or 0..255"
BYTE = 255
UNSCALED_BYTES = f"divide them by {BYTE} if the network was trained with numbers of 0 to 1"
UNMASKED = "leave every place a number that it sees, such as its own, or do not use its results"
REPRESENTATIVE = "give 50 or more representative inputs"


def suspect_samples(graph: Graph, inputs: Inputs) -> list[QualityWarning]:
    """Return reasons to doubt that samples are those that a network will see.

    They are few, all zeros, all constant or all the same; the real network gives one result for
    all, or a layer of it the same everywhere; its first layer shows that it was trained for other
    ranges; or masks leave places of a softmax nothing.

    Parameters
    ----------
    graph
        The network, canonical.
    inputs
        Samples that calibrate.
    """
    if not inputs:
        return []
    found = list(_alike(graph, inputs))
    if not any(warning.figures.get("distinct") == 1 for warning in found):
        most = max(2, min(MOST_SAMPLES, MOST_VALUES // max(1, sample_values(graph, inputs))))
        used = spread(inputs, most)
        values = trace_float(graph, used)
        found += _lifeless(graph, used, values)
        found += _masked_whole(graph, values)
    return found


def _alike(graph: Graph, inputs: Inputs) -> Iterator[QualityWarning]:
    """Yield warnings that samples alone give."""
    arrays = {name: np.asarray(x, np.float64) for name, x in inputs.items()}
    first = next(iter(arrays.values()))
    count, steps = len(first), first.shape[1] if graph.is_sequential else 1
    distinct = max(len(np.unique(x.reshape(count, -1)[:FEW], axis=0)) for x in arrays.values())
    if count > FEW and distinct == 1:
        distinct = max(len(np.unique(x.reshape(count, -1), axis=0)) for x in arrays.values())
    figures: dict[str, float | None] = {"samples": count, "distinct": distinct}
    if 1 == distinct < count:
        yield QualityWarning(
            "samples", f"all {count} samples are the same: they calibrate like one",
            REPRESENTATIVE, figures=figures,
        )  # fmt: skip
    elif count * steps < FEW:
        kind = "sequence" if graph.is_sequential else "sample"
        many = "" if count == 1 else "s"
        yield QualityWarning(
            "samples",
            f"{count} {kind}{many} calibrate{'s' if count == 1 else ''}: ranges that so few show "
            "cost trained networks up to 31 dB",
            REPRESENTATIVE, figures=figures,
        )  # fmt: skip
    for name, x in arrays.items():
        if not x.any():
            yield QualityWarning(
                "samples", f"all {x.size:,} numbers of input {name!r} are 0: they show no range",
                REPRESENTATIVE, name, figures,
            )  # fmt: skip
        elif graph.tensor(name).volume > 1 and not np.ptp(x.reshape(count, -1), axis=1).any():
            yield QualityWarning(
                "samples", f"every one of {count} samples of input {name!r} is one number "
                f"repeated, from {x.min():.4g} to {x.max():.4g}",
                REPRESENTATIVE, name, figures,
            )  # fmt: skip


def _lifeless(graph: Graph, inputs: Inputs, values: dict[str, Array]) -> Iterator[QualityWarning]:
    """Yield warnings of layers that stay the same on samples that differ."""
    count = len(next(iter(inputs.values())))
    if count < 2:
        return
    for node in graph.nodes:
        if node.has(Trait.WEIGHTS) and not np.ptp(values[node.name]):
            value = float(np.ravel(values[node.name])[0])
            yield QualityWarning(
                "dead", f"layer {node.name!r} gives {value:.4g} everywhere, for each of {count} "
                "samples: all it feeds is constant",
                SCALING, node.name, {"value": value, "samples": count},
            )  # fmt: skip
            return
    varies = max(_variation(np.asarray(values[name], np.float64)) for name in graph.outputs)
    if not varies:
        yield QualityWarning(
            "dead", f"the real network gives one result for all of {count} samples",
            SCALING, graph.outputs[0], {"samples": count},
        )  # fmt: skip
        return
    if count >= LEAST_FOR_RANGE:
        yield from _out_of_range(graph, inputs, values, varies)


def _masked_whole(graph: Graph, values: dict[str, Array]) -> Iterator[QualityWarning]:
    """Yield each softmax of which a mask hides all that some places have."""
    for node in graph.nodes:
        if node.op != "softmax":
            continue
        scores = np.asarray(values[node.inputs[0]], np.float64)
        channels = _channel_axis(graph)
        greatest = scores.max(axis=channels)
        masked = are_masked(greatest)
        if not masked.any() or not _are_apart(greatest):
            continue
        count, numbers = int(masked.sum()), scores.shape[channels]
        yield QualityWarning(
            "masked",
            f"a mask hides all {numbers} numbers of {count:,} of {masked.size:,} places of softmax "
            f"{node.name!r}: the fixed network gives each of them 1/{numbers}, and the real one "
            "what the mask leaves of them, or NaN",
            UNMASKED, node.name, {"places": masked.size, "masked": count},
        )  # fmt: skip


def _channel_axis(graph: Graph) -> int:
    """Return the axis of channels of a tensor's samples: behind that of steps, if there are any."""
    return 2 if graph.is_sequential else 1


def _are_apart(greatest: Array) -> bool:
    """Whether a mask keeps some numbers far from all others; without one some lie between."""
    found = np.unique(greatest)
    return bool(np.isinf(found[0])) or bool(np.diff(found).max() > (found[-1] - found[0]) / 2)


def _out_of_range(
    graph: Graph, inputs: Inputs, values: dict[str, Array], varies: float
) -> Iterator[QualityWarning]:
    """Compare what samples make of the first layer with its biases, which were trained."""
    layer, ratio = _first_ratio(graph, values)
    if layer is None or ratio is None:
        return
    name = graph.inputs[0]
    lo, hi = (float(end) for end in (inputs[name].min(), inputs[name].max()))
    size = max(abs(lo), abs(hi))
    span = f"samples of input {name!r}, {lo:.4g} to {hi:.4g}, seem"
    figures = {"least": lo, "greatest": hi, "layer_ratio": ratio, "varies": varies}
    if ratio < WEAK_LAYER and varies < WEAK_RESULTS:
        yield QualityWarning(
            "range", f"{span} too small for the network: they move the results of layer {layer!r} "
            f"by {ratio:.2g} of its biases, and those of the network by {varies:.1%}",
            SCALING, name, figures,
        )  # fmt: skip
    elif ratio > STRONG_LAYER and size > STRONG_INPUT:
        yield QualityWarning(
            "range", f"{span} too large for the network: they move the results of layer {layer!r} "
            f"by {ratio:,.0f} times its biases",
            UNSCALED_BYTES if lo >= 0 and hi <= BYTE else SCALING, name, figures,
        )  # fmt: skip


def _first_ratio(graph: Graph, values: dict[str, Array]) -> tuple[str | None, float | None]:
    """Return the first layer that has biases, and what its results deviate over their size."""
    for node in graph.nodes:
        if node.has(Trait.WEIGHTS) and len(node.inputs) > 2:
            bias = float(np.median(np.abs(np.asarray(graph.constant(node.inputs[2]), np.float64))))
            if bias:
                result = np.asarray(values[node.name], np.float64)
                axes = tuple(n for n in range(result.ndim) if n != _channel_axis(graph))
                return node.name, float(np.median(result.std(axis=axes))) / bias
    return None, None


def _variation(y: NDArray[np.float64]) -> float:
    """Return how much results vary over samples, as a share of the largest one."""
    finite = np.where(np.isfinite(y), y, 0.0)
    return float(np.ptp(finite, axis=0).max() / (np.abs(finite).max() or 1.0))
