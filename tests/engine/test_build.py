"""A build with the shared engine, from model to report and simulated board."""

import json

import numpy as np
import pytest

from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import open_device
from nnef_hw.run.simulate import simulate
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


@pytest.mark.verilator
def test_build(tmp_path, rng):
    """Everything of a build that asks the architecture: Verilog, simulation, report, manifest."""
    builder = GraphBuilder("little")
    x = builder.input("x", (1, 2, 5, 5))
    x = builder.op("relu", builder.conv(x, rng.normal(size=(6, 2, 3, 3)), padding=1))
    x = builder.conv(x, rng.normal(size=(6, 1, 3, 3)), groups=6, stride=2, name="middle")
    x = builder.op("add", x, builder.input("y", (1, 6, 2, 2)))
    best = builder.op("argmax_reduce", x, axes=[1])
    save(builder.build(best, "middle"), tmp_path / "little.nnef.tgz")
    frames = {"x": rng.normal(size=(12, 2, 5, 5)), "y": rng.normal(size=(12, 6, 2, 2))}
    np.savez(tmp_path / "samples.npz", **frames)
    options = BuildOptions(
        model=tmp_path / "little.nnef.tgz", board="ulx3s_85f", out=tmp_path / "out",
        calibrate=tmp_path / "samples.npz", arch="engine", bitstream=False, frames=5,
        target_fps=1.0,
    )  # fmt: skip
    report = build(options)
    assert (report.arch, report.multipliers, report.in_turn) == ("engine", 16, True)
    assert report.simulation.bit_exact
    assert report.simulation.cycles_per_inference == report.cycles_per_inference
    assert report.latency_cycles == report.simulation.latency_cycles
    assert [layer.kind for layer in report.layers] == [
        "conv", "depthwise", "depthwise", "argmax_reduce",
    ]  # fmt: skip
    page = (options.out / "report.html").read_text()
    assert "all layers take turns on one array" in page
    assert "shared engine" in page
    assert "several resources at once" not in page

    folder = BuildFolder.open(options.out)
    assert folder.plan.dumps() == (options.out / "plan.json").read_text()
    stalled = simulate(folder, options.calibrate, limit=3, stall=0.3)
    assert (stalled.bit_exact, stalled.frames) == (True, 3)
    manifest = json.loads((options.out / "manifest.json").read_text())
    assert manifest["arch"] == "engine"
    assert [row["rows"] for row in manifest["folding"]] == [4, 4, 4, 0]
    codes = quantize_inputs(folder.fixed, {name: x[:2] for name, x in frames.items()})
    with open_device(options.out, "sim") as device:
        found = device.run_codes(codes)
    for name, values in run_fixed(folder.fixed, codes).items():
        assert (found[name] == values).all()
    assert "restarted" in (options.out / "board" / "board_top.v").read_text()
