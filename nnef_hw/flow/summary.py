"""The report of a build put together of what its steps found."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from nnef_hw.architecture.architecture import AcceleratorPlan
from nnef_hw.architectures import find_architecture
from nnef_hw.boards.interfaces import HostLink
from nnef_hw.errors import NnefHwError
from nnef_hw.hardware.devices import Target
from nnef_hw.host.protocol import MAX_PAYLOAD
from nnef_hw.ir import Graph
from nnef_hw.place.critical import OUTSIDE, SHARED, name_parts, owners_of
from nnef_hw.place.result import SynthesisResult
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.report.inspection import inspect_model
from nnef_hw.report.model.checks import Accuracy, Simulation
from nnef_hw.report.model.clock import ClockChoice
from nnef_hw.report.model.device import Floorplan, Placed, ResourceUse
from nnef_hw.report.model.limits import OtherArchitecture, StepOfStream
from nnef_hw.report.model.report import Insides, Origin, Report

__all__ = ["describe_steps", "make_report"]

PACKET_OVERHEAD = 7


def make_report(
    *,
    plan: AcceleratorPlan,
    clock_mhz: float | None = None,
    clock: ClockChoice | UnsetType = UNSET,
    insides: Insides,
    others: Sequence[OtherArchitecture],
    stream: StepOfStream | None = None,
    target: Target,
    link: HostLink,
    synthesis: SynthesisResult | None,
    simulation: Simulation | None,
    accuracy: Accuracy | None,
    bitstream: str | None,
    seconds: Mapping[str, float],
    commands: Sequence[str],
    noise: Mapping[str, float | None] | None = None,
    warnings: Sequence[QualityWarning] = (),
    floorplan: Floorplan | None = None,
    origin: Origin | None = None,
) -> Report:
    """Gather everything that is known of a build.

    Parameters
    ----------
    clock_mhz
        The clock that was chosen after routing, if it was; otherwise it is the plan's.
    clock
        How it is decided.
    insides
        Those of the plan's architecture.
    others, stream, accuracy, noise, warnings
        Fields of the report.
    floorplan
        Places in a placed design, by its layers.
    origin
        What the build was made of; None before it.
    """
    origin = origin or Origin()
    clock_mhz = clock_mhz or plan.clock_mhz
    return Report(
        model=plan.model,
        board=plan.board,
        device=plan.device,
        arch=plan.arch,
        other_architectures=tuple(others),
        stream=stream,
        macs=plan.macs,
        multipliers=plan.multipliers,
        cycles_per_inference=plan.interval,
        latency_cycles=plan.latency,
        batch=plan.batch,
        period=plan.period,
        settling=plan.settling,
        mac_utilization=plan.mac_utilization,
        clock_mhz=clock_mhz,
        clock=clock,
        fmax_mhz=synthesis.fmax_mhz if synthesis else None,
        timing_met=synthesis.timing_met if synthesis else None,
        fmax_mhz_by_seed=synthesis.seeds if synthesis else {},
        seed=synthesis.seed if synthesis else None,
        longest_path=name_parts(synthesis.path if synthesis else [], owners_of(plan.stations)),
        inferences_per_second=(core := clock_mhz * 1e6 / plan.interval),
        link_inferences_per_second=(
            min(core, _link_rate(plan, link, clock_mhz))
            if target.link_lut and link.has_host
            else None
        ),
        resources=_resources(plan, target, synthesis),
        placed=None if floorplan is None else _placed(floorplan),
        bitstream=bitstream,
        simulation=simulation,
        accuracy=accuracy,
        noise=noise or {},
        warnings=tuple(warnings),
        inputs=tuple(port.tensor for port in plan.inputs),
        outputs=tuple(port.tensor for port in plan.outputs),
        link=plan.link,
        layers=insides.layers,
        headroom=insides.headroom,
        beat=insides.beat,
        roofs=insides.roofs,
        boards=insides.boards,
        in_turn=insides.in_turn,
        loop=insides.loop,
        memory=insides.memory,
        memory_map=insides.memory_map,
        shared=insides.shared,
        model_hash=origin.model_hash,
        tools=origin.tools,
        files=origin.files,
        seconds=seconds,
        commands=tuple(commands),
    )


def _placed(floorplan: Floorplan) -> Placed:
    """Return how much of each resource layers take."""
    counts = {
        name: {key: sum(count for _, _, count in found) for key, found in resources.items()}
        for name, resources in floorplan.regions.items()
    }
    return Placed(link=counts.pop(OUTSIDE, {}), shared=counts.pop(SHARED, None), layers=counts)


def describe_steps(
    step: Graph, window: Graph | None, target: Target, plan: AcceleratorPlan, *, fastest: bool
) -> StepOfStream:
    """Compare a network that runs step by step with a window that is run as a whole.

    Parameters
    ----------
    step
        The fixed network.
    window
        That of a window; None if only the step was given.
    plan
        The plan of a step.
    fastest
        Whether that is the fastest one, so that a window's can be compared with it.
    """
    rows = {name: found.rows for name, found in step.rows.items()}
    if window is None:
        return StepOfStream(rows=rows)
    cycles, architecture = None, find_architecture(plan.arch)
    with contextlib.suppress(NnefHwError):
        if fastest:
            cycles = architecture.plan(window, target, clock_mhz=plan.clock_mhz).interval
    return StepOfStream(
        rows=rows,
        window_rows={
            name: window.tensor(name).shape[found.axis] for name, found in step.rows.items()
        },
        window_macs=inspect_model(window).macs,
        window_cycles=cycles,
    )


def _resources(
    plan: AcceleratorPlan, target: Target, synthesis: SynthesisResult | None
) -> dict[str, ResourceUse]:
    is_placed = synthesis is not None and synthesis.is_placed
    used = {} if synthesis is None else synthesis.resources
    return {
        name: ResourceUse(
            used[name].used if name in used else (0 if is_placed else None),
            available=getattr(target.device, name),
            estimated=estimated,
        )
        for name, estimated in plan.resources.to_json().items()
    }


def _link_rate(plan: AcceleratorPlan, link: HostLink, clock_mhz: float) -> float:
    """Frames per second that fit through a link, without any latency of the host.

    Requests and replies take turns (docs/protocol.md): every DATA is acknowledged, every RESULT
    asked for.
    """
    sent, received = (
        sum(port.beats * port.lanes * -(-port.bits // 8) for port in ports)
        for ports in (plan.inputs, plan.outputs)
    )
    packets = -(-sent // MAX_PAYLOAD) + -(-received // MAX_PAYLOAD)
    rate: float = link.bytes_per_second(clock_mhz)
    return rate / (sent + received + packets * 2 * PACKET_OVERHEAD)
