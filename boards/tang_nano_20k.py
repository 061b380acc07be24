"""Sipeed's Tang Nano 20K: GW2AR-18C, 27 MHz, UART behind its USB socket.

amaranth-boards does not have it; its resources are in :mod:`.tang_nano_20k_platform`.
"""

from nnef_hw.boards.board import Board, Sdram, SpiFlash
from nnef_hw.hardware.devices import GW2AR_18C
from nnef_hw.hardware.memories.flash import W25Q64JV
from nnef_hw.hardware.memories.sdram import GW2AR_SDRAM

__all__ = ["TANG_NANO_20K"]

TANG_NANO_20K = Board(
    name="tang_nano_20k",
    title="Sipeed Tang Nano 20K",
    aliases=("gowin",),
    device=GW2AR_18C,
    part="GW2A-18C",
    package="GW2AR-LV18QN88",
    speed="C8/I7",
    clock_mhz=60.75,
    input_mhz=27.0,
    link_lut=1070,
    platform="nnef_hw.boards.tang_nano_20k_platform:TangNano20kPlatform",
    pins={
        "clk": "clk27", "rx": "uart.rx", "tx": "uart.tx", "led": "led",
        # header pins 25 to 28
        "cs_n": "@25", "copi": "@26", "cipo": "@27", "sck": "@28",
        # header pins 29 to 31, 77 and 76
        "i2s_bclk": "@29", "i2s_ws": "@30", "i2s_data": "@31", "alert": "@77", "text": "@76",
        # header pins 80, 42, 41, 56 and 54
        "pdm_clk": "@80", "pdm_data": "@42",
        "adc_cs_n": "@41", "adc_data": "@56", "adc_sck": "@54",
        # header pins 41 to 56, 73 to 85, 52, 53 (with pull-ups) and 71
        "cam_data": ("@42", "@41", "@56", "@54", "@51", "@48", "@55", "@49"),
        "cam_pclk": "@73", "cam_vsync": "@74", "cam_href": "@75", "cam_xclk": "@85",
        "cam_scl": "@53", "cam_sda": "@52", "cam_error": "@71",
        # in place of a camera's
        "imu_scl": "@53", "imu_sda": "@52", "imu_error": "@71",
        "leds": tuple(f"led:{n}" for n in range(6)),
    },
    attributes={"IO_TYPE": "LVCMOS33"},
    memories=(
        # four banks of 2048 rows and 256 columns, in the FPGA's package
        Sdram(chip=GW2AR_SDRAM, in_package=True, resource="sdram"),
        # of several makers
        SpiFlash(chips=(W25Q64JV,), any_chip=True, lines=1, resource="spi_flash"),
    ),
    flash=("-b", "tangnano20k", "-f"),
)
