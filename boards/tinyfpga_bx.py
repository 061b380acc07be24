"""The TinyFPGA BX: iCE40LP8K, 16 MHz; no DSP blocks.

It has no UART: an adapter goes to pins 1 (A2, from the host) and 2 (A1, to the host).
"""

from nnef_hw.boards.board import Board
from nnef_hw.hardware.devices import LP8K

__all__ = ["TINYFPGA_BX"]

TINYFPGA_BX = Board(
    name="tinyfpga_bx",
    title="TinyFPGA BX (UART adapter at pins 1 and 2)",
    device=LP8K,
    part="lp8k",
    package="cm81",
    clock_mhz=60.0,
    input_mhz=16.0,
    platform="amaranth_boards.tinyfpga_bx:TinyFPGABXPlatform",
    pins={
        "clk": "clk16", "rx": "@A2", "tx": "@A1", "led": "led",
        "leds": ("led",),
    },
    attributes={"PULLUP": 1},
    flash_by_hand="press the board's button and run 'tinyprog -p {file}' (pip install tinyprog)",
)
