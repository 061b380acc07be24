"""A network of windows in time as a build that runs step by step: samples, Verilog, a board."""

import json

import numpy as np
import pytest
from temporal_graphs import classifier, padded

from nnef_hw.errors import SampleError
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import load, save
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.reference import quantize_inputs, run_fixed, run_float
from nnef_hw.run import open_device
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.executors import make_executor
from nnef_hw.run.simulate import compare, simulate
from nnef_hw.samples.samples import Samples, load_samples

WINDOWS = 30

pytestmark = [pytest.mark.system, pytest.mark.verilator]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a build, and its report."""
    folder = tmp_path_factory.mktemp("stream")
    save(classifier(), folder / "net.nnef.tgz")
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (WINDOWS, 2, 19, 3))
    np.savez(folder / "s.npz", inputs=x, labels=rng.integers(0, 3, WINDOWS))
    options = BuildOptions(
        folder / "net.nnef.tgz", "icebreaker", folder / "build", calibrate=folder / "s.npz",
        bitstream=False, frames="all", stream=StreamTime(2),
    )  # fmt: skip
    return folder, build(options)


def windowed(folder):
    """Return the fixed network of a window, calibrated as the build's, and codes of windows."""
    graph = simplify(load(folder / "net.nnef.tgz"))
    samples = load_samples(folder / "s.npz", graph)
    fixed = quantize(graph, samples.calibration().inputs)
    return fixed, quantize_inputs(fixed, samples.inputs)


def test_every_window_is_simulated_step_by_step(built):
    _, report = built
    simulation = report.simulation
    assert simulation.bit_exact
    # 19 rows are 10 steps of two, of which the first begins with a row of zeros.
    assert simulation.frames == simulation.frames_given == WINDOWS * 10
    assert report.accuracy.rtl == report.accuracy.fixed
    assert report.accuracy.samples == 30
    stream = report.stream
    assert (stream.rows, stream.window_rows) == ({"x": 2}, {"x": 19})
    assert 5 * report.macs < stream.window_macs
    assert 5 * report.cycles_per_inference < stream.window_cycles


def test_the_last_step_of_a_window_gives_its_integers(built):
    folder, _ = built
    found = make_executor(folder / "build", "rtl")
    samples = load_samples(folder / "s.npz", found.graph)
    y = found.run(samples.inputs)["y"]
    fixed, codes = windowed(folder)
    expected = run_fixed(fixed, codes)["y"]
    np.testing.assert_array_equal(y[:, -1], fixed.tensor("y").qtype.dequantize(expected))


def test_stalls_and_comparison(built):
    build_folder, samples = BuildFolder.open(built[0] / "build"), built[0] / "s.npz"
    assert simulate(build_folder, samples, limit=4, stall=0.4).bit_exact
    assert simulate(build_folder, None).bit_exact
    compared = compare(build_folder, samples)
    assert compared.bit_exact
    assert len(compared.steps) == 10


def test_models_run_step_by_step_without_a_build(built):
    folder, _ = built
    executor = make_executor(folder / "net.nnef.tgz", "float", stream=StreamTime(2))
    samples = load_samples(folder / "s.npz", executor.graph)
    x = np.load(folder / "s.npz")["inputs"]
    whole = run_float(load(folder / "net.nnef.tgz"), {"x": x})
    np.testing.assert_allclose(executor.run(samples.inputs)["y"][:, -1], whole["y"])


def test_a_board_takes_windows_and_steps(built):
    folder, _ = built
    x = np.load(folder / "s.npz")["inputs"]
    fixed, codes = windowed(folder)
    real = fixed.tensor("y").qtype.dequantize(run_fixed(fixed, codes)["y"])
    with open_device(folder / "build", "sim") as board:
        found = board.run(x[:2])["y"]
        assert found.shape == (2, 10, 3)
        np.testing.assert_array_equal(found[:, -1], real[:2])
        board.reset()
        steps = [board.step(rows)["y"] for rows in board.manifest.rows["x"].sequences(x[1:2])[0]]
        np.testing.assert_array_equal(steps, found[1])
        # What was before is beyond the window after so many steps.
        steps = [board.step(rows)["y"] for rows in board.manifest.rows["x"].sequences(x[:1])[0]]
        np.testing.assert_array_equal(steps[-1], real[0])
        assert (steps[0] != found[0, 0]).any()
        with pytest.raises(SampleError, match="has shape"):
            board.step(x[1])


def test_samples_of_other_shapes_are_refused(built, tmp_path):
    folder = BuildFolder.open(built[0] / "build")
    np.savez(tmp_path / "s.npz", inputs=np.zeros((4, 2, 19, 2)))
    with pytest.raises(SampleError, match=r"\[T, 2, 2, 3\] .*, or windows \[N, 2, rows, 3\]"):
        load_samples(tmp_path / "s.npz", folder.fixed)
    # Longer pieces of a stream are sequences too.
    np.savez(tmp_path / "s.npz", inputs=np.zeros((4, 2, 40, 3)))
    assert load_samples(tmp_path / "s.npz", folder.fixed).inputs["x"].shape[1] == 20


def test_continued_borders_are_calibrated_as_windows_with_more_rows(tmp_path, rng):
    save(padded(), tmp_path / "net.nnef.tgz")
    x = rng.uniform(-1, 1, (WINDOWS, 2, 12, 2))
    np.savez(tmp_path / "s.npz", inputs=x)
    how = StreamTime(2, continue_borders=True)
    options = BuildOptions(
        tmp_path / "net.nnef.tgz", "icebreaker", tmp_path / "build", calibrate=tmp_path / "s.npz",
        bitstream=False, stream=how,
    )  # fmt: skip
    assert build(options).simulation.bit_exact
    folder = BuildFolder.open(tmp_path / "build")
    window, rows = how.window(simplify(padded()))
    longer = Samples({"x": x}).extended(rows)
    assert longer.inputs["x"].shape[2] == 19
    fixed = quantize(window, longer.calibration().inputs)
    expected = run_fixed(fixed, quantize_inputs(fixed, longer.inputs))
    steps = load_samples(tmp_path / "s.npz", folder.fixed)
    found = run_fixed(folder.fixed, quantize_inputs(folder.fixed, steps.inputs))
    [result] = fixed.outputs
    np.testing.assert_array_equal(found[result][:, -1], expected[result])
    assert json.loads((folder.path / "manifest.json").read_text())["stream"] == {
        "x": {"axis": 2, "rows": 2, "front": 4, "behind": 3}
    }
