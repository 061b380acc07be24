"""Memories beside the FPGAs: what the boards say, and the pins that platforms have for them."""

from dataclasses import replace

import pytest

from nnef_hw.boards import find_board
from nnef_hw.boards.board import Psram, Sdram, SpiFlash
from nnef_hw.boards.hardware.memory_pins import memory_pins, package_ports
from nnef_hw.boards.hardware.pins import board_pins
from nnef_hw.errors import TargetError
from nnef_hw.hardware.memories import FLASH_CHIPS, find_flash
from nnef_hw.hardware.memories.flash import (
    FAST_READ,
    QUAD_IO,
    QUAD_IO_DDR,
    READ,
    W25Q64JV,
    W25Q128JV,
    W25Q128JV_DTR,
)  # fmt: skip
from nnef_hw.hardware.memories.sdram import SDRAM_256_MBIT

USABLE = ["icebreaker", "icesugar", "upduino_v3", "tang_nano_9k", "tang_nano_20k", "ulx3s_12f",
          "ulx3s_25f", "ulx3s_45f", "ulx3s_85f"]  # fmt: skip
DQ = ["flash_dq[0]", "flash_dq[1]", "flash_dq[2]", "flash_dq[3]"]


def test_facts():
    facts = {
        name: [(memory.kind, memory.megabits, memory.width) for memory in find_board(name).memories]
        for name in USABLE
    }
    assert facts == {
        "icebreaker": [("SPI flash", 128, 4)],
        "icesugar": [("SPI flash", 64, 4)],
        "upduino_v3": [("SPI flash", 32, 1)],
        "tang_nano_9k": [("PSRAM", 64, 16), ("SPI flash", 32, 1)],
        "tang_nano_20k": [("SDRAM", 64, 32), ("SPI flash", 64, 1)],
        **{name: [("SDRAM", 256, 16)] for name in USABLE if name.startswith("ulx3s")},
    }
    assert find_board("icebreaker").sdram is find_board("ulx3s_85f").spi_flash is None
    assert find_board("tang_nano_20k").sdram.kind == "SDRAM"
    assert find_board("tang_nano_20k").spi_flash.any_chip


@pytest.mark.parametrize("name", USABLE)
def test_pins_are_free_and_complete(name):
    board = find_board(name)
    used = {pin.site for pin in board_pins(board).values()}
    for memory in (board.spi_flash, board.sdram):
        if memory is None or memory.in_package:
            continue
        assert package_ports(board, memory) == {}
        pins = memory_pins(board, memory)
        sites = [pin.site for pin in pins.values()]
        assert len(set(sites)) == len(sites)
        assert not used & set(sites)
        assert {port.partition("[")[0] for port in pins} == {
            memory.prefix + port.partition("[")[0] for port in memory.ports.values()
        }
        width = {1: 2}.get(memory.width, memory.width)
        assert sum("_dq[" in port for port in pins) == width


def test_pins_of_the_flash():
    board = find_board("icebreaker")
    pins = memory_pins(board, board.spi_flash)
    assert [pins[port].site for port in ("flash_cs_n", "flash_sck", *DQ)] == [
        "16", "15", "14", "17", "12", "13",
    ]  # fmt: skip
    board = find_board("tang_nano_9k")
    pins = memory_pins(board, board.spi_flash)
    assert [pins[port].site for port in ("flash_cs_n", "flash_sck", *DQ[:2])] == [
        "60",
        "59",
        "61",
        "62",
    ]


def test_pins_of_the_sdram():
    board = find_board("ulx3s_85f")
    pins = memory_pins(board, board.sdram)
    assert len(pins) == 7 + 2 + 13 + 2 + 16 - 1
    assert (pins["sdram_clk"].site, pins["sdram_a[12]"].site) == ("F19", "G19")
    assert pins["sdram_dq[15]"].attributes["IO_TYPE"] == "LVCMOS33"


def test_pins_within_the_package_have_names():
    board = find_board("tang_nano_20k")
    names = package_ports(board, board.sdram)
    assert memory_pins(board, board.sdram) == {}
    assert names.keys() == {f"sdram_{port}" for port in board.sdram.ports.values()}
    assert (names["sdram_clk"], names["sdram_a"]) == ("O_sdram_clk", "O_sdram_addr")
    assert names["sdram_dq"] == "IO_sdram_dq"


def test_pins_that_are_not_there():
    board = find_board("icebreaker")
    flash = board.spi_flash
    with pytest.raises(TargetError, match=r"'icebreaker'.* has no 'spi_flash_8x'"):
        memory_pins(board, replace(flash, resource="spi_flash_8x"))
    with pytest.raises(TargetError, match=r"uart\.rx is unknown"):
        memory_pins(board, replace(flash, resource="uart"))
    with pytest.raises(TargetError, match="designs cannot use its PSRAM"):
        memory_pins(board, Psram(resource="x"))
    with pytest.raises(ValueError, match="SpiFlash needs a chip and 1 or 4 lines"):
        replace(flash, lines=2)
    with pytest.raises(ValueError, match="SpiFlash needs a chip"):
        replace(flash, chips=())


def test_chips_are_told_apart_by_their_id():
    assert len({chip.jedec_id for chip in FLASH_CHIPS}) == len(FLASH_CHIPS)
    assert find_flash(0xEF7018) is W25Q128JV_DTR
    assert find_flash(0x20BA16) is None
    assert [chip.knows_ddr for chip in (W25Q128JV, W25Q128JV_DTR)] == [False, True]


@pytest.mark.parametrize(
    ("chips", "lines", "clock_mhz", "ddr", "read"),
    [
        ((W25Q128JV_DTR,), 4, 36, True, QUAD_IO_DDR),
        ((W25Q128JV_DTR,), 4, 36, False, QUAD_IO),
        ((W25Q128JV_DTR,), 4, 80, True, QUAD_IO),
        ((W25Q128JV_DTR, W25Q64JV), 4, 36, True, QUAD_IO),
        ((W25Q128JV_DTR,), 1, 36, True, READ),
        ((W25Q128JV_DTR,), 1, 60, True, FAST_READ),
        ((W25Q128JV_DTR,), 4, 110, True, None),
    ],
)
def test_best_read(chips, lines, clock_mhz, ddr, read):
    flash = SpiFlash(chips=chips, lines=lines, resource="spi_flash")
    assert flash.best_read(clock_mhz, ddr=ddr) is read


def test_clocks_of_reads():
    """Of the instruction set table: opcode, address, mode bits, dummies."""
    assert [read.setup_clocks for read in (READ, FAST_READ, QUAD_IO, QUAD_IO_DDR)] == [
        32, 40, 20, 19,
    ]  # fmt: skip
    assert [read.bits_per_clock for read in (READ, QUAD_IO, QUAD_IO_DDR)] == [1, 4, 8]


def test_cas_latency():
    assert [SDRAM_256_MBIT.cas_latency(mhz) for mhz in (25, 100, 100.1, 133)] == [2, 2, 3, 3]
    with pytest.raises(ValueError, match="takes at most 133 MHz, not 134"):
        SDRAM_256_MBIT.cas_latency(134)
    assert Sdram(chip=SDRAM_256_MBIT, resource="sdram").megabits == 256
