"""Sipeed's Tang Console 138K: GW5AST-138C, 50 MHz, UART behind its USB socket.

Pins as in apycula's examples (gw5a/tangconsole138k.cst) and LiteX-Boards.
"""

from nnef_hw.boards.board import Board, Pins
from nnef_hw.hardware.devices import GW5AST_138C

__all__ = ["TANG_CONSOLE_138K"]

TANG_CONSOLE_138K = Board(
    name="tang_console_138k",
    title="Sipeed Tang Console 138K",
    device=GW5AST_138C,
    part="GW5AST-138C",
    package="GW5AST-LV138PG484A",
    speed="C1/I0",
    clock_mhz=50.0,
    input_mhz=50.0,
    # apycula has no bits of a GW5AST's clock generators
    has_pll=False,
    link_lut=1000,
    pins={
        "clk": "@V22", "rx": Pins(("@V14",), attributes={"PULL_MODE": "UP"}), "tx": "@U15",
        # the LEDs READY and DONE
        "led": "@U12", "leds": ("@U12", "@G11"),
    },
    attributes={"IO_TYPE": "LVCMOS33"},
    flash=("-b", "tangconsole", "-f"),
)  # fmt: skip
