"""A processor in LiteX's simulator gets the classes of the fixed model from the accelerator."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nnef_hw.boards.interfaces import find_streams
from nnef_hw.errors import UsageError
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.samples.samples import load_samples
from nnef_hw.system.tools import find_tool

EXAMPLES = Path(__file__).parents[2] / "examples"
SAMPLES = EXAMPLES / "digits_cnn" / "samples.npz"
FRAMES = 6

pytestmark = [pytest.mark.system, pytest.mark.nightly, pytest.mark.verilator]


@pytest.fixture
def make(tmp_path):
    """Return ``make(bus, data)``: the folder of digits_cnn as plain IP."""

    def make(bus, data):
        out = tmp_path / "net"
        model = EXAMPLES / "digits_cnn" / "digits_cnn.nnef.tgz"
        build(BuildOptions(
            model=model, board="none", device="generic", ip_name="net", out=out, calibrate=SAMPLES,
            streams=find_streams(bus, data), frames=3,
        ))  # fmt: skip
        return out

    return make


def test_a_processor_prints_the_classes_of_the_model(make, tmp_path):
    pytest.importorskip("litex", reason="the extra litex is not installed")
    for module in ("pythondata_cpu_vexriscv", "pythondata_misc_tapcfg"):
        pytest.importorskip(module, reason="the extra litex is not installed")
    if shutil.which("riscv64-unknown-elf-gcc") is None:
        pytest.skip("no C compiler for RISC-V; examples/litex/README.md says what to install")
    folder = make("wishbone", "registers")
    path = os.pathsep.join([str(find_tool("verilator").path / "bin"), os.environ["PATH"]])
    run = subprocess.run(
        [sys.executable, EXAMPLES / "litex" / "soc.py", folder, SAMPLES, tmp_path / "soc",
         str(FRAMES)],
        env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    fixed = BuildFolder.open(folder).fixed
    inputs = load_samples(SAMPLES, fixed)[:FRAMES].inputs
    [scores] = run_fixed(fixed, quantize_inputs(fixed, inputs)).values()
    classes = scores.reshape(FRAMES, -1).argmax(1)
    printed = [line for line in run.stdout.splitlines() if line.startswith(("class ", "another"))]
    assert printed == [f"class {n}" for n in classes]


def test_a_module_has_endpoints_for_streams(make):
    litex = pytest.importorskip("nnef_hw.litex", reason="the extra litex is not installed")
    sources = []

    class Platform:
        add_source = staticmethod(sources.append)

    module = litex.Accelerator(make("wishbone", "streams"), Platform)
    assert (len(module.sink.data), len(module.source.data)) == (8, 8)
    assert [Path(source).name for source in sources] == ["top.v", "net_wishbone.v"]


def test_a_build_without_registers_is_refused(make):
    litex = pytest.importorskip("nnef_hw.litex", reason="the extra litex is not installed")
    with pytest.raises(UsageError, match="has no registers on Wishbone B4; build it with --board"):
        litex.Accelerator(make("axi4-lite", "streams"))
