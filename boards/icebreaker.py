"""The 1BitSquared iCEBreaker: iCE40UP5K, 12 MHz, UART behind its USB socket."""

from nnef_hw.boards.board import Board, SpiFlash
from nnef_hw.hardware.devices import UP5K
from nnef_hw.hardware.memories.flash import W25Q128JV_DTR

__all__ = ["ICEBREAKER"]

ICEBREAKER = Board(
    name="icebreaker",
    title="1BitSquared iCEBreaker",
    aliases=("ice40",),
    device=UP5K,
    part="up5k",
    package="sg48",
    clock_mhz=36.75,
    input_mhz=12.0,
    clock_pad=True,
    platform="amaranth_boards.icebreaker:ICEBreakerPlatform",
    pins={
        "clk": "clk12", "rx": "uart.rx", "tx": "uart.tx", "led": "led_g",
        # PMOD 1A
        "cs_n": "@4", "copi": "@2", "cipo": "@47", "sck": "@45",
        "leds": ("led_r", "led_g"),
        # PMOD 1B
        "i2s_bclk": "@43", "i2s_ws": "@38", "i2s_data": "@34", "alert": "@31", "text": "@42",
        "pdm_clk": "@36", "pdm_data": "@32",
        # PMOD 2, as PmodMIC3 has them
        "adc_cs_n": "@27", "adc_data": "@21", "adc_sck": "@19",
        # PMODs 1A (data, upper row first) and 2
        "cam_data": ("@4", "@2", "@47", "@45", "@3", "@48", "@46", "@44"),
        "cam_pclk": "@27", "cam_vsync": "@25", "cam_href": "@21", "cam_xclk": "@19",
        "cam_scl": "@26", "cam_sda": "@23", "cam_error": "@20",
        # in place of a camera's
        "imu_scl": "@26", "imu_sda": "@23", "imu_error": "@20",
    },
    # W25Q128JVIM
    memories=(SpiFlash(chips=(W25Q128JV_DTR,), lines=4, resource="spi_flash_4x"),),
    flash=("-b", "ice40_generic", "-f"),
)
