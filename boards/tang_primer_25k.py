"""Sipeed's Tang Primer 25K on its dock: GW5A-25A, 50 MHz, UART behind its USB socket.

Pins as in apycula's examples (gw5a/primer25k.cst) and LiteX-Boards (sipeed_tang_primer_25k.py),
neither of which says that a LED is lit by a low level.
"""

from nnef_hw.boards.board import Board, Pins
from nnef_hw.hardware.devices import GW5A_25A

__all__ = ["TANG_PRIMER_25K"]

TANG_PRIMER_25K = Board(
    name="tang_primer_25k",
    title="Sipeed Tang Primer 25K",
    aliases=("arora",),
    device=GW5A_25A,
    part="GW5A-25A",
    package="GW5A-LV25MG121N",
    speed="C1/I0",
    clock_mhz=100.0,
    input_mhz=50.0,
    link_lut=1070,
    pins={
        "clk": "@E2", "rx": Pins(("@B3",), attributes={"PULL_MODE": "UP"}), "tx": "@C3",
        # the dock's LEDs READY and DONE
        "led": "@E8", "leds": ("@E8", "@D7"),
        # PMOD J5 of the dock, pins 1 to 4
        "cs_n": "@A11", "copi": "@E11", "cipo": "@K11", "sck": "@L5",
    },
    attributes={"IO_TYPE": "LVCMOS33"},
    flash=("-b", "tangprimer25k", "-f"),
)  # fmt: skip
