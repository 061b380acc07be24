"""Post-training quantization: choose formats and integers for a real-valued network."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph, Node
from nnef_hw.ir.verify import ARITHMETIC_OPS, ONE_FORMAT_OPS
from nnef_hw.numerics import QType
from nnef_hw.quantize.equalize import equalize
from nnef_hw.quantize.importer import (
    MULT_BITS,
    FixedParams,
    LayerParams,
    argmax_qtype,
    build_fixed,
    softmax_qtype,
)
from nnef_hw.quantize.layer import LayerQuantizer
from nnef_hw.quantize.observe import Observation, Progress, observe
from nnef_hw.quantize.one_format import (
    KEEPS_QTYPE,
    computing_node,
    exact_operands,
    format_owners,
    padded_values,
)
from nnef_hw.quantize.ranges import choose_range
from nnef_hw.quantize.scheme import Scheme
from nnef_hw.quantize.scheme_file import check_layers
from nnef_hw.quantize.simulate import Simulation
from nnef_hw.quantize.source_quantization import source_activation
from nnef_hw.reference import unary_function
from nnef_hw.tables import TABLE_BITS

__all__ = ["choose_params", "choose_widths", "quantize"]

DEFAULT_SCHEME = Scheme()
LAYERS = {"conv", "linear"}
_SCALED_OPS = ARITHMETIC_OPS - ONE_FORMAT_OPS

_LARGEST_FACTOR = 256.0
"""Output steps per accumulator step: coarser accumulators mean a range that is not real."""


def quantize(
    graph: Graph,
    samples: Mapping[str, NDArray[Any]] | None,
    scheme: Scheme = DEFAULT_SCHEME,
    progress: Progress | None = None,
) -> Graph:
    """Turn a canonical graph into a fixed one.

    Formats and codes that the model's author chose are kept.

    Parameters
    ----------
    graph
        Of the canonical stage.
    samples
        Real calibration inputs, one array [N, ...] per graph input; None if the graph is
        quantized already.
    scheme
        Formats of what is not quantized already.
    progress
        Is told how many samples have been seen, then how many layers are quantized.

    Raises
    ------
    UnsupportedError
        If a given format has more bits than the operator behind it reads, or does not exist in
        hardware.
    SampleError
        If the samples do not fit the graph, or are needed and missing.
    UsageError
        If the scheme names layers that do not exist.
    """
    if scheme.equalize:
        graph = equalize(graph)
    return build_fixed(graph, choose_params(graph, samples, scheme, progress))


def choose_params(
    graph: Graph,
    samples: Mapping[str, NDArray[Any]] | None,
    scheme: Scheme = DEFAULT_SCHEME,
    progress: Progress | None = None,
) -> FixedParams:
    """Return the formats and integers for a canonical graph; see :func:`quantize`.

    ``scheme.equalize`` plays no part: it changes the graph.
    """
    return _chooser(graph, samples, scheme, progress).choose()


def choose_widths(
    graph: Graph,
    samples: Mapping[str, NDArray[Any]],
    scheme: Scheme,
    widths: Collection[int],
    progress: Progress | None = None,
) -> tuple[FixedParams, dict[str, dict[int, LayerParams]]]:
    """Return what :func:`choose_params` does, and layers with weights of other widths.

    They are by node name and width; each is for a network whose other layers have the scheme's.
    Layers whose author quantized them are left out.
    """
    chooser = _chooser(graph, samples, scheme, progress)
    chooser.widths = widths
    params = chooser.choose()
    return params, chooser.other_widths


def _chooser(
    graph: Graph,
    samples: Mapping[str, NDArray[Any]] | None,
    scheme: Scheme,
    progress: Progress | None,
) -> _Chooser:
    check_layers(scheme, graph)
    if samples is None:
        return _Chooser(graph, scheme, {}, None, None)
    found = observe(graph, samples, progress)
    schemes = (scheme, *map(scheme.of, scheme.layers))
    simulation = None
    if any(s.correct_bias or s.weight_rounding == "adaptive" for s in schemes):
        simulation = Simulation(graph, samples) if Simulation.is_possible(graph) else None
    return _Chooser(graph, scheme, found, simulation, progress)


class _Chooser:
    def __init__(
        self,
        graph: Graph,
        scheme: Scheme,
        found: Mapping[str, Observation],
        simulation: Simulation | None,
        progress: Progress | None,
    ) -> None:
        self._progress = progress
        self._graph = graph
        self._scheme = scheme
        self._found = found
        self._simulation = simulation
        self._formats: dict[str, QType] = {}
        self._layers: dict[str, LayerParams] = {}
        self._owners = format_owners(graph) if found else {}
        self._narrow = exact_operands(graph)
        self._padded = padded_values(graph)
        self.widths: Collection[int] = ()
        self.other_widths: dict[str, dict[int, LayerParams]] = {}

    def choose(self) -> FixedParams:
        graph, formats, simulation = self._graph, self._formats, self._simulation
        if not self._found:
            self._check_complete()
        for name in graph.inputs:
            formats[name] = source_activation(graph.tensor(name)) or self._observed(name)
            if simulation is not None:
                simulation.quantize_input(name, formats[name])
        for number, node in enumerate(graph.nodes, start=1):
            layer = None
            if node.op in LAYERS:
                scheme = self._scheme.of(node.name)
                layer = LayerQuantizer(graph, node, scheme, formats[node.inputs[0]], simulation)
            formats[node.name] = self._format(node, layer)
            if layer is not None:
                self._layers[node.name] = layer.finish(formats[node.name])
                if not layer.is_given:
                    self.other_widths[node.name] = {
                        bits: layer.finish(formats[node.name], bits) for bits in self.widths
                    }
            if simulation is not None:
                simulation.advance(node, formats[node.name], self._constants(node))
            if self._progress is not None:
                self._progress("quantizing layers", number, len(graph.nodes))
        mult_bits = {node.name: self._mult_bits(node) for node in graph.nodes}
        return FixedParams(formats, self._layers, mult_bits, self._scheme.rounding)

    def _scheme_of(self, name: str) -> Scheme:
        """Return the scheme of an activation, with no more bits than what reads it takes."""
        scheme = self._scheme.of(name)
        if name in self._narrow and scheme.activation_bits > TABLE_BITS:
            return replace(scheme, activation_bits=TABLE_BITS)
        return scheme

    def _mult_bits(self, node: Node) -> int:
        wanted = self._scheme.of(node.name).mult_bits
        return wanted if node.op in LAYERS else max(wanted, MULT_BITS)

    def _constants(self, node: Node) -> dict[str, NDArray[np.float64]]:
        """Return the real numbers that the codes of a node's constants stand for."""
        if node.op in LAYERS:
            layer = self._layers[node.name]
            return dict(
                zip(node.inputs[1:], layer.real(_scale(self._formats[node.inputs[0]])), strict=True)
            )
        values = {}
        for name in node.inputs:
            data = self._graph.tensor(name).data
            if data is not None:
                qtype = self._formats.get(name, self._formats[node.name])
                values[name] = qtype.dequantize(qtype.quantize(data))
        return values

    def _format(self, node: Node, layer: LayerQuantizer | None) -> QType:
        """Return the format of a result; choose those of constants."""
        formats = self._formats
        if node.op in KEEPS_QTYPE:
            return formats[node.inputs[0]]
        if node.op == "softmax":
            return softmax_qtype(self._scheme.rounding)
        if node.op == "argmax_reduce":
            return argmax_qtype(self._graph.tensor(node.inputs[0]).shape[1])
        step = self._accumulator_step(node) if layer is None else layer.step
        given = source_activation(self._graph.tensor(node.name))
        if given is not None:
            return given
        if node.op in ONE_FORMAT_OPS:
            return self._joint(self._owners.get(node.name, node.name))
        if node.name in self._owners:
            joint = self._joint(self._owners[node.name])
            if step <= self._largest_factor(node) * _scale(joint):
                return joint
        return self._computed(node, step / self._largest_factor(node))

    def _largest_factor(self, node: Node) -> float:
        """Return how many steps of its result one in a node's accumulator may be."""
        return min(_LARGEST_FACTOR, ((1 << self._mult_bits(node)) - 1) / 2)

    def _accumulator_step(self, node: Node) -> float:
        """Return what one more in a node's accumulator means, 0 if it has none."""
        formats = self._formats
        if node.op in {"avg_pool", "box"}:
            return _scale(formats[node.inputs[0]])
        if node.op not in _SCALED_OPS:
            return 0.0
        for name in node.inputs:
            tensor = self._graph.tensor(name)
            if tensor.data is not None:
                formats[name] = source_activation(tensor) or self._scheme_of(node.name).activation(
                    *self._span(name)
                )
        first, second = (_scale(formats[name]) for name in node.inputs)
        return first * second if node.op == "mul" else max(first, second)

    def _joint(self, owner: str) -> QType:
        """Return the format of a ``max``, ``min`` or ``concat``: the union of its operands'."""
        given = source_activation(self._graph.tensor(owner))
        if given is not None:
            return given
        results = {owner, *(name for name, other in self._owners.items() if other == owner)}
        operands = {
            name
            for node in self._graph.nodes
            if node.op in ONE_FORMAT_OPS and node.name in results
            for name in node.inputs
        }
        known = {self._formats.get(name) for name in operands}
        if len(known) == 1 and (common := known.pop()) is not None:
            return common
        spans = [self._span(name) for name in operands]
        spans += [(value, value) for name in results for value in self._padded.get(name, ())]
        scheme = self._scheme_of(owner)
        return scheme.activation(min(lo for lo, _ in spans), max(hi for _, hi in spans))

    def _check_complete(self) -> None:
        """Refuse to do without samples what needs them."""
        graph = self._graph
        needing = [*graph.inputs, *(node.name for node in graph.nodes if node.op in LAYERS)]
        missing = [name for name in needing if graph.tensor(name).quant is None]
        if not missing:
            return
        what = "is not quantized"
        if any(tensor.quant is not None for tensor in graph.tensors.values()):
            rest = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            what = f"does not say how to quantize {', '.join(missing[:3])}{rest}"
        raise SampleError(
            f"model {graph.name!r} {what} and no samples were given",
            remedy="give representative inputs with --calibrate samples.npz",
        )

    def _observed(self, name: str, least_scale: float = 0.0) -> QType:
        return self._scheme_of(name).activation(*self._span(name), least_scale)

    def _span(self, name: str) -> tuple[float, float]:
        """Return the range that a format must cover: grown, where samples show too little."""
        tensor = self._graph.tensor(name)
        if tensor.data is not None:
            return float(tensor.data.min()), float(tensor.data.max())
        if not self._found and name in self._formats:
            return _limits(self._formats[name])
        if name not in self._found:
            raise SampleError(
                f"the format of {name!r} must be chosen and no samples were given",
                remedy="give representative inputs with --calibrate samples.npz",
            )
        scheme, node = self._scheme_of(name), computing_node(self._graph, name)
        lo, hi = choose_range(self._found[name], scheme)
        has_headroom = node is not None and node.op in LAYERS | _SCALED_OPS
        if has_headroom and scheme.calibration == "minmax" and not scheme.power_of_two:
            lo, hi = lo * (1.0 + scheme.headroom), hi * (1.0 + scheme.headroom)
        padded = self._padded.get(name, ())
        return min(lo, *padded, lo), max(hi, *padded, hi)

    def _computed(self, node: Node, least_scale: float) -> QType:
        """Return the format of a result that its author did not quantize."""
        if node.op in LAYERS or self._found:
            return self._observed(node.name, least_scale)
        if node.op == "avg_pool":
            return self._formats[node.inputs[0]]
        if node.op in _SCALED_OPS:
            return self._scheme_of(node.name).activation(*self._sums(node))
        if node.op == "box":
            lo, hi = _limits(self._formats[node.inputs[0]])
            taps = math.prod(node.attrs["size"])
            return self._scheme_of(node.name).activation(lo * taps, hi * taps)
        return self._scheme_of(node.name).activation(*self._image(node))

    def _sums(self, node: Node) -> tuple[float, float]:
        """Return the range of all sums or products that two formats have."""
        first, second = (_limits(self._formats[name]) for name in node.inputs)
        combine = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[node.op]
        corners = combine.outer(first, second)
        return float(corners.min()), float(corners.max())

    def _image(self, node: Node) -> tuple[float, float]:
        """Return the range of all values that a function has on the codes of its input."""
        source = self._formats[node.inputs[0]]
        with np.errstate(all="ignore"):
            values = unary_function(node)(source.dequantize(np.arange(source.lo, source.hi + 1)))
        finite = values[np.isfinite(values)]
        return float(finite.min(initial=0.0)), float(finite.max(initial=0.0))


def _limits(qtype: QType) -> tuple[float, float]:
    lo, hi = qtype.dequantize([qtype.lo, qtype.hi]).tolist()
    return lo, hi


def _scale(qtype: QType) -> float:
    assert not isinstance(qtype.scale, tuple), "activations have one scale"
    return qtype.scale
