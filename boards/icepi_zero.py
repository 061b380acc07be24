"""The Icepi Zero 1.3: ECP5-25F, 50 MHz, UART behind its USB socket."""

from nnef_hw.boards.board import Board
from nnef_hw.hardware.devices import ECP5_25K

__all__ = ["ICEPI_ZERO"]

ICEPI_ZERO = Board(
    name="icepi_zero",
    title="Icepi Zero 1.3",
    device=ECP5_25K,
    part="25k",
    package="CABGA256",
    speed="6",
    clock_mhz=87.5,
    input_mhz=50.0,
    platform="amaranth_boards.icepi_zero:IcepiZero1_3Platform",
    pins={
        "clk": "clk50", "rx": "uart.rx", "tx": "uart.tx", "led": "led",
        "leds": tuple(f"led:{n}" for n in range(5)),
    },
    flash=("-b", "icepi-zero", "-f"),
)
