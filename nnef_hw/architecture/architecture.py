"""The interface of architectures: how a fixed graph becomes hardware, and facts about that.

Everything above asks an :class:`Architecture` and the :class:`AcceleratorPlan` that it made, and
knows none of them by name.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from nnef_hw.architecture.room import WeightRoom
from nnef_hw.architecture.stored import StoredImage
from nnef_hw.architecture.timeline import Timeline, Work
from nnef_hw.errors import NnefHwError, UsageError
from nnef_hw.hardware.devices import Resources, Target
from nnef_hw.ir import Graph
from nnef_hw.parts.base.untyped import Hardware
from nnef_hw.parts.streams.stream import make_fifo
from nnef_hw.report.model.report import Insides

__all__ = [
    "AnyArchitecture",
    "Architecture",
    "Kept",
    "AcceleratorPlan",
    "Port",
    "Station",
    "border_queues",
    "port_labels",
    "queued_ports",
]


_TENSOR_LINK = Resources(lut=150, ff=60)
"""What one more tensor takes in the host link, but for the FIFO: 59 to 293 LUTs once placed."""


@dataclass(frozen=True, slots=True)
class Port:
    """A stream at the accelerator's border.

    Parameters
    ----------
    name
        Name of the accelerator's port: ``i`` or ``o``; followed by the graph's name if there are
        several.
    tensor
        Name in the graph of the tensor that it carries, behind reshapes that are left to the host.
    image
        (height, width, channels) of the stream.
    bits, signed, lanes
        Format of a beat.
    """

    name: str
    tensor: str
    image: tuple[int, int, int]
    bits: int
    signed: bool
    lanes: int = 1

    @property
    def beats(self) -> int:
        """Beats per frame."""
        height, width, channels = self.image
        return height * width * -(-channels // self.lanes)

    @property
    def payload_bits(self) -> int:
        """Width of a beat: its codes, and whether it ends a frame."""
        return self.lanes * self.bits + 1

    @property
    def queue_depth(self) -> int:
        """Beats that a FIFO for a frame holds, which has at least two."""
        return max(2, self.beats)


def port_labels(prefix: str, names: Sequence[str]) -> list[str]:
    """Return different identifiers, without two underscores in a row: these end a port's name."""
    if len(names) == 1:
        return [prefix]
    labels: list[str] = []
    for name in names:
        label = re.sub(r"[\W_]+", "_", f"{prefix}_{name}", flags=re.ASCII).rstrip("_")
        others = (f"{label}_{n}" for n in count(2))
        labels.append(next(text for text in chain([label], others) if text not in labels))
    return labels


def queued_ports(inputs: Sequence[Port], outputs: Sequence[Port]) -> tuple[Port, ...]:
    """Return the ports of which a whole frame can wait in the host link, tensor after tensor.

    An accelerator may take all its inputs at once, and give all its outputs at once: those that the
    link carries ahead of others, or behind them, have to wait (docs/protocol.md, section 7).
    """
    return (*inputs[:-1], *outputs[1:])


def border_queues(inputs: Sequence[Port], outputs: Sequence[Port], target: Target) -> Resources:
    """Return the resources of queues in the host link, and of the streams to them."""
    total = Resources()
    if target.link_lut:
        for port in queued_ports(inputs, outputs):
            queue = make_fifo(
                port.bits, port.signed, port.queue_depth, port.beats, target.device,
                lanes=port.lanes,
            )  # fmt: skip
            total += queue.resources(target.device) + _TENSOR_LINK
    return total


class Station(Protocol):
    """The hardware that runs a layer, as reports and the manifest name it."""

    @property
    def name(self) -> str:
        """Name of the layer."""

    @property
    def instance(self) -> str:
        """Name of the instance in the accelerator that runs it: a Verilog identifier."""

    def describe(self, graph: Graph) -> str:
        """Say in a line what it runs, and with which hardware."""

    @property
    def shape(self) -> Mapping[str, int]:
        """Multipliers of the station: ``rows``, ``lanes``, ``taps``, ``lines``."""

    @property
    def cycles(self) -> int:
        """Cycles per frame when it is never starved or blocked."""


