"""The cells that yosys maps an iCE40 accelerator to compute the fixed model's integers.

The models of the cells are yosys's own, among them SB_MAC16 and SB_RAM40_4K.
"""

from pathlib import Path

import numpy as np
import pyosys
import pytest

from nnef_hw.build.pipeline import fix_model
from nnef_hw.build.synthesis import map_only
from nnef_hw.codegen.accelerator import Accelerator
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.frontend import load
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.rtl import run_rtl
from nnef_hw.samples import load_samples
from nnef_hw.schedule import find_target, schedule

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"
CELLS = Path(pyosys.__file__).parent / "share" / "ice40" / "cells_sim.v"
HEAD = "/* verilator lint_off PINMISSING */\n`define NO_ICE40_DEFAULT_ASSIGNMENTS\n"


@pytest.mark.slow
@pytest.mark.synth
@pytest.mark.verilator
def test_mapped_cells_match_the_fixed_model(tmp_path):
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    samples = load_samples(EXAMPLE / "samples.npz", graph)
    fixed, _ = fix_model(graph, samples)
    plan = schedule(fixed, find_target("icebreaker"))
    source = tmp_path / "top.v"
    source.write_text(to_verilog(Accelerator(plan, fixed)))

    cells = map_only(source, top="top", family="ice40", out_dir=tmp_path / "mapped")
    netlist = (tmp_path / "mapped" / "top_netlist.v").read_text()
    assert cells["SB_MAC16"] == sum(block.resources.dsp for block in plan.blocks)

    codes = quantize_inputs(fixed, samples[:24].inputs)
    outcome = run_rtl(HEAD + netlist + CELLS.read_text(), plan, fixed, codes)
    np.testing.assert_array_equal(outcome.codes, run_fixed(fixed, codes)[fixed.outputs[0]])
    assert (outcome.interval, outcome.latency) == (plan.interval, plan.latency)
