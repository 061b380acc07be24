"""A network with states: its build, its sequences in Verilog, and its steps on a board."""

import json

import numpy as np
import pytest
from recurrent_graphs import delay_line

from nnef_hw.errors import SampleError
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run import open_device
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.bench_device import bench_device
from nnef_hw.run.executors import make_executor
from nnef_hw.run.simulate import compare, simulate

SEQUENCES, STEPS = 30, 5

pytestmark = pytest.mark.verilator


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a build, and its report."""
    folder = tmp_path_factory.mktemp("states")
    save(delay_line(), folder / "net.nnef.tgz")
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, (SEQUENCES, STEPS))
    np.savez(folder / "s.npz", x=rng.uniform(-1, 1, (SEQUENCES, STEPS, 2, 1)), labels=labels)
    options = BuildOptions(
        folder / "net.nnef.tgz", "icebreaker", folder / "build", calibrate=folder / "s.npz",
        bitstream=False, frames="all",
    )  # fmt: skip
    return folder, build(options)


@pytest.fixture
def fixed(built):
    return BuildFolder.open(built[0] / "build").fixed


@pytest.fixture
def codes(built, fixed):
    return quantize_inputs(fixed, dict(np.load(built[0] / "s.npz")))


def test_every_step_of_every_sequence_is_simulated(built):
    _, report = built
    simulation = report.simulation
    assert simulation.bit_exact
    assert simulation.frames == simulation.frames_given == SEQUENCES * STEPS
    assert (
        simulation.cycles_per_inference == simulation.predicted_cycles_per_inference
        == report.cycles_per_inference
    )  # fmt: skip
    # Labels are of every step; so few sequences calibrate and are scored.
    accuracy = report.accuracy
    assert accuracy.rtl == accuracy.fixed
    assert (accuracy.samples, accuracy.calibration_samples) == (30, 30)


def test_sequences_with_pauses_and_compared(built):
    build_folder, samples = BuildFolder.open(built[0] / "build"), built[0] / "s.npz"
    row = simulate(build_folder, samples, limit=4, stall=0.4)
    assert row.bit_exact
    assert row.frames == 4 * STEPS
    assert simulate(build_folder, None).bit_exact
    compared = compare(build_folder, samples)
    assert compared.bit_exact
    assert [step["step"] for step in compared.steps] == [1, 2, 3, 4, 5]
    assert all(step["y dB"] > 25 for step in compared.steps)


def test_executors_agree(built):
    folder, _ = built
    x = np.load(folder / "s.npz")["x"]
    results = [
        make_executor(folder / "build", on).run({"x": x})["y"] for on in ("float", "fixed", "rtl")
    ]
    np.testing.assert_array_equal(results[1], results[2])
    assert np.abs(results[0] - results[1]).mean() < 0.05
    lone = make_executor(folder / "build", "rtl").run({"x": x[3]})["y"]
    np.testing.assert_array_equal(lone, results[2][3])


def test_steps_on_a_board(built, fixed, codes):
    folder, _ = built
    x = np.load(folder / "s.npz")["x"]
    expected = run_fixed(fixed, codes)["y"]
    real = fixed.tensor("y").qtype.dequantize(expected)
    with open_device(folder / "build", "sim") as board:
        assert board.manifest.states == ("old",)
        found = board.run_codes({"x": codes["x"][:3]})["y"]
        np.testing.assert_array_equal(found, expected[:3])
        board.reset()
        for n in range(STEPS):
            np.testing.assert_array_equal(board.step(x[5, n])["y"], real[5, n])
        board.reset()
        np.testing.assert_array_equal(board.step({"x": x[6, 0]})["y"], real[6, 0])
        np.testing.assert_array_equal(board.run(x[7])["y"], real[7])
        with pytest.raises(SampleError, match=r"not \[N, T, 2, 1\], or \[T, 2, 1\]"):
            board.run(x[..., 0])


def test_a_board_runs_as_fast_as_predicted(built):
    report = bench_device(built[0] / "build", "sim", frames=20, link_frames=4)
    assert report.cycles_per_inference == report.predicted_cycles_per_inference


def test_the_manifest_names_the_states(built):
    manifest = json.loads((built[0] / "build" / "manifest.json").read_text())
    assert manifest["states"] == [{"name": "old", "shape": [1, 2, 2]}]
