"""The links uart and text_line: two wires, as a serial port of a computer."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nnef_hw.boards.interfaces.interface import FarEnd, Option, far_end_header
from nnef_hw.boards.interfaces.link import HostLink
from nnef_hw.boards.interfaces.pins import Direction, PinUse
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.host.link import Transport
from nnef_hw.host.serial_port import SerialTransport

__all__ = ["MIN_DIVIDER", "TextLine", "Uart", "uart_divider"]

MIN_DIVIDER = 4
MAX_BAUD_ERROR = 0.02
# A packet of 70 bytes and its reply take 146 ms then, of the 200 ms for which a host waits.
MIN_BAUD = 9600
BITS_PER_BYTE = 10


def uart_divider(clk_hz: float, baud: float) -> int:
    """Clock cycles per bit, rounded.

    Raises
    ------
    ValueError
        When the clock is too slow for the rate, or the rounded rate is off by more than 2%: both
        ends together may differ by about 4% before the stop bit is sampled in the wrong place.
    """
    divider = round(clk_hz / baud)
    if divider < MIN_DIVIDER:
        raise ValueError(
            f"UART at {baud} baud needs a clock of at least {MIN_DIVIDER * baud} Hz, not {clk_hz}")
    error = abs(clk_hz / divider / baud - 1)
    if error > MAX_BAUD_ERROR:
        raise ValueError(
            f"UART at {baud} baud from {clk_hz} Hz is off by {error:.1%}, over "
            f"{MAX_BAUD_ERROR:.0%}; {round(clk_hz / divider)} baud is exact")
    return divider


@dataclass(frozen=True)
class Uart(HostLink):
    """8 data bits, no parity, 1 stop bit.

    Parameters
    ----------
    baud
        Rate.

    Raises
    ------
    UsageError
        If it is not positive.
    """

    baud: int = 1_000_000

    name = "uart"
    options = (
        Option(
            "baud", int,
            "rate of the board's UART, at most a quarter of the clock (default: 1000000)"),
    )
    hardware = "nnef_hw.boards.hardware.phy:UartPhy"

    def __post_init__(self) -> None:
        if not self.baud > 0:
            raise UsageError(f"--baud must be positive, not {self.baud:g}")

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {"rx": PinUse(Direction.INPUT), "tx": PinUse(Direction.OUTPUT)}

    def check_clock(self, clk_hz: int) -> None:
        if self.baud < MIN_BAUD:
            raise TargetError(
                f"a UART of {self.baud} baud is too slow: the link forgets a packet after 10 ms of "
                "silence", remedy=f"give --baud {MIN_BAUD} or more")
        try:
            uart_divider(clk_hz, self.baud)
        except ValueError as error:
            raise TargetError(str(error), remedy="choose another --freq or --baud") from None

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        return {"divider": uart_divider(clk_hz, self.baud)}

    def bytes_per_second(self, clock_mhz: float) -> float:
        return self.baud / BITS_PER_BYTE

    @property
    def serial_baud(self) -> int:
        return self.baud

    def open(self, port: str, build: Path) -> AbstractContextManager[Transport]:
        return SerialTransport(port, self.baud)

    def far_end(self, clk_hz: float) -> FarEnd:
        """Return the other end, whose rate need not divide the clock.

        Raises
        ------
        ValueError
            If a bit has less than two cycles.
        """
        if not 2 * self.baud <= clk_hz:
            raise ValueError(f"baud must be at most half of {clk_hz} Hz, not {self.baud}")
        return FarEnd(far_end_header("uart"), "UartFarEnd", (clk_hz / self.baud,))


@dataclass(frozen=True)
class TextLine(Uart):
    """Texts of a token loop without packets, frames, counters or replay.

    docs/protocol.md, section 9, has its bytes. It takes a quarter of the LUTs of packets.
    """

    name = "text_line"
    core = "nnef_hw.boards.hardware.texts.core:TextCore"
    has_packets = False
    merges_frames = False
    needs_loop = True
    lacks = ("--sink", "--source", "--layer-counters", "--batch")
    usage = "nnef-hw generate"
    luts = 190
    """LUTs that are set aside for it, with clock and reset; those of the loop come on top."""

    def budget(self, lut: int, bram: int) -> tuple[int, int]:
        return self.luts, 0

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "TextLine":
        """Return the link of an entry."""
        return cls(baud=entry["baud"])
