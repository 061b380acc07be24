"""The Colorlight 5A-75B v7.0: ECP5-25F, 25 MHz.

A UART adapter goes to J19: KEY+ (from the host) and DATA_LED- (to the host), which is the LED's
pin as well. JTAG is on J27 to J34.
"""

from nnef_hw.boards.board import Board
from nnef_hw.hardware.devices import ECP5_25K

__all__ = ["COLORLIGHT_5A_75B"]

COLORLIGHT_5A_75B = Board(
    name="colorlight_5a_75b",
    title="Colorlight 5A-75B v7.0 (UART adapter at J19, JTAG cable)",
    device=ECP5_25K,
    part="25k",
    package="CABGA256",
    speed="6",
    clock_mhz=87.5,
    input_mhz=25.0,
    platform="amaranth_boards.colorlight_5a75b_r7_0:Colorlight_5A75B_R70Platform",
    pins={"clk": "clk25", "rx": "uart.rx", "tx": "uart.tx"},
    flash=("-b", "colorlight", "-f"),
)
