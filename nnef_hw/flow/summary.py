"""The report of a build as plain data: what ``build --json`` prints and the pages show."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from nnef_hw.architecture.architecture import AcceleratorPlan
from nnef_hw.architectures import find_architecture
from nnef_hw.boards.interfaces import HostLink
from nnef_hw.errors import NnefHwError
from nnef_hw.hardware.devices import Target
from nnef_hw.host.protocol import MAX_PAYLOAD
from nnef_hw.ir import Graph
from nnef_hw.place.critical import OUTSIDE, SHARED, name_parts, owners_of
from nnef_hw.place.result import SynthesisResult
from nnef_hw.report.models import inspect_model

__all__ = ["describe_steps", "make_report"]

PACKET_OVERHEAD = 7


def make_report(
    *,
    plan: AcceleratorPlan,
    insides: dict[str, Any],
    others: list[dict[str, Any]],
    stream: dict[str, Any] | None = None,
    target: Target,
    link: HostLink,
    synthesis: SynthesisResult | None,
    simulation: dict[str, Any] | None,
    accuracy: dict[str, Any] | None,
    bitstream: str | None,
    seconds: dict[str, float],
    commands: list[str],
    noise: Mapping[str, float | None] | None = None,
    warnings: Sequence[Mapping[str, Any]] = (),
    regions: Mapping[str, Mapping[str, Sequence[Sequence[int]]]] | None = None,
    origin: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Gather everything that is known of a build (keys: docs/command_line.md).

    ``insides`` are the architecture's:
    :meth:`nnef_hw.architecture.architecture.Architecture.report`, and ``others`` the architectures
    that were not taken: :meth:`nnef_hw.flow.choice.Candidates.plan`; ``stream`` is of
    :func:`describe_steps`; ``noise`` the signal to noise ratio of layers' results in dB;
    ``warnings`` why to doubt the network; ``regions`` of a placed design as
    :func:`nnef_hw.place.floorplan.share_out` names them; ``origin`` says of what the build was
    made: ``model_hash``, ``tools`` and ``files``.
    """
    core = plan.clock_mhz * 1e6 / plan.interval
    return {
        "model": plan.model,
        "board": plan.board,
        "device": plan.device,
        "arch": plan.arch,
        "other_architectures": others,
        "stream": stream,
        "macs": plan.macs,
        "multipliers": plan.multipliers,
        "cycles_per_inference": plan.interval,
        "latency_cycles": plan.latency,
        "batch": plan.batch,
        "period": plan.period,
        "settling": plan.settling,
        "mac_utilization": plan.mac_utilization,
        "clock_mhz": plan.clock_mhz,
        "fmax_mhz": synthesis.fmax_mhz if synthesis else None,
        "timing_met": synthesis.timing_met if synthesis else None,
        "fmax_mhz_by_seed": synthesis.seeds if synthesis else {},
        "seed": synthesis.seed if synthesis else None,
        "longest_path": name_parts(
            synthesis.path if synthesis else [],
            owners_of(plan.stations),
        ),
        "inferences_per_second": core,
        "link_inferences_per_second": (
            min(core, _link_rate(plan, link)) if target.link_lut else None
        ),
        "resources": _resources(plan, target, synthesis),
        "placed": None if regions is None else _placed(regions),
        "bitstream": bitstream,
        "simulation": simulation,
        "accuracy": accuracy,
        "noise": dict(noise or {}),
        "warnings": list(warnings),
        "inputs": [port.tensor for port in plan.inputs],
        "outputs": [port.tensor for port in plan.outputs],
        "link": plan.link.to_json(),
        **insides,
        **(origin or {}),
        "seconds": seconds,
        "commands": commands,
    }


def _placed(regions: Mapping[str, Mapping[str, Sequence[Sequence[int]]]]) -> dict[str, Any]:
    """Return what layers take of each resource; ``shared`` is what all take turns on."""
    counts = {
        name: {key: sum(count for _, _, count in found) for key, found in resources.items()}
        for name, resources in regions.items()
    }
    return {
        "link": counts.pop(OUTSIDE, {}), "shared": counts.pop(SHARED, None), "layers": counts,
    }  # fmt: skip


def describe_steps(
    step: Graph, window: Graph | None, target: Target, plan: AcceleratorPlan, *, fastest: bool
) -> dict[str, Any]:
    """Say what a network that runs step by step has to do for a window, were it run as a whole.

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

    Returns
    -------
    dict
        By input, rows of a step and of a window; MACs and cycles of a window on the same target:
        null where it does not fit, or cannot be compared. Of a window that is not known all of it
        is null.
    """
    described: dict[str, Any] = {
        "rows": {name: found.rows for name, found in step.rows.items()},
        "window_rows": None,
        "window_macs": None,
        "window_cycles": None,
    }
    if window is None:
        return described
    cycles, architecture = None, find_architecture(plan.arch)
    with contextlib.suppress(NnefHwError):
        if fastest:
            cycles = architecture.plan(window, target, clock_mhz=plan.clock_mhz).interval
    return {
        **described,
        "window_rows": {
            name: window.tensor(name).shape[found.axis] for name, found in step.rows.items()
        },
        "window_macs": inspect_model(window)["macs"],
        "window_cycles": cycles,
    }


def _resources(
    plan: AcceleratorPlan, target: Target, synthesis: SynthesisResult | None
) -> dict[str, dict[str, int | None]]:
    estimated = plan.resources.to_json()
    is_placed = synthesis is not None and synthesis.is_placed
    used = {} if synthesis is None else synthesis.resources
    return {
        name: {
            "used": used[name].used if name in used else (0 if is_placed else None),
            "available": getattr(target.device, name),
            "estimated": estimated[name],
        }
        for name in ("lut", "ff", "dsp", "bram", "spram")
    }


def _link_rate(plan: AcceleratorPlan, link: HostLink) -> float:
    """Frames per second that fit through a link, without any latency of the host.

    Requests and replies take turns (docs/protocol.md): every DATA is acknowledged, every RESULT
    asked for.
    """
    sent, received = (
        sum(port.beats * port.lanes * -(-port.bits // 8) for port in ports)
        for ports in (plan.inputs, plan.outputs)
    )
    packets = -(-sent // MAX_PAYLOAD) + -(-received // MAX_PAYLOAD)
    rate: float = link.bytes_per_second(plan.clock_mhz)
    return rate / (sent + received + packets * 2 * PACKET_OVERHEAD)
