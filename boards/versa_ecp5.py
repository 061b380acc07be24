"""Lattice's ECP5 Versa board: ECP5UM-45F, 100 MHz (LVDS), UART behind its USB socket."""

from nnef_hw.boards.board import Board
from nnef_hw.hardware.devices import ECP5_45K

__all__ = ["VERSA_ECP5"]

VERSA_ECP5 = Board(
    name="versa_ecp5",
    title="Lattice ECP5 Versa",
    device=ECP5_45K,
    part="um-45k",
    package="CABGA381",
    speed="8",
    clock_mhz=87.5,
    input_mhz=100.0,
    platform="amaranth_boards.versa_ecp5:VersaECP5Platform",
    pins={
        "clk": "clk100", "rx": "uart.rx", "tx": "uart.tx", "led": "led",
        "leds": tuple(f"led:{n}" for n in range(8)),
    },
    flash=("-c", "ft2232", "-f"),
)
