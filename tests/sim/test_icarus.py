"""The bench that every build ships, under Icarus Verilog, where unknown values stay unknown."""

import os
import subprocess
import sys

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.hardware.devices import GENERIC, Target
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.run.rtl import payloads
from nnef_hw.run.simulate import random_codes
from nnef_hw.sim.cocotb_bench import write_bench
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

pytestmark = [pytest.mark.system, pytest.mark.icarus]

PLAIN = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)


def rows(rng):
    """Windows over one row, whose row never changes: banked, with padding."""
    g = GraphBuilder()
    x = g.op("tanh", g.conv(g.input("x", [1, 3, 29]), rng.normal(size=[8, 3, 5]), padding=2))
    x = g.op("tanh", g.conv(g.pool("max_pool", x, 2), rng.normal(size=[16, 8, 3])))
    x = g.reshape(g.op("mean_reduce", x, axes=[2]), [1, 16])
    return g.build(g.op("linear", x, rng.normal(size=[9, 16]), np.zeros((1, 9)), name="scores"))


def image(rng):
    """Multipliers in DSP blocks, results of a pool in single-port RAM, a final softmax."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 1, 8, 8]), rng.normal(size=[8, 1, 3, 3]), padding=1)
    x = g.pool("max_pool", g.op("relu", x), 2)
    x = g.conv(x, rng.normal(size=[12, 8, 3, 3]), padding=1)
    x = g.reshape(g.op("mean_reduce", g.op("relu", x), axes=[2, 3]), [1, 12])
    x = g.op("linear", x, rng.normal(size=[10, 12]), np.zeros((1, 10)))
    return g.build(g.op("softmax", x, axes=[1]))


def two_by_two(rng):
    g = GraphBuilder()
    x, y = g.input("left", [1, 2, 4, 4]), g.input("right", [1, 1, 4, 4])
    out = g.op("add", g.conv(x, rng.normal(size=[1, 2, 3, 3]), padding=1), y, name="sum")
    return g.build(out, g.op("tanh", out, name="tanh"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "target"),
    [
        pytest.param(rows, "ecp5", id="row_ecp5"),
        pytest.param(rows, "ice40", id="row_ice40", marks=pytest.mark.nightly),
        pytest.param(image, "ice40", id="image_ice40", marks=pytest.mark.nightly),
        pytest.param(image, PLAIN, id="image_ip", marks=pytest.mark.nightly),
        pytest.param(two_by_two, PLAIN, id="two_by_two_ip"),
    ],
)
def test_shipped_bench_runs_under_icarus(network, target, rng, tmp_path):
    canonical = simplify(network(rng))
    shapes = {name: canonical.tensor(name).shape for name in canonical.inputs}
    noise = {name: rng.normal(size=[16, *shape[1:]]) for name, shape in shapes.items()}
    fixed = quantize(canonical, noise)
    plan = schedule(fixed, find_board(target) if isinstance(target, str) else target)
    if network is rows and target == "ecp5":
        assert any(block.folding.shape["lines"] for block in plan.blocks)
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "top.v").write_text(to_verilog(Accelerator(plan, fixed)))
    codes = random_codes(fixed, 3)
    results = run_fixed(fixed, codes)
    fed = payloads(fixed.inputs, plan.inputs, codes)
    expected = payloads(fixed.outputs, plan.outputs, results)
    write_bench(tmp_path / "sim", {**fed, **expected})
    run = subprocess.run(
        [sys.executable, "sim/run.py"], cwd=tmp_path, env={**os.environ, "SIM": "icarus"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "TESTS=5 PASS=5 FAIL=0" in run.stdout
