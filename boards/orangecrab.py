"""The OrangeCrab r0.2 with each of its devices: ECP5, 48 MHz, DFU over USB.

Its USB is the FPGA's: an adapter goes to the pins 0 (N17, from the host) and 1 (M18, to the host)
of its edge.
"""

from nnef_hw.boards.board import Board
from nnef_hw.hardware.devices import ECP5_25K, ECP5_85K

__all__ = ["ORANGECRAB", "ORANGECRAB_85F"]


def _orangecrab(size, device, name, aliases=()):
    return Board(
        name=name,
        title=f"OrangeCrab r0.2 {size}F (UART adapter at pins 0 and 1)",
        aliases=aliases,
        device=device,
        part=f"{size}k",
        package="CSFBGA285",
        speed="8",
        clock_mhz=88.0,
        input_mhz=48.0,
        platform=f"amaranth_boards.orangecrab_r0_2:OrangeCrabR0_2_{size}FPlatform",
        pins={
            "clk": "clk", "rx": "@N17", "tx": "@M18", "led": "rgb_led.g",
            "leds": ("rgb_led.r", "rgb_led.g", "rgb_led.b"),
        },
        attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "UP"},
        flash=("-b", "orangeCrab"),
    )


ORANGECRAB = _orangecrab(25, ECP5_25K, "orangecrab", aliases=("orangecrab_25f",))
ORANGECRAB_85F = _orangecrab(85, ECP5_85K, "orangecrab_85f")
