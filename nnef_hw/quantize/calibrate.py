"""Post-training quantization: choose formats and integers for a real-valued network."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph, Node, State, Trait, open_states
from nnef_hw.quantize.calibration.equalize import equalize
from nnef_hw.quantize.calibration.feature_scales import scale_features
from nnef_hw.quantize.calibration.observe import Observation, Progress, observe
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.quantize.calibration.simulate import Simulation
from nnef_hw.quantize.format_rules import needs_format
from nnef_hw.quantize.formats import Formats
from nnef_hw.quantize.importer import build_fixed
from nnef_hw.quantize.layer import LayerQuantizer
from nnef_hw.quantize.loops import step_samples
from nnef_hw.quantize.params import FixedParams, LayerParams
from nnef_hw.quantize.scheme_file import check_layers

__all__ = ["choose_params", "choose_widths", "quantize"]

DEFAULT_SCHEME = Scheme()


def quantize(
    graph: Graph,
    samples: Mapping[str, Array] | None,
    scheme: Scheme = DEFAULT_SCHEME,
    progress: Progress | None = None,
) -> Graph:
    """Turn a canonical graph into a fixed one.

    Formats and codes that the model's author chose are kept.

    Parameters
    ----------
    graph
        Graph of the canonical stage.
    samples
        Real calibration inputs, one array [N, ...] per graph input; sequences [N, T, ...] if it has
        states. None if the graph is quantized already.
    scheme
        Formats of tensors that are not quantized already.
    progress
        Called with the number of samples seen, then with the number of layers quantized.

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
    if samples is None:
        return build_fixed(graph, choose_params(graph, None, scheme, progress))
    check_layers(scheme, open_states(graph))
    scaled = scale_features(graph, samples, scheme)
    params = choose_params(scaled.graph, scaled.samples, scheme, progress)
    return replace(build_fixed(scaled.graph, params), features=scaled.scales)


def choose_params(
    graph: Graph,
    samples: Mapping[str, Array] | None,
    scheme: Scheme = DEFAULT_SCHEME,
    progress: Progress | None = None,
) -> FixedParams:
    """Return the formats and integers for a canonical graph; see :func:`quantize`.

    ``scheme.equalize`` and ``scheme.feature_scales`` play no part: they change the graph.
    """
    return _chooser(graph, samples, scheme, progress).choose()


def choose_widths(
    graph: Graph,
    samples: Mapping[str, Array],
    scheme: Scheme,
    widths: Collection[int],
    progress: Progress | None = None,
) -> tuple[FixedParams, dict[str, dict[int, LayerParams]]]:
    """Call :func:`choose_params`, and return layers with weights of other widths, too.

    They are by node name and width; each is for a network whose other layers have the scheme's.
    Layers whose author quantized them are left out.
    """
    chooser = _chooser(graph, samples, scheme, progress)
    chooser.widths = widths
    params = chooser.choose()
    return params, chooser.other_widths


def _chooser(
    graph: Graph,
    samples: Mapping[str, Array] | None,
    scheme: Scheme,
    progress: Progress | None,
) -> _Chooser:
    check_layers(scheme, open_states(graph))
    if scheme.rounding == "author":
        scheme = replace(scheme, rounding=graph.rounding or "half_up")
    states, step = graph.states, open_states(graph)
    if samples is None:
        return _Chooser(step, states, scheme, {}, None, None)
    samples, graph = step_samples(graph, samples), step
    found = observe(graph, samples, progress)
    schemes = (scheme, *map(scheme.of, scheme.layers))
    simulation = None
    if any(s.correct_bias or s.weight_rounding == "adaptive" for s in schemes):
        simulation = Simulation(graph, samples) if Simulation.is_possible(graph) else None
    return _Chooser(graph, states, scheme, found, simulation, progress)


class _Chooser:
    """Chooses for one step of a network with these states."""

    def __init__(
        self,
        graph: Graph,
        states: Mapping[str, State],
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
        self._formats = Formats(graph, scheme, found, states)
        self._layers: dict[str, LayerParams] = {}
        self.widths: Collection[int] = ()
        self.other_widths: dict[str, dict[int, LayerParams]] = {}

    def choose(self) -> FixedParams:
        graph, formats, simulation = self._graph, self._formats, self._simulation
        if not self._found:
            self._check_complete()
        for name in graph.inputs:
            qtype = formats.choose_input(name)
            if simulation is not None:
                simulation.quantize_input(name, qtype, formats.seen(name))
        for number, node in enumerate(graph.nodes, start=1):
            qtype = self._choose_layer(node) if node.has(Trait.WEIGHTS) else formats.choose(node)
            if simulation is not None:
                simulation.advance(node, qtype, self._constants(node), formats.seen(node.name))
            if self._progress is not None:
                self._progress("quantizing layers", number, len(graph.nodes))
        mult_bits = {node.name: formats.mult_bits(node) for node in graph.nodes}
        masked = frozenset(
            node.name
            for node in graph.nodes
            if node.op == "softmax" and formats.is_masked(node.inputs[0])
        )
        rounding = self._scheme.rounding
        return FixedParams(formats.chosen, self._layers, mult_bits, rounding, masked)

    def _choose_layer(self, node: Node) -> QType:
        """Choose the format and the integers of a ``conv`` or ``linear``; return the format."""
        scheme, source = self._scheme.of(node.name), self._formats.chosen[node.inputs[0]]
        layer = LayerQuantizer(
            self._graph,
            node,
            scheme,
            source,
            self._simulation,
            shown=self._formats.shown_sum(node),
            covered=self._formats.covered(node),
        )
        self._formats.layer_steps[node.name] = layer.step
        target = self._formats.choose(node)
        self._layers[node.name] = layer.finish(target)
        if not layer.has_source_codes:
            self.other_widths[node.name] = {
                bits: layer.finish(target, bits) for bits in self.widths
            }
        return target

    def _constants(self, node: Node) -> dict[str, NDArray[np.float64]]:
        """Return the real numbers that the codes of a node's constants stand for."""
        formats = self._formats
        if node.has(Trait.WEIGHTS):
            real = self._layers[node.name].real(formats.scale(node.inputs[0]))
            return dict(zip(node.inputs[1:], real, strict=True))
        values = {}
        for name in node.inputs:
            data = self._graph.tensor(name).data
            if data is not None:
                qtype = formats.chosen.get(name, formats.chosen[node.name])
                values[name] = qtype.dequantize(qtype.quantize(data))
        return values

    def _check_complete(self) -> None:
        """Raise SampleError if a tensor needs samples to be quantized."""
        graph = self._graph
        needing = [*graph.inputs, *(node.name for node in graph.nodes if needs_format(node))]
        missing = [
            name
            for name in needing
            if graph.tensor(name).quant is None and self._formats.only(name) is None
        ]
        if not missing:
            return
        what = "is not quantized"
        if any(tensor.quant is not None for tensor in graph.tensors.values()):
            others = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            what = f"does not say how to quantize {', '.join(missing[:3])}{others}"
        raise SampleError(
            f"model {graph.name!r} {what} and no samples were given",
            remedy="give representative inputs with --calibrate samples.npz",
        )