class AcceleratorPlan(Protocol):
    """A scheduled accelerator: what was chosen, and the exact cycles that follow."""

    @property
    def arch(self) -> str:
        """Name of the architecture."""

    @property
    def model(self) -> str:
        """Name of the graph."""

    @property
    def board(self) -> str:
        """Name of the target."""

    @property
    def device(self) -> str:
        """Name of the FPGA."""

    @property
    def clock_mhz(self) -> float:
        """Clock the board gives it."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Input streams, in the order of the graph."""

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Output streams, in the order of the graph."""

    def graph_of(self, graph: Graph) -> Graph:
        """Return the form of its fixed graph, of the same codes, whose layers it has."""

    @property
    def stations(self) -> Sequence[Station]:
        """Hardware that runs layers, in the order of the board's counters."""

    @property
    def interval(self) -> int:
        """Cycles per result in steady state: the mean of a period, rounded up."""

    @property
    def latency(self) -> int:
        """Cycles from the first beat of any input to the last of all outputs, of a lone frame."""

    @property
    def period(self) -> int:
        """Frames after which the pattern of results repeats."""

    @property
    def batch(self) -> int:
        """Frames that it takes before it gives the first result: a host sends whole batches."""

    @property
    def settling(self) -> int | None:
        """Frames before it does; None if more than were simulated."""

    @property
    def layer_counters(self) -> bool:
        """Whether the board counts what every station does."""

    @property
    def images(self) -> Sequence[StoredImage]:
        """Contents of memories beside the FPGA."""

    @property
    def loaded(self) -> bytes | None:
        """Program that stands in memories, if a system may write another one in its place."""

    @property
    def link(self) -> Resources:
        """Resources of the host link."""

    @property
    def resources(self) -> Resources:
        """Estimate of the whole design with its host link."""

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame."""

    @property
    def multipliers(self) -> int:
        """Multipliers built for multiply-accumulates."""

    @property
    def mac_utilization(self) -> float:
        """``macs / (cycles per frame * multipliers)``; 0 for a network without multiplications."""

    def dumps(self) -> str:
        """Return the text of ``plan.json``."""


P = TypeVar("P", bound=AcceleratorPlan)


@dataclass(frozen=True, slots=True)
class Kept:
    """Choices of a quantization that a bitstream contains.

    Parameters
    ----------
    layer_factor, sum_factor
        What :class:`.Scheme` calls ``largest_layer_factor`` and ``largest_sum_factor``.
    """

    layer_factor: float = math.inf
    sum_factor: float = math.inf


class Architecture(ABC, Generic[P]):
    """A way to run fixed graphs; P is the type of its plans."""

    name: ClassVar[str]
    takes_whole: ClassVar[bool] = False
    """Whether a frame comes in at once, and the next one only when all of it is computed."""
    loads_program: ClassVar[bool] = False
    """Whether a system may write another program, with other weights, to the accelerator."""

    @abstractmethod
    def problems(self, graph: Graph) -> list[NnefHwError]:
        """List why it has no hardware for a canonical or fixed graph, one error per cause."""

    @abstractmethod
    def weight_room(self, target: Target) -> WeightRoom | None:
        """Return the memory for weights on a target; None if one beside the FPGA holds them."""

    @abstractmethod
    def may_fit(self, graph: Graph, target: Target, *, layer_counters: bool = False) -> bool:
        """Whether a fixed graph may fit a target, found in far less time than a plan."""

    @abstractmethod
    def plan(
        self,
        graph: Graph,
        target: Target,
        *,
        clock_mhz: float | None = None,
        target_fps: float | None = None,
        layer_counters: bool = False,
        batch: int = 1,
        by_latency: bool = False,
    ) -> P:
        """Plan a fixed graph for a target: the fastest design, or the smallest for a frame rate.

        Parameters
        ----------
        batch
            Frames that are computed together, so that weights are read once for all of them.
        by_latency
            Whether a frame waits for the result of the one before, as a token that is fed back
            does: latency counts then in place of the interval.

        Raises
        ------
        UnsupportedError, ErrorGroup
            If it has :meth:`problems`.
        TargetError
            If it does not fit; says what is short, and by how much.
        """

    def decisive(
        self, target: Target, clock_mhz: float, target_fps: float | None
    ) -> tuple[Hashable, ...]:
        """Return the facts about a target that decide over plans; equal ones differ in names.

        Only a frame rate asks for a clock.
        """
        link = target.link_lut, target.link_ff, target.link_bram
        return target.device, link, None if target_fps is None else clock_mhz

    @abstractmethod
    def read_plan(self, value: dict[str, object], graph: Graph) -> P:
        """Return the plan of a ``plan.json`` for its graph.

        Raises
        ------
        ValueError, LookupError, TypeError
            If it is not one.
        """

    def program(self, plan: P) -> list[dict[str, int | float | str | None]]:
        """List the program of a network, step by step or layer by layer, as rows of equal keys."""
        return [
            {"layer": station.name, "instance": station.instance, **station.shape,
             "cycles": station.cycles}
            for station in plan.stations
        ]  # fmt: skip

    def kept(self, plan: P) -> Kept:
        """Return the formats that other weights must keep to run on a plan's bitstream."""
        del plan
        return Kept()

    def retrained(self, plan: P, graph: Graph, *, free: bool) -> tuple[P, Graph]:
        """Return the plan of a fixed graph of other weights for an existing bitstream; the graph.

        Parameters
        ----------
        plan
            Plan of the bitstream.
        free
            Whether factors of the graph may be rounded to what the bitstream has.

        Raises
        ------
        UsageError
            If the bitstream does not run it: what differs.
        """
        del graph, free
        raise UsageError(
            f"the bitstream has its weights in it, as all of --arch {plan.arch} have",
            remedy="build it without --weights-of",
        )

    @abstractmethod
    def component(
        self, plan: P, graph: Graph, *, restartable: bool = False, counted: bool = False
    ) -> Hardware:
        """Return the accelerator as an Amaranth component.

        Its ports are those of the plan: ``i``, ``o``...; with ``restartable`` also ``restart`` and
        ``restarted``, with ``counted`` also ``busy`` and ``waiting``, a bit for every station. Its
        ``layers`` are the components whose Verilog is kept in the cache.
        """

    @abstractmethod
    def predict_interval(self, plan: P, frames: int) -> int | None:
        """Return cycles per frame at the end of a run of so many; None if there is only one.

        It is the plan's interval, but in runs so short that frames do not come steadily yet.
        """

    @abstractmethod
    def predict_spacing(self, plan: P, frames: int) -> int:
        """Return cycles between the ends of the last two of so many frames.

        With batches, between those of the last frames of the last two batches, of at least two.
        """

    @abstractmethod
    def predict_work(self, plan: P, begin: int, end: int, frames: int) -> tuple[Work, ...]:
        """Return the work of every station from when ``begin`` frames have left until ``end`` have.

        That of a run of ``frames`` without a pause.
        """

    @abstractmethod
    def timeline(self, plan: P) -> Timeline:
        """Return the work of every station in a steady frame."""

    @abstractmethod
    def report(self, plan: P, graph: Graph, target: Target, timeline: Timeline) -> Insides:
        """Return facts about the design's insides for a report."""


AnyArchitecture: TypeAlias = Architecture[Any]
"""An architecture with plans of its own, which it alone looks into."""
