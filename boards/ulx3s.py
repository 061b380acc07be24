"""The Radiona ULX3S with each of its devices: ECP5, 25 MHz, UART behind its USB socket."""

from amaranth_boards import ulx3s

from nnef_hw.boards.board import Board
from nnef_hw.boards.pll import Ecp5Pll

__all__ = ["ULX3S_12F", "ULX3S_25F", "ULX3S_45F", "ULX3S_85F", "Ulx3s"]


class Ulx3s(Board):
    """ULX3S.

    Parameters
    ----------
    size : int
        Thousands of LUTs of its device: 12, 25, 45 or 85.
    aliases : tuple of str
        Further names.
    """

    family = "ecp5"
    package = "CABGA381"
    constraints_suffix = "lpf"
    pll = Ecp5Pll
    clock_resource = "clk25"
    led_resource = "led"
    default_mhz = 60.0

    def __init__(self, size, aliases=()):
        self.name = f"ulx3s_{size}f"
        self.aliases = aliases
        self.device = f"{size}k"
        self.platform = getattr(ulx3s, f"ULX3S_{size}F_Platform")

    def constraints(self):
        lines = []
        for port, pin in self.pins().items():
            attributes = " ".join(f"{name}={value}" for name, value in pin.attributes.items())
            lines += [f'LOCATE COMP "{port}" SITE "{pin.site}";',
                      f'IOBUF PORT "{port}" {attributes};']
        lines.append(f'FREQUENCY PORT "clk" {self.input_mhz:g} MHZ;')
        return "\n".join(lines) + "\n"


ULX3S_12F = Ulx3s(12)
ULX3S_25F = Ulx3s(25)
ULX3S_45F = Ulx3s(45)
ULX3S_85F = Ulx3s(85, aliases=("ecp5", "ulx3s"))
