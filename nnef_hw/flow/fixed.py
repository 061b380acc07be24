"""Make the fixed graph that is built from a model and its samples."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from nnef_hw.architecture.architecture import AnyArchitecture
from nnef_hw.architectures import AUTO, able_architectures
from nnef_hw.errors import SampleError, UsageError
from nnef_hw.hardware.devices import Device, Target
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.ir import Graph, Stage, Trait
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import Budget, Scheme, equalize, quantize, search_widths
from nnef_hw.quantize.calibration.observe import Progress
from nnef_hw.quantize.judgement.diagnosis import judge_network
from nnef_hw.quantize.judgement.measure import sample_values
from nnef_hw.quantize.judgement.suspicion import suspect_samples
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.quantize.search import WIDTHS
from nnef_hw.samples.samples import Samples

__all__ = [
    "Judged", "Quantized", "buildable", "check_weights", "device_budget", "doubts", "fix_model",
    "judge_model", "quantize_model", "rough", "windows",
]  # fmt: skip

DEFAULT_SCHEME = Scheme()
LOGIC_FOR_MULTIPLIERS = 0.5
"""Share of a device's LUTs that multipliers may take."""
LEAST_JUDGED = 8
MOST_JUDGED_VALUES = 1 << 26
"""Numbers of all samples together that a network is judged by."""


