"""The 1BitSquared iCEBreaker: iCE40UP5K, 12 MHz, UART behind its USB socket."""

from amaranth_boards.icebreaker import ICEBreakerPlatform

from nnef_hw.boards.board import Board
from nnef_hw.boards.pll import Ice40Pll

__all__ = ["ICEBREAKER", "IceBreaker"]


class IceBreaker(Board):
    """iCEBreaker; its clock pin is the pad of the PLL."""

    name = "icebreaker"
    aliases = ("ice40",)
    family = "ice40"
    device = "up5k"
    package = "sg48"
    constraints_suffix = "pcf"
    platform = ICEBreakerPlatform
    pll = Ice40Pll
    clock_resource = "clk12"
    led_resource = "led_g"
    default_mhz = 24.0

    def constraints(self):
        lines = []
        for port, pin in self.pins().items():
            pullup = " -pullup yes" if pin.attributes.get("PULLUP") and port != "tx" else ""
            lines.append(f"set_io{pullup} {port} {pin.site}")
        lines.append(f"set_frequency clk {self.input_mhz:g}")
        return "\n".join(lines) + "\n"


ICEBREAKER = IceBreaker()
