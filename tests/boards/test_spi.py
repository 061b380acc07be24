# amaranth: UnusedElaboratable=no
import re

import pytest
from increment import Increment

from nnef_hw.boards import BOARDS, find_board
from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.hardware.phy import UartPhy
from nnef_hw.boards.hardware.pins import board_pins
from nnef_hw.boards.hardware.top import board_top
from nnef_hw.boards.interfaces import Spi, Uart
from nnef_hw.boards.interfaces.spi import MIN_SCK_CYCLES
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.place.constraints import board_constraints
from nnef_hw.sim.cocotb_bench import run_tests

pytestmark = pytest.mark.system


@pytest.mark.verilator
def test_host_gets_its_results_over_spi(tmp_path):
    """Also at the fastest clock that is allowed, 8 cycles of the board's."""
    assert MIN_SCK_CYCLES == 8
    accelerator = Increment(depth=64)
    core = LinkedCore(
        accelerator, clk_hz=100_000_000, link=Spi(), manifest_hash=bytes(32), idle_cycles=4096
    )
    text = to_verilog(core, name="core", ports=[core.sck, core.copi, core.cs_n, core.cipo])
    assert run_tests(text, "spi_bench", tmp_path, top="core") == 10


def test_top_with_spi_has_its_pins():
    board = find_board("icebreaker")
    top, ports = board_top(board, Increment(), link=Spi())
    text = to_verilog(top, name="board_top", ports=ports)
    header = re.search(r"^module board_top \((.*?)\);", text, re.MULTILINE | re.DOTALL)
    names = set(re.findall(r"^ *(?:input|output|inout)(?: reg)? (\w+)", header[1], re.MULTILINE))
    assert names == {"clk", "sck", "copi", "cipo", "cs_n", "led"}
    lines = board_constraints(board, (Spi(),)).splitlines()
    assert {"set_io sck 45", "set_io cs_n 4", "set_io copi 2", "set_io cipo 47"} < set(lines)
    assert not any(" rx " in line or " tx " in line for line in lines)


WITH_SPI = [board for board in BOARDS if board.has_pins(Spi())]


def test_boards_with_spi():
    ulx3s = {f"ulx3s_{size}f" for size in (12, 25, 45, 85)}
    amd7 = {"arty_a7_35", "arty_a7_100", "basys3", "cmod_a7"}
    names = {board.name for board in WITH_SPI}
    tang = {"tang_nano_9k", "tang_nano_20k", "tang_primer_25k"}
    assert names == {"icebreaker", *tang, *ulx3s, *amd7}


@pytest.mark.parametrize("board", WITH_SPI, ids=lambda board: board.name)
def test_pins_of_spi_are_free(board):
    spi = {board_pins(board, (Spi(),))[name].site for name in Spi().pins}
    assert len(spi) == 4
    assert not spi & {pin.site for pin in board_pins(board).values()}


def test_phy_that_is_too_fast_is_refused():
    class HastyPhy(UartPhy):
        def __init__(self, divider):
            super().__init__(divider)
            self.byte_cycles = 15

    class Hasty(Uart):
        @classmethod
        def hardware_class(cls):
            return HastyPhy

    with pytest.raises(ValueError, match="a byte of the phy takes 15 cycles, under 16"):
        LinkedCore(Increment(), clk_hz=4_000_000, link=Hasty(), manifest_hash=bytes(32))
