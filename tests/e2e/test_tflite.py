"""MLPerf Tiny's networks with TensorFlow Lite's integers and rounding, in simulated hardware."""

import numpy as np
import pytest
from tflite_models import with_tflite_parameters

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.run.rtl import run_rtl
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

pytestmark = [pytest.mark.zoo, pytest.mark.verilator, pytest.mark.nightly]


@pytest.mark.parametrize(
    ("name", "frames"), [("mlperf_kws_dscnn", 20), ("mlperf_ic_resnet8", 8), ("mlperf_sww_ds1d", 8)]
)
def test_hardware_gives_the_results_of_tflites_reference_kernels(name, frames, zoo):
    graph, reference = with_tflite_parameters(zoo / name)
    fixed = quantize(simplify(graph), None, Scheme(rounding="tflite"))
    plan = schedule(fixed, find_board("ulx3s_85f"))
    verilog = to_verilog(Accelerator(plan, fixed))
    inputs = np.load(zoo / name / "samples.npz")["inputs"][:frames]
    codes = fixed.tensor("input").qtype.quantize(inputs)
    (output,) = fixed.outputs

    outcome = run_rtl(verilog, plan, fixed, {"input": codes})
    np.testing.assert_array_equal(outcome.codes[output], reference["output_q"][:frames])
    assert (outcome.interval, outcome.latency) == (plan.interval, plan.latency)

    stalled = run_rtl(verilog, plan, fixed, {"input": codes[:2]}, stall=0.3, seed=1)
    np.testing.assert_array_equal(stalled.codes[output], reference["output_q"][:2])
