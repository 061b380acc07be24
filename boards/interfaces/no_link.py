"""No link to a host: sensors give all inputs, and sinks take what comes out."""

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.boards.interfaces.interface import FarEnd, far_end_header
from nnef_hw.boards.interfaces.link import HostLink
from nnef_hw.boards.interfaces.pins import PinUse

__all__ = ["NoLink"]


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
