"""Boards with AMD's 7 series: Digilent's Arty A7, Basys 3 and Cmod A7, and TUL's PYNQ-Z2.

Pins of the Arty A7 and of the Cmod A7 are those of amaranth-boards (arty_a7.py, cmod_a7.py), which
does not have the others: those of the Basys 3 are from Digilent's constraints (Basys-3-Master.xdc),
those of the PYNQ-Z2 from TUL's (pynq-z2_v1.0.xdc). The memories on these boards are not used.
"""

from nnef_hw.boards.board import Board
from nnef_hw.hardware.devices import XC7A35T, XC7A100T, XC7Z020

__all__ = ["ARTY_A7_35", "ARTY_A7_100", "BASYS3", "CMOD_A7", "PYNQ_Z2"]

IO = {"IOSTANDARD": "LVCMOS33"}
BY_HAND = "build {{file}} with Vivado, and write it with openFPGALoader -b {name} (-f keeps it)"
ARTY_PINS = {
    "clk": "clk100", "rx": "uart.rx", "tx": "uart.tx",
    "led": "led", "leds": ("led:0", "led:1", "led:2", "led:3"),
    # PMOD JA, pins 1 to 4
    "cs_n": "@G13", "copi": "@B11", "cipo": "@A11", "sck": "@D12",
}

ARTY_A7_35 = Board(
    name="arty_a7_35", title="Digilent Arty A7-35T", device=XC7A35T,
    part="xc7a35ti", package="csg324", speed="1L",
    clock_mhz=100.0, input_mhz=100.0, link_lut=500,
    platform="amaranth_boards.arty_a7:ArtyA7_35Platform", pins=ARTY_PINS, attributes=IO,
    flash_by_hand=BY_HAND.format(name="arty_a7_35t"),
)
ARTY_A7_100 = Board(
    name="arty_a7_100", title="Digilent Arty A7-100T", aliases=("amd7",), device=XC7A100T,
    part="xc7a100ti", package="csg324", speed="1L",
    clock_mhz=100.0, input_mhz=100.0, link_lut=500,
    platform="amaranth_boards.arty_a7:ArtyA7_100Platform", pins=ARTY_PINS, attributes=IO,
    flash_by_hand=BY_HAND.format(name="arty_a7_100t"),
)
BASYS3 = Board(
    name="basys3", title="Digilent Basys 3", device=XC7A35T,
    part="xc7a35t", package="cpg236", speed="1",
    clock_mhz=100.0, input_mhz=100.0, link_lut=500,
    pins={
        "clk": "@W5", "rx": "@B18", "tx": "@A18",
        "led": "@U16",
        "leds": (
            "@U16", "@E19", "@U19", "@V19", "@W18", "@U15", "@U14", "@V14", "@V13", "@V3", "@W3",
            "@U3", "@P3", "@N3", "@P1", "@L1",
        ),
        # PMOD JA, pins 1 to 4
        "cs_n": "@J1", "copi": "@L2", "cipo": "@J2", "sck": "@G2",
    },
    attributes=IO,
    flash_by_hand=BY_HAND.format(name="basys3"),
)
CMOD_A7 = Board(
    name="cmod_a7", title="Digilent Cmod A7-35T", device=XC7A35T,
    part="xc7a35t", package="cpg236", speed="1",
    clock_mhz=96.0, input_mhz=12.0, link_lut=500,
    platform="amaranth_boards.cmod_a7:CmodA7_35Platform",
    pins={
        "clk": "clk12", "rx": "uart.rx", "tx": "uart.tx",
        "led": "led", "leds": ("led:0", "led:1"),
        # PMOD JA, pins 1 to 4
        "cs_n": "@G17", "copi": "@G19", "cipo": "@N18", "sck": "@L18",
    },
    attributes=IO,
    flash_by_hand=BY_HAND.format(name="cmoda7_35t"),
)
# Its clock is that of the Ethernet chip. The UART behind its USB socket belongs to the processors,
# so a converter (3.3 V) stands at the Arduino header: AR0 receives, AR1 sends.
PYNQ_Z2 = Board(
    name="pynq_z2", title="TUL PYNQ-Z2", device=XC7Z020,
    part="xc7z020", package="clg400", speed="1",
    clock_mhz=100.0, input_mhz=125.0, link_lut=500,
    pins={
        "clk": "@H16", "rx": "@T14", "tx": "@U12",
        "led": "@R14", "leds": ("@R14", "@P14", "@N16", "@M14"),
    },
    attributes=IO,
    flash_by_hand="build {file} with Vivado, and load it there or with PYNQ's class Bitstream",
)
