"""The report of a build as a whole.

The classes here have several bases, and so no slots: a field of theirs has no default but one that
is made anew, or ``UNSET``, since msgspec does not write others of a report read without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import UNSET, UnsetType

from nnef_hw.hardware.devices import Resources
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.report.model.checks import Accuracy, Scores, Simulation
from nnef_hw.report.model.clock import ClockChoice
from nnef_hw.report.model.device import LongestPath, Memory, MemoryMap, Placed, ResourceUse
from nnef_hw.report.model.layers import LayerFigures, LayerReport
from nnef_hw.report.model.limits import (
    BoardOutlook,
    Headroom,
    OtherArchitecture,
    Roofs,
    StepOfStream,
)

__all__ = ["BuiltFile", "Figures", "Insides", "Origin", "Report"]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Figures that two builds are compared by: reports of every version have them.

    Parameters
    ----------
    model, board, device, arch
        Names of the model, of the board, of its FPGA, and of the architecture.
    macs
        Multiply-accumulates per inference: output elements x kernel volume, padding included.
    multipliers
        Multipliers built for them: one that does two per cycle counts once.
    mac_utilization
        ``macs / (cycles_per_inference * multipliers)``.
    cycles_per_inference, latency_cycles
        The interval between results in steady state, and cycles to the result of a lone frame.
    clock_mhz, fmax_mhz
        Clock of the bitstream, and the highest one as routed; null before place and route.
    inferences_per_second
        Rate of the accelerator, without the host link.
    resources
        ``lut``, ``ff``, ``dsp``, ``bram`` and ``spram``.
    accuracy
        Scores on samples; null without labels.
    noise
        Signal to noise ratio of every layer's result in dB; null where there is no noise.
    layers
        The layers in the order that data takes.
    """

    model: str
    board: str
    device: str
    arch: str
    macs: int
    multipliers: int
    mac_utilization: float | None
    cycles_per_inference: int
    latency_cycles: int
    clock_mhz: float
    fmax_mhz: float | None
    inferences_per_second: float
    resources: Mapping[str, ResourceUse]
    accuracy: Scores | None
    noise: Mapping[str, float | None]
    layers: tuple[LayerFigures, ...]


@dataclass(frozen=True, kw_only=True)
class Insides:
    """Facts about a design that its architecture knows.

    Parameters
    ----------
    layers
        The layers in the order that data takes.
    headroom
        What half the interval would take.
    beat
        What streams carry per cycle: ``code``, ``pixel``, or ``beat`` of several codes.
    roofs
        What bounds MACs per cycle.
    boards
        What each board could make of the network, the target first.
    in_turn
        Whether layers take turns on one array.
    loop
        Layers of loops whose time around bounds the interval: then headroom and boards say
        nothing. Absent of architectures without loops.
    memory
        What comes from a memory beside the FPGA; null without one. Only if ``in_turn``.
    memory_map
        The memory of activations. Only if ``in_turn``.
    shared
        Resources of the array that layers share. Only if ``in_turn``.
    """

    layers: tuple[LayerReport, ...]
    headroom: Headroom
    beat: str
    roofs: Roofs
    boards: tuple[BoardOutlook, ...]
    in_turn: bool
    loop: tuple[str, ...] | UnsetType = UNSET
    memory: Memory | UnsetType | None = UNSET
    memory_map: MemoryMap | UnsetType = UNSET
    shared: Resources | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class BuiltFile:
    """A file of a build.

    Parameters
    ----------
    path
        Its path below the build's folder.
    purpose
        What it is for.
    """

    path: str
    purpose: str


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Origin of a build: model, tools, files.

    Parameters
    ----------
    model_hash
        Hash of the fixed-point model. Absent before a build.
    tools
        Names and versions of libraries and tools. Absent before a build.
    files
        The files that there are. Absent before a build.
    """

    model_hash: str | UnsetType = UNSET
    tools: tuple[str, ...] | UnsetType = UNSET
    files: tuple[BuiltFile, ...] | UnsetType = UNSET


@dataclass(frozen=True, kw_only=True)
class Report(Insides, Origin, Figures):
    """All facts about a build.

    Parameters
    ----------
    batch
        Frames that are computed together: 1 but for ``--batch``.
    period, settling
        Frames after which the pattern of results repeats, and frames before it does; the latter is
        null where it is not known.
    clock
        How the clock is decided. Absent of a design that no build has been asked for.
    timing_met
        Whether every clock is in time; null before place and route.
    seed, fmax_mhz_by_seed
        Seed of the placement that was packed, and the highest clock of each that was tried: null
        where there is no route.
    longest_path
        The path that limits the clock; null before place and route.
    link_inferences_per_second
        Rate that the host link allows; null without one.
    placed
        Resources of the parts of a placed design; null before place and route.
    bitstream
        Path of the bitstream; null if none was made.
    simulation
        What was simulated; null before a build.
    warnings
        Why to doubt the network (quantization.md).
    inputs, outputs
        Names of the tensors that go in and come out.
    link
        Resources of the host link.
    other_architectures
        What architectures that were not taken would give, or why they are refused.
    stream
        What a step and a window take; null without ``--stream``.
    seconds
        Seconds of the build by step; steps run side by side, so that ``total`` is less than all.
    commands
        Commands that made the build, and that simulate it again.
    """

    accuracy: Accuracy | None
    batch: int
    period: int
    settling: int | None
    clock: ClockChoice | UnsetType = UNSET
    timing_met: bool | None
    seed: int | None
    fmax_mhz_by_seed: Mapping[str, float | None]
    longest_path: LongestPath | None
    link_inferences_per_second: float | None
    placed: Placed | None
    bitstream: str | None
    simulation: Simulation | None
    warnings: tuple[QualityWarning, ...] = field(default_factory=tuple)
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    link: Resources
    other_architectures: tuple[OtherArchitecture, ...]
    stream: StepOfStream | None
    seconds: Mapping[str, float]
    commands: tuple[str, ...]
