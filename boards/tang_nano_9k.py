"""Sipeed's Tang Nano 9K: GW1NR-9C, 27 MHz, UART behind its USB socket."""

from nnef_hw.boards.board import Board, Psram, SpiFlash
from nnef_hw.hardware.devices import GW1NR_9C
from nnef_hw.hardware.memories.flash import W25Q32JV

__all__ = ["TANG_NANO_9K"]

TANG_NANO_9K = Board(
    name="tang_nano_9k",
    title="Sipeed Tang Nano 9K",
    device=GW1NR_9C,
    part="GW1N-9C",
    package="GW1NR-LV9QN88P",
    speed="C6/I5",
    clock_mhz=40.5,
    input_mhz=27.0,
    link_lut=1070,
    platform="amaranth_boards.tang_nano_9k:TangNano9kPlatform",
    pins={
        "clk": "clk27", "rx": "uart.rx", "tx": "uart.tx", "led": "led",
        # header pins 25 to 28
        "cs_n": "@25", "copi": "@26", "cipo": "@27", "sck": "@28",
        "leds": tuple(f"led:{n}" for n in range(6)),
    },
    attributes={"IO_TYPE": "LVCMOS33"},
    memories=(
        # two HyperBus dies of 8 bits in the FPGA's package
        Psram(megabits=64, width=16, in_package=True, resource="O_psram_*"),
        # of several makers; the bitstream is in the FPGA's own flash
        SpiFlash(
            chips=(W25Q32JV,), any_chip=True, lines=1, resource="spi_flash_1x",
            write_option="--external-flash",
        ),
    ),
    flash=("-b", "tangnano9k", "-f"),
)  # fmt: skip
