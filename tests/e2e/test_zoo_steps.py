"""Trained networks of windows, step by step: the integers of windows that move along a stream."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.frontend import load
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.run.rtl import run_rtl
from nnef_hw.run.simulate import require_exact, simulation_row
from nnef_hw.samples.samples import Samples, load_samples
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

pytestmark = [pytest.mark.zoo, pytest.mark.verilator]

SEQUENCES, STEPS = 3, 100


def open_stream(folder, model, how):
    """Return the fixed networks of a window and of a step, its rows, and codes of a stream.

    The stream is made of the samples that did not calibrate, one behind the other.
    """
    graph = load(folder / model)
    calibration, others = load_samples(
        folder / "samples.npz", load(folder / "model.nnef.tgz")
    ).split()
    [name] = graph.inputs

    def of_model(samples):
        """NCHW as the samples are, or NHWC as TensorFlow Lite has it."""
        [x] = samples.inputs.values()
        is_nchw = x.shape[1:] == graph.tensor(name).shape[1:]
        return Samples({name: x if is_nchw else np.moveaxis(x, 1, -1)})

    window, longer = how.window(simplify(graph))
    fixed = quantize(window, of_model(calibration).extended(longer).inputs)
    step, rows = how.steps(fixed)
    axis = rows[name].axis
    stream = np.concatenate(of_model(others).inputs[name][:60], axis=axis - 1)[np.newaxis]
    stream = stream.take(range(SEQUENCES * STEPS * rows[name].rows), axis)
    return fixed, step, rows[name], fixed.tensor(name).qtype.quantize(stream)


@pytest.mark.parametrize(
    ("name", "model", "how", "board", "target_fps"),
    [
        ("jvowels_conv1d_tanh", "model.onnx", StreamTime(None, True), "icebreaker", None),
        pytest.param(
            "mlperf_sww_ds1d", "original_int8.tflite", StreamTime(1), "ulx3s_25f", None,
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "mlperf_sww_ds1d", "model.nnef.tgz", StreamTime(), "ulx3s_85f", None,
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "mlperf_kws_dscnn", "model.nnef.tgz", StreamTime(2, True), "ulx3s_85f", 5_000,
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["jvowels", "sww of TensorFlow Lite", "sww", "dscnn"],
)  # fmt: skip
def test_steps_are_windows_that_move(name, model, how, board, target_fps, zoo):
    """Over hundreds of steps, with stalls, and resets after each third of them."""
    fixed, step, rows, codes = open_stream(zoo / name, model, how)
    [source], [output] = fixed.inputs, fixed.outputs
    plan = schedule(step, find_board(board), target_fps=target_fps)
    assert not any(block.closes_loop for block in plan.blocks)
    sequences = StreamRows(rows.axis, rows.rows).sequences(codes)
    sequences = sequences.reshape(SEQUENCES, STEPS, *sequences.shape[2:])
    verilog = to_verilog(Accelerator(plan, step))
    outcome = run_rtl(verilog, plan, step, {source: sequences})
    require_exact(simulation_row(plan, outcome, run_fixed(step, {source: sequences})))
    stalled = run_rtl(verilog, plan, step, {source: sequences[:, :60]}, stall=0.3)
    np.testing.assert_array_equal(stalled.codes[output], outcome.codes[output][:, :60])

    # Of every sequence, windows from the first full one on.
    given = fixed.tensor(source).shape[rows.axis]
    length = STEPS * rows.rows
    ends = range(given + rows.behind, length - max(0, -rows.behind) + 1)
    ends = [end for end in ends if end % rows.rows == 0]
    begins = [end - given - rows.behind for end in ends]
    windows = [
        codes[0].take(range(n * length + begin, n * length + begin + given), rows.axis - 1)
        for n in range(SEQUENCES)
        for begin in begins
    ]
    expected = run_fixed(fixed, {source: np.array(windows)})[output]
    found = outcome.codes[output][:, [end // rows.rows - 1 for end in ends]]
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    assert len(np.unique(expected)) > 5

    whole = schedule(fixed, find_board(board))
    assert whole.macs >= 5 * plan.macs
    if target_fps is None:
        assert whole.interval >= 5 * plan.interval
