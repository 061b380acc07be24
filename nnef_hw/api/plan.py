"""A network on a board, before it is built: what it will take, and how fast it will be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypedDict

import numpy as np
from rich.console import RenderableType

from nnef_hw.api.build import Build
from nnef_hw.api.show import Shown, framed, printed
from nnef_hw.architecture.timeline import Timeline
from nnef_hw.architectures import find_architecture
from nnef_hw.arithmetic.arrays import Array
from nnef_hw.boards.interfaces import (
    BUS_DATA,
    DEFAULT_LINK,
    PlainStreams,
    find_link,
    find_sink,
    find_source,
    find_streams,
)
from nnef_hw.errors import CheckError
from nnef_hw.flow.clock import choice_of
from nnef_hw.flow.options import BuildOptions, PlannedModel
from nnef_hw.flow.pipeline import build
from nnef_hw.flow.summary import make_report
from nnef_hw.hardware.devices import Target
from nnef_hw.parts.base.untyped import Hardware
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed
from nnef_hw.report.model.device import ResourceUse
from nnef_hw.report.model.layers import LayerReport
from nnef_hw.report.model.report import Report
from nnef_hw.report.pages.html import render_html
from nnef_hw.report.progress import stages
from nnef_hw.run.component import run_component
from nnef_hw.samples.samples import Given, take_samples

__all__ = ["Plan", "Simulated", "Wishes"]


class Wishes(TypedDict):
    """Wishes of a plan: fields of :class:`~nnef_hw.flow.options.BuildOptions`."""

    board: str
    device: str | None
    arch: str
    clock_mhz: float | None
    target_fps: float | None
    layer_counters: bool
    batch: int


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """Results of :meth:`Plan.simulate`, equal to those of the fixed-point model.

    Parameters
    ----------
    outputs
        Outputs [N, ...] by name, as real numbers that codes stand for.
    cycles
        From the first beat of any input to the last result; as planned, unless there were stalls.
    """

    outputs: dict[str, Array]
    cycles: int


class Plan(Shown):
    """A scheduled accelerator; :meth:`nnef_hw.api.FixedModel.schedule` makes it.

    Cycles are exact: simulation and hardware take as many. LUTs and flip-flops are estimates.

    Parameters
    ----------
    model
        The network with its plan.
    target, wishes
        Where the design is to go, and what was asked for.
    """

    def __init__(self, model: PlannedModel, target: Target, wishes: Wishes) -> None:
        self._model, self._target, self._wishes = model, target, wishes

    @property
    def arch(self) -> str:
        """Name of the architecture."""
        return self._model.plan.arch

    @property
    def interval(self) -> int:
        """Cycles per inference in steady state."""
        return self._model.plan.interval

    @property
    def latency(self) -> int:
        """Cycles from the first beat of a lone frame to its last result."""
        return self._model.plan.latency

    @property
    def clock_mhz(self) -> float:
        """Clock of the accelerator in MHz."""
        return self._model.plan.clock_mhz

    @property
    def inferences_per_second(self) -> float:
        """Rate of the accelerator; the host link may be slower, see :attr:`report`."""
        return self.report.inferences_per_second

    @property
    def resources(self) -> Mapping[str, ResourceUse]:
        """``lut``, ``ff``, ``dsp``, ``bram``, ``spram``: each estimated, and available."""
        return self.report.resources

    @property
    def layers(self) -> tuple[LayerReport, ...]:
        """Hardware of every layer: cycles, multipliers, block RAMs, ..."""
        return self.report.layers

    @cached_property
    def report(self) -> Report:
        """The report of a build, as far as it is known before synthesis."""
        plan = self._model.plan
        architecture = find_architecture(plan.arch)
        insides = architecture.report(plan, self._model.fixed, self._target, self._timeline)
        clock = choice_of(
            self._target, self._model.plan, DEFAULT_LINK,
            fixed=self._wishes["clock_mhz"] is not None,
        )  # fmt: skip
        return make_report(
            plan=plan, insides=insides, others=self._model.others, target=self._target,
            link=DEFAULT_LINK, synthesis=None, simulation=None, accuracy=None, bitstream=None,
            seconds={}, commands=[], warnings=self._model.warnings, clock=clock,
        )  # fmt: skip

    @property
    def page(self) -> str:
        """The report as a page of HTML."""
        return render_html(self.report, self._timeline)

    def component(self) -> Hardware:
        """Return the accelerator as an Amaranth component, for a design of your own.

        Its streams are ``i`` and ``o`` (``i_NAME`` if there are several), with ``payload.data``, an
        array of codes, and ``payload.last``, the end of a frame.
        """
        plan = self._model.plan
        return find_architecture(plan.arch).component(plan, self._model.fixed)

    def simulate(self, inputs: Given, *, stall: float = 0.0, seed: int = 0) -> Simulated:
        """Run the hardware in Amaranth's own simulator, which compiles nothing, but is slow.

        A few hundred thousand cycles are a matter of minutes; a build's simulation is compiled.

        Parameters
        ----------
        inputs
            Real numbers, as :meth:`nnef_hw.api.Model.run` takes them.
        stall, seed
            Probability per cycle that an input idles and that an output is not taken, and the seed.

        Raises
        ------
        SampleError
            If an input is missing, or its shape or its numbers do not fit.
        UsageError
            If the network has states.
        CheckError
            If the hardware gives other integers than the fixed-point model, or takes other cycles
            than predicted: a defect of ours.
        """
        plan, fixed = self._model.plan, self._model.fixed
        codes = quantize_inputs(fixed, take_samples(inputs, fixed).inputs)
        found = run_component(plan, fixed, codes, stall=stall, seed=seed)
        for name, expected in run_fixed(fixed, codes).items():
            if not np.array_equal(found.codes[name], expected):
                raise CheckError(f"{name}: the hardware gives other integers than the fixed model")
        frames = len(codes[fixed.inputs[0]])
        if plan.batch == 1 and not stall:
            spacing = partial(find_architecture(plan.arch).predict_spacing, plan)
            predicted = plan.latency + sum(map(spacing, range(2, frames + 1)))
            if found.cycles != predicted:
                raise CheckError(f"{frames} frames took {found.cycles} cycles, not {predicted}")
        return Simulated({**dequantize_outputs(fixed, found.codes)}, found.cycles)

    def build(
        self,
        out: Path | str | None = None,
        *,
        bitstream: bool = True,
        frames: int | Literal["all"] | None = None,
        seeds: int = 1,
        link: str = DEFAULT_LINK.name,
        baud: int | None = None,
        sinks: Sequence[str] = (),
        sources: Sequence[str] = (),
        token_loop: bool = False,
        ip_name: str | None = None,
        bus: str | None = None,
        bus_data: str = BUS_DATA[False],
    ) -> Build:
        """Emit the Verilog, simulate it against the fixed model, place and route it, and report.

        What a folder holds already for the same model, samples, plan and tools is not made again.

        Parameters
        ----------
        out
            Folder that receives the build, by default ``build/NAME``.
        bitstream
            Synthesize, place, route and pack; not for plain IP.
        frames
            How many of the samples are simulated: a number, ``"all"``, or by default what half a
            minute allows.
        seeds
            Placements to try until one meets the clock; else the fastest is taken.
        link, baud
            ``uart`` or ``spi``, and the rate of the UART (1,000,000 by default).
        sinks
            Where outputs go besides the host, as ``--sink`` has it: ``"led"``, ``"scores=led"``.
        sources
            Where inputs come from in place of the host, as ``--source`` has it: ``"i2s"``.
        token_loop
            Let the board itself write texts of a language model, see :meth:`.Device.generate`.
        ip_name
            What the names of plain IP's modules begin with.
        bus, bus_data
            ``axi4-lite`` or ``wishbone``: registers beside plain IP; ``registers`` if frames pass
            through them, too.

        Raises
        ------
        UsageError, TargetError
            If options make no sense, or the folder holds anything but a build.
        CheckError
            If the hardware differs from the model: a defect of ours.
        ToolError
            If a tool is missing, or fails. A missed clock is none: see ``report.timing_met``.
        """
        folder = Path("build") / self._model.graph.name if out is None else Path(out)
        with stages() as say:
            report = build(
                BuildOptions(
                    model=self._model, out=folder, bitstream=bitstream, frames=frames,
                    seeds=seeds, link=find_link(link, baud=baud),
                    sinks=tuple(map(find_sink, sinks)),
                    sources=tuple(map(find_source, sources)), token_loop=token_loop,
                    ip_name=ip_name,
                    streams=self._streams(bus, bus_data), **self._wishes,
                ),
                say,
            )  # fmt: skip
        return Build(folder, report)

    def _streams(self, bus: str | None, data: str) -> PlainStreams:
        return find_streams(bus, data, program=self._model.plan.loaded is not None)

    @cached_property
    def _timeline(self) -> Timeline:
        plan = self._model.plan
        return find_architecture(plan.arch).timeline(plan)

    def _parts(self) -> Iterator[RenderableType]:
        yield printed(self.report)

    def _repr_html_(self) -> str:
        return framed(self.page)
