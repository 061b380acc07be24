"""Lattice's iCE40-HX8K breakout board: 12 MHz, UART behind its USB socket; no DSP blocks."""

from nnef_hw.boards.board import Board
from nnef_hw.hardware.devices import HX8K

__all__ = ["ICE40_HX8K_B_EVN"]

ICE40_HX8K_B_EVN = Board(
    name="ice40_hx8k_b_evn",
    title="Lattice iCE40-HX8K Breakout Board",
    device=HX8K,
    part="hx8k",
    package="ct256",
    clock_mhz=84.0,
    input_mhz=12.0,
    platform="amaranth_boards.ice40_hx8k_b_evn:ICE40HX8KBEVNPlatform",
    pins={
        "clk": "clk12", "rx": "uart.rx", "tx": "uart.tx", "led": "led",
        "leds": tuple(f"led:{n}" for n in range(8)),
    },
    flash=("-b", "ice40_generic", "-f"),
)
