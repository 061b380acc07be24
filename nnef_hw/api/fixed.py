"""A quantized network: the integers that the hardware computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from nnef_hw.api.plan import Plan, Wishes
from nnef_hw.api.show import Shown, framed
from nnef_hw.architectures import AUTO, able_architectures, unable_architectures
from nnef_hw.arithmetic.arrays import Array
from nnef_hw.boards.interfaces import DEFAULT_LINK
from nnef_hw.errors import SampleError
from nnef_hw.flow.choice import Candidates, Goal, choose_plan, choose_soonest
from nnef_hw.flow.clock import slower_clocks
from nnef_hw.flow.options import PlannedModel, check_goal, check_wishes, find_target
from nnef_hw.flow.remedy import Asked, Ways, remedied
from nnef_hw.frontend import graph_hash, save
from nnef_hw.ir import Graph
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize.judgement.diagnosis import loss_warnings, with_remedies
from nnef_hw.quantize.judgement.measure import measure
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed
from nnef_hw.report.model.quantization import Quantization, QuantizationScores
from nnef_hw.report.pages.quantization_html import render_quantization
from nnef_hw.report.quantization import describe_quantization, weight_bytes, weight_widths
from nnef_hw.report.wording import units
from nnef_hw.report.wording.tables import rows_table
from nnef_hw.samples.samples import Given, Samples, take_samples

__all__ = ["Comparison", "FixedModel"]


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Losses of a fixed model against the real one, layer by layer.

    Parameters
    ----------
    described
        What ``nnef-hw quantize --report`` shows: ``accuracy``, ``layers`` with their ``sqnr_db``,
        ranges, histograms.
    """

    described: Quantization

    @property
    def accuracy(self) -> QuantizationScores | None:
        """``metric``, accuracy (0..1) or mae, of ``float`` and ``fixed``; None without labels."""
        return self.described.accuracy

    @property
    def warnings(self) -> list[QualityWarning]:
        """Why to doubt the fixed model."""
        return list(self.described.warnings)

    @property
    def sqnr_db(self) -> dict[str, float | None]:
        """Signal to quantization noise of every layer's result in dB; None if there is no noise."""
        return {layer.name: layer.sqnr_db for layer in self.described.layers}

    def _parts(self) -> Iterator[RenderableType]:
        described = self.described
        scored = units.scored_samples(described.samples, calibrated=described.calibrated)
        yield Text(f"{described.model}: float and fixed on {scored}")
        if self.accuracy is not None:
            metric = self.accuracy.metric
            real, found = (
                units.score(x, metric) for x in (self.accuracy.float, self.accuracy.fixed)
            )
            yield Text(f"{metric}: float {real}, fixed {found}")
            if self.accuracy.nats is not None:
                own = self.accuracy.nats
                yield Text(f"nats per label: float {own.float:.4f}, fixed {own.fixed:.4f}")
        yield rows_table([
            {"name": layer.name, "op": layer.op, "sqnr_db": layer.sqnr_db}
            for layer in described.layers
        ])
        yield from map(Text, map(str, self.warnings))

    def _repr_html_(self) -> str:
        return framed(render_quantization(self.described))


