"""The cells that yosys maps an accelerator to compute the fixed model's integers, as fast.

The models of the cells are yosys's own, among them SB_MAC16 and SB_RAM40_4K; those of ECP5's
MULT18X18D and DP16KD, and of the multipliers and block RAMs of Gowin, Arora V and AMD, are ours.
"""

from pathlib import Path

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.netlist import mapped_verilog
from nnef_hw.run.rtl import run_rtl
from nnef_hw.samples.samples import load_samples
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.verilator
@pytest.mark.parametrize(
    ("board", "cell"),
    [
        ("icebreaker", "SB_MAC16"),
        ("ulx3s_85f", "MULT18X18D"),
        ("tang_nano_20k", "MULT9X9"),
        ("tang_nano_9k", "MULT9X9"),
        ("tang_primer_25k", "MULT12X12"),
        ("arty_a7_35", "DSP48E1"),
        ("arty_a7_100", "DSP48E1"),
    ],
)
def test_mapped_cells_match_the_fixed_model(board, cell):
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    samples = load_samples(EXAMPLE / "samples.npz", graph)
    fixed, _ = fix_model(graph, samples)
    target = find_board(board)
    plan = schedule(fixed, target)
    verilog = to_verilog(Accelerator(plan, fixed))
    mapped = mapped_verilog(verilog, target.device)
    assert mapped.count(f"  {cell} #(") == sum(block.resources.dsp for block in plan.blocks)

    codes = quantize_inputs(fixed, samples[:24].inputs)
    outcome = run_rtl(mapped, plan, fixed, codes)
    [output] = fixed.outputs
    np.testing.assert_array_equal(outcome.codes[output], run_fixed(fixed, codes)[output])
    assert (outcome.interval, outcome.latency) == (plan.interval, plan.latency)
