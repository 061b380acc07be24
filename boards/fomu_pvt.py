"""The Fomu PVT: iCE40UP5K, 48 MHz, in a USB socket.

Its USB would need a core of its own, so an adapter goes to the pads 1 (E4, from the host) and
2 (D5, to the host) at its edge.
"""

from nnef_hw.boards.board import Board
from nnef_hw.hardware.devices import UP5K

__all__ = ["FOMU_PVT"]

FOMU_PVT = Board(
    name="fomu_pvt",
    title="Fomu PVT (UART adapter at pads 1 and 2)",
    device=UP5K,
    part="up5k",
    package="uwg30",
    clock_mhz=36.75,
    input_mhz=48.0,
    platform="amaranth_boards.fomu_pvt:FomuPVTPlatform",
    pins={
        "clk": "clk48", "rx": "@E4", "tx": "@D5", "led": "led",
        "leds": ("rgb_led.r", "rgb_led.g", "rgb_led.b"),
    },
    attributes={"PULLUP": 1},
    flash=("-b", "fomu"),
)
