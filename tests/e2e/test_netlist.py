"""The cells that yosys maps an accelerator to compute the fixed model's integers, as fast.

The models of the cells are yosys's own, among them SB_MAC16 and SB_RAM40_4K; those of ECP5's
MULT18X18D and DP16KD, and of the multipliers and block RAMs of Gowin, Arora V and AMD, are ours.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.netlist import mapped_verilog
from nnef_hw.run.rtl import run_rtl
from nnef_hw.samples.samples import load_samples
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

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
    plan, mapped = netlist_equals_the_model(fixed, target, samples[:24].inputs)
    assert mapped.count(f"  {cell} #(") == sum(block.resources.dsp for block in plan.blocks)


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.verilator
def test_cells_with_two_products_of_narrow_weights_match_the_fixed_model():
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    samples = load_samples(EXAMPLE / "samples.npz", graph)
    fixed, _ = fix_model(graph, samples, Scheme(weight_bits=4))
    target = find_board("arty_a7_35")
    plan, mapped = netlist_equals_the_model(fixed, target, samples[:4].inputs)
    blocks = mapped.count("  DSP48E1 #(")
    assert blocks == sum(block.resources.dsp for block in plan.blocks)
    assert 2 * blocks >= sum(block.in_dsp for block in plan.blocks) > blocks


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.verilator
@pytest.mark.parametrize(
    ("board", "cell"), [("ulx3s_85f", "MULT18X18D"), ("arty_a7_35", "DSP48E1")]
)
def test_cells_with_four_products_of_narrow_weights_match_the_fixed_model(board, cell, rng):
    g = GraphBuilder()
    x = g.input("x", [1, 8, 6, 6])
    shape = {"border": "constant", "padding": [(1, 1), (1, 1)], "stride": [1, 1]}
    shape |= {"dilation": [1, 1], "groups": 1}
    y = g.op("relu", g.op("conv", x, rng.normal(size=[16, 8, 3, 3]), 0.0, **shape))
    y = g.op("conv", y, rng.normal(size=[12, 16, 3, 3]), 0.3, **shape)
    inputs = {"x": rng.normal(size=(8, 1, 8, 6, 6))}
    fixed = quantize(simplify(g.build(y)), inputs, Scheme(weight_bits=4))
    target = find_board(board)
    target = replace(target, device=replace(target.device, lut=5000, dsp=20))

    plan, mapped = netlist_equals_the_model(fixed, target, {"x": inputs["x"].reshape(8, 8, 6, 6)})

    assert {block.folding.products_per_multiplier for block in plan.blocks} == {4}
    assert mapped.count(f"  {cell} #(") == sum(block.resources.dsp for block in plan.blocks)


def netlist_equals_the_model(fixed, target, inputs, **wanted):
    """Map the accelerator of a network, simulate its cells, and compare codes and cycles."""
    plan = schedule(fixed, target, **wanted)
    mapped = mapped_verilog(to_verilog(Accelerator(plan, fixed)), target.device)
    codes = quantize_inputs(fixed, inputs)
    outcome = run_rtl(mapped, plan, fixed, codes)
    expected = run_fixed(fixed, codes)
    for output in fixed.outputs:
        np.testing.assert_array_equal(outcome.codes[output], expected[output])
    assert outcome.latency == plan.latency
    # of one frame there is no interval
    frames = len(next(iter(codes.values())))
    assert outcome.interval == (plan.interval if frames > 1 else None)
    return plan, mapped


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.verilator
@pytest.mark.zoo
@pytest.mark.parametrize(
    ("name", "board", "rate", "frames"),
    [
        ("tflm_hello_world", "arty_a7_35", 1000, 8), ("digits_mlp", "arty_a7_35", 1000, 8),
        ("jvowels_conv1d_tanh", "arty_a7_35", 1000, 4), ("mnist_tiny_cnn", "arty_a7_35", 1000, 2),
        ("mnist_lenet5", "arty_a7_35", 500, 2), ("mlperf_sww_ds1d", "arty_a7_100", 100, 1),
        ("mlperf_ad_fcae", "arty_a7_100", 500, 1), ("mlperf_kws_dscnn", "arty_a7_100", 200, 1),
        ("mlperf_kws_dscnn_savedmodel", "arty_a7_100", 200, 1),
        ("mlperf_ic_resnet8", "arty_a7_100", 50, 1),
        ("mlperf_vww_mobilenetv1", "arty_a7_100", 20, 1),
    ],
)  # fmt: skip
def test_cells_of_amd_match_the_fixed_model(name, board, rate, frames, zoo):
    """Networks of every kind of layer, at rates at which a netlist is simulated in minutes."""
    graph = load(zoo / name / "model.nnef.tgz")
    samples = load_samples(zoo / name / "samples.npz", graph)
    fixed, _ = fix_model(graph, samples[:100])
    target = find_board(board)
    plan, mapped = netlist_equals_the_model(fixed, target, samples[:frames].inputs, target_fps=rate)
    assert mapped.count("  DSP48E1 #(") == sum(block.resources.dsp for block in plan.blocks)
