"""Every board: a design for it, and in the night a bitstream of the example."""

from pathlib import Path

import numpy as np
import pytest
from cli_cases import tiny_graph

from nnef_hw.boards import BOARDS
from nnef_hw.boards.hardware.pins import board_pins
from nnef_hw.boards.interfaces import DEFAULT_LINK
from nnef_hw.codegen.board import design_board
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.flow.fixed import fix_model
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.hardware.families import AMD7, ARORA, ECP5, GOWIN, ICE40
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.samples.samples import Samples
from nnef_hw.streaming.search.solver import schedule

pytestmark = pytest.mark.system

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"
PLACED = [board for board in BOARDS if toolchain_of(board.device.family).places]
each_board = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)


@pytest.fixture(scope="module")
def fixed():
    """A small network."""
    graph = tiny_graph()
    shape = graph.tensor(graph.inputs[0]).shape
    inputs = np.random.default_rng(5).uniform(-1, 1, (20, *shape[1:]))
    return fix_model(graph, Samples({graph.inputs[0]: inputs}))[0]


@each_board
def test_design_of_every_board(board, fixed):
    plan = schedule(fixed, board, target_fps=20_000)
    manifest = make_manifest(fixed, plan, generator="test", link=DEFAULT_LINK)
    design = design_board(plan, fixed, manifest, board)
    assert "\nmodule board_top (" in design.verilog
    assert len(design.constraints.splitlines()) >= len(board_pins(board))
    suffixes = {ICE40: "pcf", ECP5: "lpf", GOWIN: "cst", ARORA: "cst", AMD7: "xdc"}
    assert design.suffix == suffixes[board.device.family]
    assert plan.resources.dsp <= board.device.dsp
    assert plan.multipliers > 0


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.verilator
@pytest.mark.parametrize("board", PLACED, ids=lambda board: board.name)
def test_bitstream_of_every_board(board, tmp_path):
    options = BuildOptions(
        EXAMPLE / "digits_cnn.nnef.tgz", board.name, tmp_path / "build",
        calibrate=EXAMPLE / "samples.npz",
    )  # fmt: skip
    report = build(options)
    assert report.timing_met, (report.fmax_mhz, report.clock_mhz)
    assert Path(report.bitstream).stat().st_size > 30_000
    assert report.accuracy.rtl > 0.98