class FixedModel(Shown):
    """A network in the formats of the hardware; :meth:`nnef_hw.api.Model.quantize` makes it.

    Parameters
    ----------
    fixed
        The quantized network.
    graph
        What it was made of, as it was read.
    canonical
        The same as the passes left it, in real numbers; None if there were only integers.
    samples
        What it was calibrated and will be verified with.
    window
        Of the steps of another one: that network of a whole window.
    warnings
        Why to doubt it: its samples, or what it loses, and what helps.
    """

    def __init__(
        self,
        fixed: Graph,
        *,
        graph: Graph,
        canonical: Graph | None,
        samples: Samples | None,
        window: Graph | None = None,
        warnings: tuple[QualityWarning, ...] = (),
    ) -> None:
        self.graph, self.warnings = fixed, warnings
        self._source, self._canonical, self._samples = graph, canonical, samples
        self._window = window

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.graph.name

    @property
    def hash(self) -> str:
        """Digest of all integers and formats of the network; a board tells it of its build."""
        return graph_hash(self.graph)

    @property
    def weight_bytes(self) -> int:
        """Bytes that all weights take at their widths."""
        return weight_bytes(self.graph)

    @cached_property
    def weight_bits(self) -> dict[str, int]:
        """Width of every layer's weights."""
        return weight_widths(self.graph)

    def run(self, inputs: Given) -> dict[str, Array]:
        """Compute in integers: exactly what the hardware will give.

        Parameters
        ----------
        inputs
            Real numbers, as :meth:`nnef_hw.api.Model.run` takes them.

        Returns
        -------
        dict
            Outputs [N, ...] by name, as real numbers that codes stand for.

        Raises
        ------
        SampleError
            If an input is missing, or its shape or its numbers do not fit.
        """
        return {**dequantize_outputs(self.graph, self.run_codes(inputs))}

    def run_codes(self, inputs: Given) -> dict[str, Array]:
        """Compute the same, and return the codes."""
        samples = take_samples(inputs, self.graph)
        return {**run_fixed(self.graph, quantize_inputs(self.graph, samples.inputs))}

    def compare(self, samples: Given | None = None) -> Comparison:
        """Compare with the real model: accuracy where there are labels, and noise by layer.

        Parameters
        ----------
        samples
            By default those of the calibration that were left for this, or all if they are few.

        Raises
        ------
        SampleError
            If there are none.
        """
        calibrated, warnings = False, self.warnings
        if samples is not None:
            taken = take_samples(samples, self.graph)
            if self._canonical is not None:
                found = measure(self._canonical, self.graph, taken.inputs, taken.labels)
                losses = loss_warnings(self._canonical, found, taken.labels)
                warnings = tuple(with_remedies(losses, self.warnings))
        elif self._samples is not None:
            taken = self._samples.split()[1]
            calibrated = self._samples.are_few and self._canonical is not None
        else:
            raise SampleError("there are no samples to compare with", remedy="give some")
        described = describe_quantization(
            self._canonical or self.graph, self.graph, taken, calibrated=calibrated,
            warnings=warnings,
        )  # fmt: skip
        return Comparison(described)

    def steps(self, axis: int | None = None) -> FixedModel:
        """Return the network that runs a network of windows step by step, with states.

        A step takes the new rows of a stream only; a result equals that of the window that ends
        with them. Samples may be windows still, or longer pieces of a stream.

        Parameters
        ----------
        axis
            Axis of time in the shapes of the inputs; None if these tell it: the last one of
            [1, C, T], the rows of [1, C, T, 1].

        Raises
        ------
        UsageError, UnsupportedError, ErrorGroup
            If it cannot run step by step: for each operator in the way, why.
        """
        stream = StreamTime(axis)
        step, rows = stream.steps(self.graph)
        canonical = self._canonical and stream.steps(self._canonical)[0]
        samples = self._samples and self._samples.in_steps(rows)
        return FixedModel(
            step, graph=self._source, canonical=canonical, samples=samples, window=self.graph,
            warnings=self.warnings,
        )  # fmt: skip

    def schedule(
        self,
        board: str,
        *,
        device: str | None = None,
        arch: str = AUTO,
        clock_mhz: float | None = None,
        target_fps: float | None = None,
        layer_counters: bool = False,
        batch: int = 1,
        by_latency: bool = False,
        loads_program: bool = False,
        goal: Goal = "rate",
    ) -> Plan:
        """Plan the hardware: the fastest that fits, or the smallest for a frame rate.

        Parameters
        ----------
        board
            Name of a board, file of one of your own, or ``none`` for plain IP.
        device
            What plain IP has to fit, such as ``ecp5-85k``.
        arch
            ``auto``, ``streaming`` or ``engine``.
        clock_mhz
            Clock, by default the board's.
        target_fps
            Inferences per second that are enough.
        layer_counters
            Let the board count what every layer does.
        batch
            Frames that are computed together, by an engine.
        by_latency
            Take the least latency in place of the least interval: for a token loop, whose steps
            wait for each other.
        loads_program
            Let a processor load program and weights of an engine, as plain IP with registers.
        goal
            ``latency`` takes the rate and, if none is given, the clock with which a result comes
            soonest after its frame.

        Raises
        ------
        UsageError
            If there is no such board, device or architecture.
        TargetError
            If it does not fit: what is short, by how much, and what would help.
        UnsupportedError, ErrorGroup
            If it has layers that cannot be built.
        """
        target = replace(find_target(board, device), loads_program=loads_program)
        check_wishes(arch, {"clock_mhz": clock_mhz, "target_fps": target_fps, "batch": batch})
        check_goal(goal, {"target_fps": target_fps})
        asked = Asked(arch, clock_mhz, target_fps, layer_counters, batch)
        with remedied(lambda: Ways(self.graph, asked), target):
            candidates = Candidates(
                able_architectures(arch, self.graph),
                partial(unable_architectures, arch, self.graph),
            )
            if goal == "latency":
                slower = [] if clock_mhz else list(slower_clocks(target, DEFAULT_LINK))
                pace, plan, others = choose_soonest(
                    candidates, self.graph, target, slower, clock_mhz=clock_mhz,
                    layer_counters=layer_counters, batch=batch, by_latency=by_latency,
                )  # fmt: skip
                arch, target_fps = pace.arch, pace.target_fps
                clock_mhz = clock_mhz if pace.clock_mhz is None else pace.clock_mhz
            else:
                plan, others = choose_plan(
                    candidates, self.graph, target, clock_mhz=clock_mhz, target_fps=target_fps,
                    layer_counters=layer_counters, batch=batch, by_latency=by_latency,
                )  # fmt: skip
        wishes: Wishes = {
            "board": board,
            "device": device,
            "arch": arch,
            "clock_mhz": clock_mhz,
            "target_fps": target_fps,
            "layer_counters": layer_counters,
            "batch": batch,
        }
        model = PlannedModel(
            self._source, self._samples, self.graph, self._canonical, plan, others,
            self._window, self.warnings,
        )  # fmt: skip
        return Plan(model, target, wishes)

    def save(self, path: Path | str) -> None:
        """Write the fixed model as NNEF with its formats: ``NAME.nnef.tgz`` or a folder.

        Raises
        ------
        UsageError
            If it cannot be written there.
        """
        save(self.graph, path)

    def _parts(self) -> Iterator[RenderableType]:
        yield Text(f"{self.name} (fixed): {self.weight_bytes:,} bytes of weights")
        widths = self.weight_bits
        if len(set(widths.values())) > 1:
            each = ", ".join(f"{name} {bits}" for name, bits in widths.items())
            yield Text(f"bits of weights: {each}")
        yield rows_table([
            {
                "tensor": name,
                "shape": "x".join(map(str, tensor.shape)),
                "bits": f"{'' if qtype.signed else 'u'}{qtype.bits}",
                "step": qtype.scale,
                "zero_point": qtype.zero_point,
            }
            if name not in self.graph.features
            else {
                "tensor": name,
                "shape": "x".join(map(str, tensor.shape)),
                "bits": f"{'' if qtype.signed else 'u'}{qtype.bits}",
                "step": "one each",
                "zero_point": f"{len(self.graph.features[name].scale)} features",
            }
            for name, tensor in self.graph.tensors.items()
            if (qtype := tensor.qtype) is not None and tensor.label is None
        ])
        yield from map(Text, map(str, self.warnings))
