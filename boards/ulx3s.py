"""The Radiona ULX3S with each of its devices: ECP5, 25 MHz, UART behind its USB socket."""

from nnef_hw.boards.board import Board, Sdram
from nnef_hw.hardware.devices import ECP5_12K, ECP5_25K, ECP5_45K, ECP5_85K
from nnef_hw.hardware.memories.sdram import SDRAM_256_MBIT

__all__ = ["ULX3S_12F", "ULX3S_25F", "ULX3S_45F", "ULX3S_85F"]


def _ulx3s(size, device, aliases=()):
    return Board(
        name=f"ulx3s_{size}f",
        title=f"Radiona ULX3S {size}F",
        aliases=aliases,
        device=device,
        part=f"{size}k",
        package="CABGA381",
        speed="6",
        clock_mhz=87.5,
        input_mhz=25.0,
        platform=f"amaranth_boards.ulx3s:ULX3S_{size}F_Platform",
        pins={
            "clk": "clk25", "rx": "uart.rx", "tx": "uart.tx", "led": "led",
            # GP0, GN0, GP1, GN1
            "cs_n": "@B11", "copi": "@C11", "cipo": "@A10", "sck": "@A11",
            # GP2, GN2, GP3, GN3, GP4
            "i2s_bclk": "@A9", "i2s_ws": "@B10", "i2s_data": "@B9", "alert": "@C10", "text": "@A7",
            # GN4, GP5, GN5, GP6, GN6
            "pdm_clk": "@A8", "pdm_data": "@C8",
            "adc_cs_n": "@B8", "adc_data": "@C6", "adc_sck": "@C7",
            # GP5, GN5 to GP8, GN8; GP9, GN9 to GP11, GN11; GP12
            "cam_data": ("@C8", "@B8", "@C6", "@C7", "@A6", "@B6", "@A4", "@A5"),
            "cam_pclk": "@A2", "cam_vsync": "@B1", "cam_href": "@C4", "cam_xclk": "@B4",
            "cam_scl": "@F4", "cam_sda": "@E3", "cam_error": "@G3",
            # in place of a camera's
            "imu_scl": "@F4", "imu_sda": "@E3", "imu_error": "@G3",
            "leds": tuple(f"led:{n}" for n in range(8)),
        },
        attributes={"IO_TYPE": "LVCMOS33"},
        memories=(Sdram(chip=SDRAM_256_MBIT, resource="sdram"),),
        flash=("-b", "ulx3s", "-f"),
    )


ULX3S_12F = _ulx3s(12, ECP5_12K)
ULX3S_25F = _ulx3s(25, ECP5_25K)
ULX3S_45F = _ulx3s(45, ECP5_45K)
ULX3S_85F = _ulx3s(85, ECP5_85K, aliases=("ecp5", "ulx3s"))
