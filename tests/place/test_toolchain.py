"""What a toolchain answers: the open ones, and one that only writes a project for another program.

That one is made up here and belongs to a family of its own, which nothing of the product knows.
"""

import json
import sys
from dataclasses import fields, replace
from types import ModuleType

import pytest
from cli_cases import tiny_graph

from nnef_hw.boards import find_board
from nnef_hw.errors import ToolError, UsageError
from nnef_hw.explore.sweep import Sweep
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.hardware.devices import UP5K
from nnef_hw.hardware.families import AMD7, ECP5, FAMILIES, ICE40, ice40
from nnef_hw.place.result import SynthesisResult
from nnef_hw.place.synthesis import synthesize
from nnef_hw.place.toolchain import Design, Mapped, Toolchain, toolchain_of
from nnef_hw.run.flash import plan_flashing
from nnef_hw.run.netlist import mapped_verilog
from nnef_hw.system import tools
from nnef_hw.system.tools import find_tool, run_tool

PINS = "set_property PACKAGE_PIN 35 [get_ports clk]\n"


class Project(Toolchain):
    """Writes what a vendor's program reads; that one maps, places and makes the bitstream."""

    def constraints(self, pins, input_mhz):
        lines = [f"set_property PACKAGE_PIN {pin.site} [get_ports {x}]" for x, pin in pins.items()]
        return "\n".join([*lines, f"create_clock -period {1000 / input_mhz:g} [get_ports clk]"])

    def map(self, design, sources, folder, logs, *, pads, progress=print):
        progress("writing sources")
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(source.read_text() for source in sources)
        (folder / f"{design.top}_project.v").write_text(text)
        return Mapped()

    def place(self, design, mapped, folder, logs, *, seeds, bitstream, progress=print):
        name = f"{design.top}.tcl"
        (folder / name).write_text(
            f"create_project {design.top} -part {design.part}{design.package}{design.speed}\n"
            f"read_verilog {design.top}_project.v\n"
            f"read_xdc {design.top}.{self.constraints_suffix}\n"
        )
        return SynthesisResult.unplaced(
            design.frequency_mhz, mapped.cells, {"project": name}, {"project": 0.0}
        )


PROJECT = Project(
    title="the project writer", programs=(), places=False, constraints_suffix="xdc",
    bitstream_suffix=None, outputs={"*_project.v": "sources", "*.tcl": "project"}, models=None,
    ip_family="paper", ip_option="",
)  # fmt: skip
DESIGN = Design(top="top", part="paper", package="1", frequency_mhz=20.0)


@pytest.fixture
def family(monkeypatch):
    """Return a family that names the toolchain of a module that somebody else has installed."""
    module = ModuleType("vendor")
    module.PROJECT = PROJECT
    monkeypatch.setitem(sys.modules, "vendor", module)
    made = replace(ICE40, name="paper", title="Paper", toolchain="vendor:PROJECT")
    monkeypatch.setattr(ice40, "PAPER", made, raising=False)
    return made


@pytest.fixture
def board(family, tmp_path):
    """Return the file of a board with that family's device."""
    icebreaker = find_board("icebreaker")
    device = replace(UP5K, family=family)
    sys.modules["vendor"].BOARD = replace(
        icebreaker, name="paper", title="Paper", device=device, part="paper", aliases=()
    )
    path = tmp_path / "paper.py"
    path.write_text("from vendor import BOARD\n")
    return path


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_every_family_has_one(family):
    toolchain = toolchain_of(family)
    assert toolchain is toolchain_of(family)
    assert toolchain.places is (family is not AMD7)
    assert toolchain.identities == tuple(find_tool(tool).identity for tool in toolchain.programs)


@pytest.mark.synth
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_its_plain_ip_is_synthesized_by_a_command_of_yosys(family, tmp_path):
    toolchain = toolchain_of(family)
    script = tmp_path / "help.ys"
    script.write_text(f"help synth_{toolchain.ip_family}\n")
    run_tool("yosys", ["-s", script.name], cwd=tmp_path, log=tmp_path / "log")
    text = (tmp_path / "log").read_text()
    assert f"synth_{toolchain.ip_family} [options]" in text
    assert "No such command" not in text


