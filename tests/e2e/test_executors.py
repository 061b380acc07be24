"""One network, one set of samples, every way to run it."""

from pathlib import Path

import numpy as np
import pytest

from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.run.executors import make_executor

pytestmark = [pytest.mark.system, pytest.mark.verilator, pytest.mark.synth]

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"
COUNT = 30


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The example built for an iCEBreaker, small so that it is mapped quickly."""
    path = tmp_path_factory.mktemp("executors") / "build"
    options = BuildOptions(
        EXAMPLE / "digits_cnn.nnef.tgz", "icebreaker", path, calibrate=EXAMPLE / "samples.npz",
        target_fps=1000, bitstream=False,
    )  # fmt: skip
    build(options)
    return path


@pytest.mark.parametrize(
    "on", ["float", "fixed", "rtl", pytest.param("netlist", marks=pytest.mark.nightly), "device"]
)
def test_every_executor_reads_the_digits(on, built):
    with np.load(EXAMPLE / "samples.npz") as file:
        inputs, labels = file["inputs"][:COUNT], file["labels"][:COUNT]
    executor = make_executor(built, on, port="sim" if on == "device" else None)
    (name,) = executor.graph.outputs
    outputs = executor.run({executor.graph.inputs[0]: inputs})[name]
    assert (outputs.argmax(axis=1) == labels).mean() >= 0.95
    if on != "float":
        expected = make_executor(built, "fixed").run({executor.graph.inputs[0]: inputs})[name]
        np.testing.assert_array_equal(outputs, expected)
