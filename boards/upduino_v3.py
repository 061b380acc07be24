"""The tinyVision UPduino 3: iCE40UP5K, 12 MHz if the jumper OSC is closed.

It has no UART: an adapter goes to pins 38 (from the host) and 28 (to the host).
"""

from nnef_hw.boards.board import Board, SpiFlash
from nnef_hw.hardware.devices import UP5K
from nnef_hw.hardware.memories.flash import W25Q32JV

__all__ = ["UPDUINO_V3"]

UPDUINO_V3 = Board(
    name="upduino_v3",
    title="tinyVision UPduino 3 (jumper OSC closed, UART adapter at 38 and 28)",
    device=UP5K,
    part="up5k",
    package="sg48",
    clock_mhz=36.75,
    input_mhz=12.0,
    platform="amaranth_boards.upduino_v3:UpduinoV3Platform",
    pins={
        "clk": "clk12", "rx": "@38", "tx": "@28", "led": "rgb_led.g",
        "leds": ("rgb_led.r", "rgb_led.g", "rgb_led.b"),
        "pdm_clk": "@2", "pdm_data": "@46", "alert": "@47", "text": "@45",
        "cam_data": ("@48", "@3", "@4", "@44", "@6", "@9", "@11", "@18"),
        "cam_pclk": "@19", "cam_vsync": "@13", "cam_href": "@21", "cam_xclk": "@12",
        "cam_scl": "@23", "cam_sda": "@25", "cam_error": "@26",
        # in place of a camera's
        "imu_scl": "@23", "imu_sda": "@25", "imu_error": "@26",
    },
    attributes={"PULLUP": 1},
    # The fourth data line is pin 20, which is the oscillator's while the jumper OSC is closed.
    memories=(SpiFlash(chips=(W25Q32JV,), lines=1, resource="spi_flash_1x"),),
    flash=("-b", "ice40_generic", "-c", "ft232", "-f"),
)