def test_only_an_ecp5_needs_scipy(monkeypatch):
    """What is missing is told before minutes of synthesis, with the extra that brings it."""
    found = tools._package_tool
    monkeypatch.setattr(
        tools,
        "_package_tool",
        lambda name, x: None if x.distribution == "scipy" else found(name, x),
    )
    tools._cached_choice.cache_clear()
    with pytest.raises(ToolError, match="scipy was not found") as error:
        assert toolchain_of(ECP5).identities
    assert error.value.remedy == "pip install 'nnef-hw[ecp5]'"
    assert toolchain_of(ICE40).identities
    tools._cached_choice.cache_clear()


@pytest.mark.parametrize("fact", [field.name for field in fields(Toolchain)])
def test_a_fact_left_open_is_an_error(fact):
    known = {field.name: getattr(PROJECT, field.name) for field in fields(Toolchain)}
    del known[fact]
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{fact}'"):
        Project(**known)


@pytest.mark.parametrize("question", sorted(Toolchain.__abstractmethods__))
def test_a_question_left_open_is_an_error(question):
    known = {field.name: getattr(PROJECT, field.name) for field in fields(Toolchain)}
    answers = {name: None for name in Toolchain.__abstractmethods__ if name != question}
    with pytest.raises(TypeError, match=f"abstract .*'?{question}'?"):
        type("Forgetful", (Toolchain,), answers)(**known)


def test_a_project_is_a_result_that_is_not_placed(family, tmp_path):
    (tmp_path / "top.v").write_text("module top(input clk); endmodule\n")
    said = []
    result = synthesize(
        tmp_path / "top.v", top="top", family=family, device="paper", package="1",
        frequency_mhz=20.0, constraints=PINS, out_dir=tmp_path / "out", progress=said.append,
    )  # fmt: skip
    assert said == ["writing sources"]
    assert not result.is_placed
    assert (result.fmax_mhz, result.timing_met, result.seed) == (None, None, None)
    assert (result.resources, result.clocks, result.seeds, result.path) == ({}, {}, {}, [])
    assert result.files == {"project": "top.tcl"}
    assert "-part paper1\n" in (tmp_path / "out" / "top.tcl").read_text()
    assert SynthesisResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_what_only_placement_tells_is_refused(family, tmp_path):
    message = "the project writer does not place designs, so nothing tells"
    with pytest.raises(UsageError, match=f"{message} what a design takes"):
        PROJECT.count(DESIGN, tmp_path, tmp_path / "log")
    with pytest.raises(UsageError, match=f"{message} the clock of a design"):
        PROJECT.attempt(DESIGN, tmp_path, 1, tmp_path / "log")


def test_a_netlist_without_models_is_not_simulated(family):
    with pytest.raises(UsageError, match="the project writer has no models of the cells of up5k"):
        mapped_verilog("module top; endmodule", replace(UP5K, family=family))


def test_an_exploration_ends_with_its_plans(board, fix):
    sweep = Sweep(fix(tiny_graph()), None, [find_board(str(board))], (8,), until="mapped")
    with pytest.raises(UsageError, match="how far paper comes beyond the plan"):
        sweep.check()
    replace(sweep, until="planned").check()


@pytest.mark.verilator
@pytest.mark.system
def test_a_build_ends_with_the_project(board, tiny, tmp_path):
    options = BuildOptions(
        model=tiny / "tiny.nnef.tgz", calibrate=tiny / "samples.npz", board=str(board),
        out=tmp_path / "out", frames=1,
    )  # fmt: skip
    report = build(options)
    assert report.simulation.bit_exact
    assert (report.fmax_mhz, report.timing_met, report.bitstream) == (None, None, None)
    assert report.placed is report.longest_path is None
    assert report.resources["lut"].used is None
    assert report.resources["lut"].estimated > 0
    purposes = {row.path: row.purpose for row in report.files}
    assert purposes["board/board_top.xdc"] == "pins and clocks"
    assert purposes["board/board_top.tcl"] == "project"
    assert "PACKAGE_PIN 35 [get_ports clk]" in (tmp_path / "out/board/board_top.xdc").read_text()
    assert "Not placed and routed" in (tmp_path / "out/report.html").read_text()
    with pytest.raises(UsageError, match="the project writer makes no bitstream"):
        plan_flashing(tmp_path / "out", str(board))
    with pytest.raises(UsageError, match="nothing tells the fastest clock"):
        build(replace(options, fastest=True))
    with pytest.raises(UsageError, match="nothing tells which of several placements is the fast"):
        build(replace(options, seeds=2))
