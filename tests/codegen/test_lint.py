"""What is emitted passes the lints of Verilator and Icarus, and all in it has a name."""

import re
import subprocess
from functools import cache
from itertools import product

import pytest
from golden_digests import fixed_graph
from golden_networks import NETWORKS, outputs, resampled, signs
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.codegen.ip import axi_wrapper
from nnef_hw.codegen.lint import lint_waivers
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.hardware.devices import GENERIC, Target
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.system.tools import find_tool

PLAIN = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)
TARGETS = {
    "icebreaker": find_board("icebreaker"),
    "ulx3s_85f": find_board("ulx3s_85f"),
    "ip": PLAIN,
}
designs = pytest.mark.parametrize(
    ("network", "target"),
    few(
        [*product(NETWORKS[::3], TARGETS)],
        [(resampled, "ip"), (outputs, "icebreaker"), (signs, "ulx3s_85f")],
    ),
    ids=lambda value: getattr(value, "__name__", value),
)


@cache
def design(network, target):
    """Return the Verilog of a golden network for a target, and its top module."""
    graph = fixed_graph(network)
    plan = schedule(graph, TARGETS[target])
    name = "net" if target == "ip" else "top"
    text = to_verilog(Accelerator(plan, graph), name=name, prefix=f"{name}_")
    if target != "ip":
        return text, name
    return text + axi_wrapper(plan, graph, name), f"{name}_axis"


@pytest.mark.verilator
@designs
def test_verilator_warns_of_nothing_that_is_not_meant(network, target, tmp_path):
    text, top = design(network, target)
    source, waivers = tmp_path / "top.v", tmp_path / "waivers.vlt"
    source.write_text(text)
    waivers.write_text(lint_waivers((source.name,)))
    tool = find_tool("verilator")
    run = subprocess.run(
        [*tool.command, "--lint-only", "-Wall", "--top-module", top, waivers, source],
        env=dict(tool.environment), capture_output=True, text=True,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.icarus
@designs
def test_icarus_warns_of_nothing(network, target, tmp_path):
    text, top = design(network, target)
    source = tmp_path / "top.v"
    source.write_text(text)
    run = subprocess.run(
        ["iverilog", "-g2012", "-Wall", "-s", top, "-o", tmp_path / "top.vvp", source],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


DECLARATION = re.compile(
    r"^ *(?:(?:input|output|wire|reg|signed|integer) )+(?:\[[^]]*\] )?(\S+?)[,;]?(?: |$)",
    re.MULTILINE,
)


@designs
def test_everything_has_a_name(network, target):
    text, _ = design(network, target)
    names = DECLARATION.findall(text)
    assert len(names) > 100
    assert not [name for name in names if not re.fullmatch(r"[A-Za-z_]\w*", name)]
    assert "$" not in re.sub(r"\$(signed|unsigned)\(", "", text)
    # What is called after an operator alone does not say what it holds.
    nameless = "value|choice|sum|difference|product|either|both|shifted|picked|signal|state|not|any"
    weak = [name for name in names if re.fullmatch(rf"(?:{nameless})(?:_\d+)?", name)]
    assert len(weak) <= 0.1 * len(names)
