"""Find logarithms of a spectrogram's bands that a network computes of its samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from nnef_hw.arithmetic.audio.log_bands import LogBands
from nnef_hw.arithmetic.numerics import FloatArray
from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.passes.audio.measured_bands import Power, measure
from nnef_hw.passes.rewriting.editor import Editor, emit_part, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass
from nnef_hw.reference.float import run_float

__all__ = ["MergeLogBands"]

_BASES: Mapping[str, float] = {"log": math.e, "log2": 2.0}
"""Bases of logarithms by their operators."""

_MOVES = frozenset({"concat", "pad", "reshape", "slice", "squeeze", "transpose", "unsqueeze"})
"""Operators that compute nothing of samples."""

_INSIDE = _MOVES | {
    "abs", "add", "clamp", "conv", "div", "einsum", "gather", "linear", "matmul", "max", "mul",
    "pow", "split", "sqr", "sqrt", "stack", "sub", "sum_reduce", "unstack",
}  # fmt: skip
"""Operators of which a spectrogram is written."""

_LEAST_SAMPLES = 32

_SEED = 1
_ROUNDING = 1e-6
"""Relative error of samples that are computed in 24 bits."""
_DIGITS = 6
"""Digits of an emphasis."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Logarithms of bands, and the tensors around them.

    Parameters
    ----------
    source
        The samples.
    bands
        What is computed of them.
    frames
        How many frames there are.
    frames_first
        Whether the result has frames before bands.
    mirrored
        Samples that are mirrored at the first one, and at the last one.
    before
        Zeros before the first sample.
    """

    source: str
    bands: LogBands
    frames: int
    frames_first: bool
    mirrored: tuple[int, int] = (0, 0)
    before: int = 0


class _Samples(NamedTuple):
    """Samples of an input, less a share of the sample before each.

    Attributes
    ----------
    source
        The samples.
    emphasis
        The share.
    before
        Zeros before the first sample: 1, or 0 where the first one gives no result.
    """

    source: str
    emphasis: float = 0.0
    before: int = 0


@dataclass(frozen=True, slots=True)
class MergeLogBands(Pass):
    """Rewrite the logarithm of a spectrogram's bands, computed of an input, as ``log_bands``.

    * frames, window, discrete Fourier transform, powers or magnitudes, a matrix of weights,
      ``log(x + floor)`` or ``log(max(x, floor))``, in whatever operators an exporter has written
      them: what noise, silence and single samples give tells
    * an emphasis of samples before them, ``x[n] - p * x[n - 1]``

    Left alone: transforms whose points are no power of two, windows and weights with a sign,
    weights of bin 0 or of the last one; samples that are computed, or have a format of the
    author's.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        found = {node.name: _find(graph, node) for node in graph.nodes if node.op in _BASES}
        editor = Editor(graph)
        for node in graph.nodes:
            bands = found.get(node.name)
            if bands is None:
                editor.keep(node)
            else:
                _emit(editor, node, bands)
        return editor.finish()


def _emit(editor: Editor, node: Node, found: _Found) -> None:
    """Emit the operator for a logarithm."""
    like = editor.tensors[node.name]
    samples = editor.tensors[editor.resolve(found.source)]
    bands = len(found.bands.first)
    audio = editor.activation(f"{node.name}_samples", (1, 1, samples.volume, 1), samples)
    editor.emit(reshape_node(samples.name, audio, (1, 1, samples.volume, 1), node))
    if not any(found.mirrored):
        used = found.bands.reach - found.before + (found.frames - 1) * found.bands.hop
        audio = emit_part(editor, node, audio, 2, 0, used)
    features = editor.activation(f"{node.name}_bands", (1, bands, found.frames, 1), like)
    attrs = {
        **{key: list(x) if isinstance(x, tuple) else x for key, x in asdict(found.bands).items()},
        "padding": [found.mirrored if any(found.mirrored) else (found.before, 0), (0, 0)],
        "border": "reflect" if any(found.mirrored) else "constant",
    }  # fmt: skip
    editor.emit(Node("log_bands", (audio,), (features,), attrs, node.location))
    if found.frames_first:
        turned = editor.activation(f"{node.name}_frames", (1, found.frames, bands, 1), like)
        axes = {"axes": [0, 2, 1, 3]}
        editor.emit(Node("transpose", (features,), (turned,), axes, node.location))
        features = turned
    editor.emit(reshape_node(features, node.name, like.shape, node))


def _find(graph: Graph, node: Node) -> _Found | None:
    """Return the bands that a logarithm is of; None if it is of others."""
    result = graph.tensor(node.inputs[0])
    shape = [n for n in result.shape if n > 1]
    if result.quant is not None or not 1 <= len(shape) <= 2:
        return None
    for source, inside, samples in _sources(graph, result.name):
        function = _function(graph, inside, source, result)
        for frames_first in (True, False):
            frames = 1 if len(shape) == 1 else shape[0 if frames_first else 1]
            found = measure(_bands(function, frames, frames_first), source.volume, frames)
            bands = None if found is None else found.logarithm(_BASES[node.op])
            if bands is None:
                continue
            if samples.emphasis:
                bands = replace(bands, emphasis=samples.emphasis)
                return _Found(samples.source, bands, frames, frames_first, before=samples.before)
            name, mirrored = _mirrored(graph, source.name)
            return _Found(name, bands, frames, frames_first, mirrored)
    return None


