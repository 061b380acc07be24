"""The link SPI: the board is the peripheral of a microcontroller, in mode 0."""

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.boards.interfaces.interface import FarEnd, far_end_header
from nnef_hw.boards.interfaces.link import HostLink
from nnef_hw.boards.interfaces.pins import Direction, PinUse

__all__ = ["MIN_SCK_CYCLES", "Spi"]

MIN_SCK_CYCLES = 8


@dataclass(frozen=True)
class Spi(HostLink):
    """Most significant bit first; the host's clock has at most an eighth of the board's rate."""

    name = "spi"
    hardware = "nnef_hw.boards.hardware.spi:SpiPhy"
    keeps_time = False

    @property
    def pins(self) -> Mapping[str, PinUse]:
        inputs = dict.fromkeys(("cs_n", "copi", "sck"), PinUse(Direction.INPUT))
        return {**inputs, "cipo": PinUse(Direction.OUTPUT)}

    def check_clock(self, clk_hz: int) -> None:
        """Accept any: the host's clock follows the board's."""

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        return {}

    def bytes_per_second(self, clock_mhz: float) -> float:
        return clock_mhz * 1e6 / (8 * MIN_SCK_CYCLES)

    def far_end(self, clk_hz: float) -> FarEnd:
        return FarEnd(far_end_header("spi"), "SpiFarEnd", (MIN_SCK_CYCLES,))
