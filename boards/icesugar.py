"""The Muse Lab iCESugar 1.5: iCE40UP5K, 12 MHz, UART through its iCELink."""

from nnef_hw.boards.board import Board, SpiFlash
from nnef_hw.hardware.devices import UP5K
from nnef_hw.hardware.memories.flash import W25Q64JV

__all__ = ["ICESUGAR"]

ICESUGAR = Board(
    name="icesugar",
    title="Muse Lab iCESugar 1.5",
    device=UP5K,
    part="up5k",
    package="sg48",
    clock_mhz=36.75,
    input_mhz=12.0,
    clock_pad=True,
    platform="amaranth_boards.icesugar:ICESugarPlatform",
    pins={
        "clk": "clk12", "rx": "uart.rx", "tx": "uart.tx", "led": "led_g",
        "leds": ("led_r", "led_g", "led_b"),
    },
    memories=(SpiFlash(chips=(W25Q64JV,), lines=4, resource="spi_flash_4x"),),
    flash_by_hand="copy {file} onto the drive iCELink",
)
