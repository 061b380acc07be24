"""Ways to a host: links over pins of a board, none of them, and the streams of plain IP."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from nnef_hw.boards.interfaces.bus import BUS_DATA, Bus, find_bus
from nnef_hw.boards.interfaces.interface import FarEnd, Sink, Source, far_end_header
from nnef_hw.boards.interfaces.pins import PinUse
from nnef_hw.errors import UsageError
from nnef_hw.host.benchmarks import Border
from nnef_hw.host.link import Transport

__all__ = ["HostLink", "Link", "LinkRoom", "NoLink", "PlainStreams"]


@dataclass(frozen=True)
class LinkRoom:
    """Room that a link takes beyond the board's budget for links.

    Parameters
    ----------
    lut
        LUTs.
    memories
        Words and bits of each memory.
    """

    lut: int = 0
    memories: tuple[tuple[int, int], ...] = ()


class Link(ABC):
    """The way to a build's accelerator, as its manifest says."""

    name: ClassVar[str]
    """``kind`` in the manifest."""
    has_packets: ClassVar[bool] = True
    """Whether frames pass as the packets of docs/protocol.md, or as beats."""

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """Return the entry ``link`` of the manifest."""

    @abstractmethod
    def files(self, module: str) -> dict[str, str]:
        """Return the files that the build has beside the accelerator, as the manifest's ``files``.

        ``module`` is the accelerator's.
        """

    @property
    def serial_baud(self) -> int:
        """Rate of the serial port that a host opens; 0 where it opens none."""
        return 0

    def open(self, port: str, build: Path) -> AbstractContextManager[Transport]:
        """Open a port of the computer that leads to the board.

        Raises
        ------
        UsageError
            If there is no such port, or the link is not for ports of a computer.
        """
        raise UsageError(
            f"{str(build)!r} has the link {self.name!r}, which is not a serial port",
            remedy="build it with --link uart")


@dataclass(frozen=True)
class PlainStreams(Link):
    """The AXI4-Streams of plain IP, which has no board and no host around it.

    Parameters
    ----------
    bus
        The bus that leads to registers beside the accelerator, if there are any.
    with_data
        Frames pass through these registers, not through streams.
    with_program
        The program of an engine may be loaded through them.
    """

    name = "axi4-stream"
    bus: Bus | None = None
    with_data: bool = False
    with_program: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the entry of the manifest."""
        entry: dict[str, object] = {"kind": self.name}
        if self.bus is not None:
            entry |= {"bus": self.bus.name, "data": BUS_DATA[self.with_data]}
        if self.with_program:
            entry["program"] = True
        return entry

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "PlainStreams":
        """Return the streams of an entry."""
        if "bus" not in entry:
            return cls()
        with_data, with_program = entry["data"] == BUS_DATA[True], "program" in entry
        return cls(find_bus(entry["bus"]), with_data, with_program)

    def files(self, module: str) -> dict[str, str]:
        """Return folder and description of the IP."""
        return {"ip": "ip", "core": f"{module}.core"}


class HostLink(Link, Source, Sink):
    """A link between a host and a board, by the protocol of docs/protocol.md.

    It is the source of all inputs that have no other one, and a sink of all outputs. What it
    carries are packets of bytes, which :class:`.PacketLink` makes into frames and back; so its
    component, the phy, has streams ``o`` and ``i`` of bytes, see :mod:`.phy`.
    """

    sort = "link"
    core: ClassVar[str] = "nnef_hw.boards.hardware.core:LinkedCore"
    """``module:class`` of what stands between the phy and the accelerator."""

    has_host: ClassVar[bool] = True
    """Whether there is a host at its other end."""
    runs_sequences: ClassVar[bool] = True
    """Whether the steps of a network with states can come one after the other over it."""
    merges_frames: ClassVar[bool] = True
    """Whether frames of several streams follow each other on it, so that beats wait in queues."""
    takes_turns: ClassVar[bool] = False
    """Whether a frame is computed when the result of the one before is there: latency counts."""
    needs_loop: ClassVar[bool] = False
    """Whether the link carries texts alone, so that a board needs a token loop."""
    lacks: ClassVar[tuple[str, ...]] = ()
    """Options of the command line for which it has nothing."""
    usage: ClassVar[str] = "nnef-hw run"
    """Command that uses a board over it, without the build."""

    silence: ClassVar[float] = 0.1
    """Seconds of silence after which a simulated board stands still until the host sends again.

    A packet that the host cut is forgotten by then.
    """

    @classmethod
    def core_class(cls) -> Callable[..., object]:
        """Return the class of the core; its module is imported only now."""
        module, _, name = cls.core.partition(":")
        core: Callable[..., object] = getattr(import_module(module), name)
        return core

    def bound(self, sources: Mapping[str, Border], sinks: Mapping[str, Border]) -> "HostLink":
        """Return the link of a network with such inputs and outputs, by name.

        Raises
        ------
        TargetError
            If the link can do nothing with them.
        """
        return self

    def budget(self, lut: int, bram: int) -> tuple[int, int]:
        """Return the LUTs and block RAMs that are set aside for it.

        Parameters
        ----------
        lut, bram
            Those that a board sets aside for any link.
        """
        return lut, bram

    def room(self, inputs: int, outputs: int) -> LinkRoom:
        """Return the room for a network of so many codes of inputs and of outputs."""
        return LinkRoom()

    def to_json(self) -> dict[str, object]:
        """Return the entry of the manifest, with the options."""
        options = {option.name: getattr(self, option.name) for option in self.options}
        return {"kind": self.name, **options, "protocol": "docs/protocol.md"}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "HostLink":
        """Return the link of an entry."""
        return cls(**{option.name: entry[option.name] for option in cls.options})

    def files(self, module: str) -> dict[str, str]:
        """Return the folder of the board's files."""
        return {"board": "board"}

    @abstractmethod
    def bytes_per_second(self, clock_mhz: float) -> float:
        """Return how many bytes pass one way in a second, at most."""


@dataclass(frozen=True)
class NoLink(HostLink):
    """Leaves the host out: no packets, no counters, no replay."""

    name = "none"
    core = "nnef_hw.boards.hardware.lone:LoneCore"
    hardware = core
    has_packets = False
    has_host = False
    lacks = ("--token-loop", "--layer-counters", "--batch")
    luts = 60
    """LUTs that are set aside for clock and reset."""

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {}

    def budget(self, lut: int, bram: int) -> tuple[int, int]:
        return self.luts, 0

    def check_clock(self, clk_hz: int) -> None:
        """Take every clock."""

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        return {}

    def bytes_per_second(self, clock_mhz: float) -> float:
        """Return infinity: nothing waits for a host."""
        return float("inf")

    def to_json(self) -> dict[str, object]:
        """Return the entry of the manifest."""
        return {"kind": self.name}

    def far_end(self, clk_hz: float) -> FarEnd:
        return FarEnd(far_end_header("no_link"), "NoLinkFarEnd")