def fix_model(
    graph: Graph,
    samples: Samples | None,
    scheme: Scheme = DEFAULT_SCHEME,
    *,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> tuple[Graph, Graph | None]:
    """Return the fixed graph of a model, and the canonical one it came from (None if fixed).

    Parameters
    ----------
    budget
        Budget of a search for widths of weights; None to use the scheme's widths.
    progress
        Called with the current work, its progress and its total.

    Raises
    ------
    SampleError
        If a model comes without samples, and its author did not quantize it; if widths are to be
        searched with less than two.
    UnsupportedError, ErrorGroup
        If the model has layers that cannot be built.
    UsageError
        If the scheme does not fit the model, or the budget is too small; if a fixed graph is to be
        quantized in another way.
    """
    made = judge_model(graph, samples, scheme, budget=budget, progress=progress, judges=False)
    return made.fixed, made.canonical


@dataclass(frozen=True, slots=True)
class Judged:
    """A fixed model of :func:`fix_model`, and why to doubt it.

    Parameters
    ----------
    fixed, canonical
        See :func:`fix_model`.
    warnings
        Of its samples, and of what it loses.
    """

    fixed: Graph
    canonical: Graph | None
    warnings: tuple[QualityWarning, ...] = ()


def judge_model(
    graph: Graph,
    samples: Samples | None,
    scheme: Scheme = DEFAULT_SCHEME,
    *,
    budget: Budget | None = None,
    progress: Progress | None = None,
    judges: bool = True,
    advises: bool = True,
    check: Callable[[Graph], None] = lambda fixed: None,
) -> Judged:
    """Quantize a model as :func:`fix_model` does, and judge what comes of it.

    Parameters
    ----------
    judges
        Whether to look at the samples, and to compare both networks.
    advises
        Whether to try other schemes if the fixed one loses too much.
    check
        Raises an error for a fixed graph that cannot be built: for schemes that are tried.

    Raises
    ------
    NnefHwError
        As :func:`fix_model`.
    """
    if graph.stage == Stage.FIXED:
        if scheme != DEFAULT_SCHEME or budget is not None:
            raise UsageError(
                f"model {graph.name!r} is fixed: its formats and integers stay as they are",
                remedy="omit the options of quantization, or give the model that it was made from",
            )
        return Judged(graph, None)
    canonical = graph if graph.stage == Stage.CANONICAL else simplify(graph)
    if scheme.equalize:
        canonical, scheme = equalize(canonical), replace(scheme, equalize=False)
    if samples is None:
        if budget is not None:
            raise SampleError(
                "widths cannot be searched without samples",
                remedy="give labelled inputs with --calibrate samples.npz",
            )
        return Judged(quantize(canonical, None, scheme), canonical)
    seen = samples.calibration()
    if budget is not None:
        if len(samples) == 1:
            raise SampleError(
                "widths cannot be searched with one sample: none is left to judge them",
                remedy="give labelled inputs, hundreds of them, with --calibrate samples.npz",
            )
        others = samples.split()[1]
        scheme = search_widths(
            canonical, seen.inputs, (others.inputs, others.labels), scheme, budget, progress
        )
    begin = time.monotonic()
    fixed = quantize(canonical, seen.inputs, scheme, progress)
    if not judges:
        return Judged(fixed, canonical)
    seconds, others = time.monotonic() - begin, _judged_by(canonical, samples)
    calibrates = _needs_samples(canonical)
    if progress is not None:
        progress("comparing", 1, 1)
    warnings = judge_network(
        canonical, fixed, scheme, seen.inputs, (others.inputs, others.labels),
        seconds=seconds if advises and calibrates else math.inf, check=check,
    )  # fmt: skip
    doubted = suspect_samples(canonical, seen.inputs) if calibrates else []
    return Judged(fixed, canonical, (*doubted, *warnings))


def buildable(fixed: Graph) -> None:
    """Raise an error for a fixed graph that no architecture has hardware for."""
    able_architectures(AUTO, fixed)


def doubts(graph: Graph, samples: Samples | None) -> list[QualityWarning]:
    """Return why to doubt the samples of a model, for what only plans with them."""
    if samples is None or graph.stage == Stage.FIXED:
        return []
    canonical = graph if graph.stage == Stage.CANONICAL else simplify(graph)
    return (
        suspect_samples(canonical, samples.calibration().inputs)
        if _needs_samples(canonical)
        else []
    )


def _needs_samples(canonical: Graph) -> bool:
    """Whether samples decide formats: not if the author chose those of the inputs."""
    return any(canonical.tensor(name).quant is None for name in canonical.inputs)


def _judged_by(graph: Graph, samples: Samples) -> Samples:
    """Return samples that did not calibrate; of large networks some of them."""
    others = samples.split()[1]
    most = max(LEAST_JUDGED, MOST_JUDGED_VALUES // max(1, sample_values(graph, others.inputs)))
    return others if len(others) <= most else others[:: -(-len(others) // most)]


def rough(scheme: Scheme) -> Scheme:
    """Return a scheme of the same formats that takes the least time."""
    return replace(
        scheme, calibration="minmax", weight_rounding="nearest", correct_bias=False, equalize=False
    )


@dataclass(frozen=True, slots=True)
class Quantized:
    """A quantized model, and what belongs to it.

    Parameters
    ----------
    fixed, canonical
        See :func:`fix_model`; of a network that runs step by step, those of a step.
    samples
        What it was calibrated with, as this network takes them.
    window
        The fixed network of a whole window, if it runs step by step.
    warnings
        Why to doubt it.
    """

    fixed: Graph
    canonical: Graph | None
    samples: Samples | None
    window: Graph | None = None
    warnings: tuple[QualityWarning, ...] = ()


def quantize_model(
    graph: Graph,
    samples: Samples | None,
    scheme: Scheme = DEFAULT_SCHEME,
    stream: StreamTime | None = None,
    *,
    budget: Budget | None = None,
    progress: Progress | None = None,
    check: Callable[[Graph], None] = lambda canonical: None,
    judges: bool = False,
    check_fixed: Callable[[Graph], None] = lambda fixed: None,
) -> Quantized:
    """Quantize a model as :func:`judge_model` does, one that runs step by step as whole windows.

    Parameters
    ----------
    check
        Called with the canonical network that is built, before anything is calibrated.
    judges, check_fixed
        See :func:`judge_model`.

    Raises
    ------
    NnefHwError
        As :func:`fix_model` and :func:`windows`.
    """
    simple, used = simplify(graph) if graph.stage == Stage.FLOAT else graph, samples
    extended: Mapping[str, StreamRows] = {}
    if stream is not None:
        simple, used, extended = windows(simple, samples, stream)
    check(simple if stream is None else stream.steps(simple)[0])
    made = judge_model(
        simple, used, scheme, budget=budget, progress=progress, judges=judges, check=check_fixed
    )
    fixed, canonical = made.fixed, made.canonical
    if stream is None:
        return Quantized(fixed, canonical, used, warnings=made.warnings)
    step, rows = stream.steps(fixed, extended)
    return Quantized(
        step,
        canonical and stream.steps(canonical, extended)[0],
        used and used.in_steps(rows),
        fixed,
        made.warnings,
    )


def windows(
    graph: Graph, samples: Samples | None, stream: StreamTime
) -> tuple[Graph, Samples | None, dict[str, StreamRows]]:
    """Return the windows of a network that runs step by step, which are quantized.

    Returns
    -------
    Graph
        The network of a window, simplified if it was of the float stage.
    Samples
        Those of the model as samples of that.
    dict
        By input how the model's samples become those.

    Raises
    ------
    UsageError, UnsupportedError, ErrorGroup
        If it cannot run step by step.
    """
    simple = simplify(graph) if graph.stage == Stage.FLOAT else graph
    window, rows = stream.window(simple)
    # Refused before it is calibrated.
    stream.steps(window)
    return window, samples and samples.extended(rows), rows


def check_weights(
    graph: Graph,
    scheme: Scheme,
    target: Target,
    architecture: AnyArchitecture,
    *,
    searched: bool,
) -> None:
    """Refuse a model whose weights alone do not fit, before it is calibrated.

    Parameters
    ----------
    graph
        Canonical graph; one of the fixed stage is left to the plan.
    searched
        Whether the widths of weights will be searched; then they may be the narrowest.

    Raises
    ------
    ShortageError
        If the architecture has no room for them on the target.
    """
    room = architecture.weight_room(target)
    if graph.stage == Stage.FIXED or room is None:
        return
    weights = {}
    for node in graph.nodes:
        if node.has(Trait.WEIGHTS):
            tensor = graph.tensor(node.inputs[1])
            width = scheme.of(node.name).weight_bits
            if tensor.quant is not None:
                width = int(tensor.quant.args["bits"])
            elif searched:
                width = min(width, *WIDTHS)
            weights[node.name] = tensor.volume * width
    room.check(graph.name, weights, target)


def device_budget(accuracy_drop: float, device: Device) -> Budget:
    """Return the budget of a search for a device: its memory, and its multipliers in logic."""
    in_logic = int(device.lut * LOGIC_FOR_MULTIPLIERS) // device.lut_multiplier
    share = in_logic / (in_logic + device.products)
    return Budget(accuracy_drop, memory_bits=8 * device.ram_bytes, multiplier_share=share)
