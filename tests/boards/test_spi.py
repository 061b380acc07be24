# amaranth: UnusedElaboratable=no
import re

import pytest
from increment import Increment

from nnef_hw.boards import BOARDS, find_board
from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.hardware.phy import UartPhy
from nnef_hw.boards.hardware.spi import MIN_SCK_CYCLES, SpiPhy
from nnef_hw.boards.hardware.top import board_constraints, board_top
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError
from nnef_hw.sim.cocotb_bench import run_tests

pytestmark = pytest.mark.system


@pytest.mark.verilator
def test_host_gets_its_results_over_spi(tmp_path):
    """Also at the fastest clock that is allowed, 8 cycles of the board's."""
    assert MIN_SCK_CYCLES == 8
    accelerator = Increment(depth=64)
    core = LinkedCore(
        accelerator, clk_hz=100_000_000, phy=SpiPhy(), manifest_hash=bytes(32), idle_cycles=4096
    )
    text = to_verilog(core, name="core", ports=[core.sck, core.copi, core.cs_n, core.cipo])
    assert run_tests(text, "spi_bench", tmp_path, top="core") == 10


def test_top_with_spi_has_its_pins():
    board = find_board("icebreaker")
    top, ports = board_top(board, Increment(), link="spi")
    text = to_verilog(top, name="board_top", ports=ports)
    header = re.search(r"^module board_top \((.*?)\);", text, re.MULTILINE | re.DOTALL)
    names = set(re.findall(r"^ *(?:input|output|inout)(?: reg)? (\w+)", header[1], re.MULTILINE))
    assert names == {"clk", "sck", "copi", "cipo", "cs_n", "led"}
    lines = board_constraints(board, "spi").splitlines()
    assert {"set_io sck 45", "set_io cs_n 4", "set_io copi 2", "set_io cipo 47"} < set(lines)
    assert not any(" rx " in line or " tx " in line for line in lines)


@pytest.mark.parametrize("board", [b for b in BOARDS if b.spi], ids=lambda board: board.name)
def test_pins_of_spi_are_complete_and_free(board):
    assert board.spi.keys() == {"sck", "copi", "cipo", "cs_n"}
    used = set(
        re.findall(r'set_io(?: -pullup yes)? \w+ (\w+)|SITE "(\w+)"', board_constraints(board))
    )
    assert not {(place[1:], "") for place in board.spi.values()} & used


def test_board_without_spi_is_refused():
    with pytest.raises(TargetError, match="board 'tinyfpga_bx' has no pins for SPI; use --link"):
        board_top(find_board("tinyfpga_bx"), Increment(), link="spi")


def test_phy_that_is_too_fast_is_refused():
    phy = UartPhy(4)
    phy.byte_cycles = 15
    with pytest.raises(ValueError, match="a byte of the phy takes 15 cycles, under 16"):
        LinkedCore(Increment(), clk_hz=1_000_000, phy=phy, manifest_hash=bytes(32))