def _sources(graph: Graph, name: str) -> Iterator[tuple[Tensor, list[Node], _Samples]]:
    """Yield tensors of which alone a tensor is computed, and these nodes: the farthest ones first.

    They are samples of an input, moved or emphasized at most.
    """
    order = {each: place for place, node in enumerate(graph.nodes) for each in node.outputs}
    places: set[int] = set()
    open_tensors, found = {name}, []
    computed: list[tuple[str, set[int]]] = []
    while open_tensors:
        last = max(open_tensors, key=lambda each: order.get(each, -1))
        if len(open_tensors) == 1 and _is_row(graph, last):
            if not _is_sound(graph, last):
                computed.append((last, set(places)))
            else:
                for row, behind in computed:
                    nodes = _in_order(graph, places - behind)
                    samples = _emphasized(graph, nodes, graph.tensor(last), graph.tensor(row))
                    if samples is not None:
                        found.append((graph.tensor(row), _in_order(graph, behind), samples))
                found.append((graph.tensor(last), _in_order(graph, places), _Samples(last)))
                computed = []
        node = graph.producer(last)
        if node is None or node.op not in _INSIDE:
            break
        places.add(order[last])
        open_tensors -= set(node.outputs)
        open_tensors |= {x for x in node.inputs if graph.tensor(x).data is None}
    yield from reversed(found)


def _in_order(graph: Graph, places: Collection[int]) -> list[Node]:
    return [graph.nodes[place] for place in sorted(places)]


def _emphasized(graph: Graph, nodes: list[Node], source: Tensor, result: Tensor) -> _Samples | None:
    """Return how nodes make a row of samples of another one, if that is an emphasis."""
    before = result.volume - source.volume + 1
    if before not in {0, 1}:
        return None
    x = np.random.default_rng(_SEED).normal(size=(1, source.volume))
    given = _function(graph, nodes, source, result)(x)[0]
    samples, earlier = x[0, 1 - before :], np.pad(x[0], (before, 0))[:-1]
    emphasis = float(f"{earlier @ (samples - given) / (earlier @ earlier):.{_DIGITS}g}")
    error = np.abs(samples - emphasis * earlier - given).max()
    is_right = 0 < emphasis < 1 and error <= _ROUNDING * np.abs(given).max()
    return _Samples(source.name, emphasis, before) if is_right else None


def _mirrored(graph: Graph, name: str) -> tuple[str, tuple[int, int]]:
    """Return the samples behind a border that mirrors them, and how many it mirrors."""
    node = graph.producer(name)
    while node is not None and node.op in {"reshape", "squeeze", "transpose", "unsqueeze"}:
        node = graph.producer(node.inputs[0])
    if node is None or node.op != "pad" or node.attrs["border"] != "reflect":
        return name, (0, 0)
    [before_and_after] = [pair for pair in node.attrs["padding"] if any(pair)]
    return node.inputs[0], (int(before_and_after[0]), int(before_and_after[1]))


def _is_row(graph: Graph, name: str) -> bool:
    """Whether a tensor is as many numbers in a row as a transform needs."""
    tensor = graph.tensor(name)
    return tensor.volume >= _LEAST_SAMPLES and max(tensor.shape) == tensor.volume


def _is_sound(graph: Graph, name: str) -> bool:
    """Whether a row is samples of an input, one after the other."""
    while name not in graph.inputs:
        node = graph.producer(name)
        moved = [x for x in node.inputs if graph.tensor(x).data is None] if node else []
        if node is None or node.op not in _MOVES or len(moved) != 1:
            return False
        name = moved[0]
    given = graph.tensor(name)
    return given.quant is None and given.dtype == "scalar"


def _function(graph: Graph, nodes: list[Node], source: Tensor, result: Tensor) -> Power:
    """Return the function of samples [N, samples] that nodes of a graph compute."""
    names = {source.name, *(name for node in nodes for name in (*node.inputs, *node.outputs))}
    tensors = {name: graph.tensor(name) for name in names}
    alone = Graph(graph.name, (source.name,), (result.name,), tensors, tuple(nodes), graph.stage)

    def compute(x: FloatArray) -> FloatArray:
        values = run_float(alone, {source.name: x.reshape(len(x), *source.shape)})
        return np.asarray(values[result.name], np.float64).reshape(len(x), -1)

    return compute


def _bands(function: Power, frames: int, frames_first: bool) -> Power:
    """Return the function's result as [N, frames, bands]."""

    def compute(x: FloatArray) -> FloatArray:
        values = function(x)
        if frames_first:
            return values.reshape(len(x), frames, -1)
        return values.reshape(len(x), -1, frames).transpose(0, 2, 1)

    return compute
