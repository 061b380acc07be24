"""What a build for AMD's 7 series ends with: a project that Vivado runs, and counts of cells."""

import json

import pytest

from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError
from nnef_hw.hardware.families import AMD7
from nnef_hw.place.constraints import board_constraints
from nnef_hw.place.synthesis import synthesize
from nnef_hw.place.toolchain import Design, Mapped, toolchain_of

TOOLCHAIN = toolchain_of(AMD7)
BOARD = find_board("arty_a7_35")
VERILOG = """
module board_top(input clk, input rx, output tx, output led);
  reg [9:0] address = 0;
  always @(posedge clk) address <= address + rx;
  reg [17:0] words [0:1023];
  integer n;
  initial for (n = 0; n < 1024; n = n + 1) words[n] = n * 7;
  reg [17:0] word;
  always @(posedge clk) word <= words[address];
  reg [3:0] few [0:31];
  always @(posedge clk) if (rx) few[address[4:0]] <= word[3:0];
  wire [47:0] product;
`ifdef NNEF_HW_AMD7
  DSP48E1 #(.INMODEREG(0), .OPMODEREG(0), .ALUMODEREG(0), .CARRYINREG(0), .CARRYINSELREG(0))
    mult(.CLK(clk), .A({12'b0, word}), .B({8'b0, address}), .OPMODE(7'b0000101), .P(product),
         .CEA2(1'b1), .CEB2(1'b1), .CEM(1'b1), .CEP(1'b1));
`endif
  assign tx = ^product, led = ^few[word[4:0]];
endmodule
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the folder and the result of a small design."""
    folder = tmp_path_factory.mktemp("vivado")
    source = folder / "source.v"
    source.write_text(VERILOG)
    said = []
    result = synthesize(
        source, top="board_top", family=AMD7, device=BOARD.part, package=BOARD.package,
        speed=BOARD.speed, frequency_mhz=100.0, constraints=board_constraints(BOARD),
        out_dir=folder / "board", progress=said.append,
    )  # fmt: skip
    assert said == ["synthesizing (yosys)", "writing a project (Vivado)"]
    return folder / "board", result


class Vivado:
    """Vivado's commands in a Tcl interpreter: it notes them, and answers what the script asks."""

    def __init__(self, progress="100%", slack="0.25"):
        tkinter = pytest.importorskip("tkinter")
        self.tcl = tkinter.Tcl()
        self.commands = []
        self.answers = {"PROGRESS": progress, "SLACK": slack, "STATUS": "route_design ERROR"}
        names = (
            "create_project add_files set_property update_compile_order launch_runs wait_on_run "
            "open_run report_timing_summary report_utilization puts create_clock"
        )
        for name in names.split():
            self.tcl.createcommand(name, lambda *words, name=name: self.note(name, *words))
        for name in ("get_runs", "get_filesets", "get_timing_paths", "get_ports", "current_design"):
            self.tcl.createcommand(name, lambda *words, name=name: " ".join((name, *words)))
        self.tcl.createcommand("get_property", lambda name, _: self.answers[name])

    def note(self, *words):
        self.commands.append(words)
        return ""

    def run(self, path, *arguments):
        self.tcl.setvar("argv", " ".join(arguments))
        self.tcl.evalfile(str(path))
        return self.commands


@pytest.mark.synth
def test_a_project_is_made_and_run_by_one_command(built, monkeypatch):
    folder, result = built
    assert not result.is_placed
    assert (result.fmax_mhz, result.timing_met, result.resources) == (None, None, {})
    assert result.files["project"] == "board_top.tcl"
    made = folder / "vivado" / "board_top.runs" / "impl_1"
    made.mkdir(parents=True, exist_ok=True)
    (made / "board_top.bit").write_bytes(b"bits")
    monkeypatch.chdir(folder.parent)
    commands = Vivado().run(folder / "board_top.tcl")
    assert commands == [
        ("create_project", "-force", "board_top", "vivado", "-part", "xc7a35ticsg324-1L"),
        ("add_files", "-norecurse", "board_top.v"),
        ("add_files", "-norecurse", "-fileset", "constrs_1", "board_top.xdc"),
        ("set_property", "verilog_define", "NNEF_HW_AMD7=1", "get_filesets sources_1"),
        ("set_property", "top", "board_top", "get_filesets sources_1"),
        ("set_property", "strategy", "Performance_Explore", "get_runs impl_1"),
        ("update_compile_order", "-fileset", "sources_1"),
        ("launch_runs", "impl_1", "-to_step", "write_bitstream", "-jobs", "2"),
        ("wait_on_run", "impl_1"),
        ("open_run", "impl_1"),
        ("report_timing_summary", "-file", "vivado_timing.txt"),
        ("report_utilization", "-file", "vivado_utilization.txt"),
        ("puts", "board_top: the clock of 100 MHz is met with 0.25 ns to spare"),
    ]
    assert (folder / "board_top.bit").read_bytes() == b"bits"


@pytest.mark.synth
def test_a_project_alone_is_not_run(built, monkeypatch):
    folder, _ = built
    monkeypatch.chdir(folder)
    commands = Vivado().run(folder / "board_top.tcl", "project")
    assert commands[-1] == ("update_compile_order", "-fileset", "sources_1")


@pytest.mark.synth
def test_what_vivado_does_not_finish_is_an_error(built, monkeypatch):
    folder, _ = built
    monkeypatch.chdir(folder)
    vivado = Vivado(progress="40%")
    with pytest.raises(vivado_error(), match="board_top: route_design ERROR, see vivado/"):
        vivado.run(folder / "board_top.tcl")


def vivado_error():
    return pytest.importorskip("tkinter").TclError


@pytest.mark.synth
def test_a_missed_clock_is_told(built, monkeypatch):
    folder, _ = built
    made = folder / "vivado" / "board_top.runs" / "impl_1"
    made.mkdir(parents=True, exist_ok=True)
    (made / "board_top.bit").write_bytes(b"bits")
    monkeypatch.chdir(folder)
    commands = Vivado(slack="-1.5").run(folder / "board_top.tcl")
    assert commands[-1] == ("puts", "board_top: the clock of 100 MHz is missed by 1.5 ns")


def test_constraints_are_tcl(tmp_path):
    path = tmp_path / "board_top.xdc"
    path.write_text(board_constraints(find_board("pynq_z2")))
    commands = Vivado().run(path)
    assert ("create_clock", "-name", "clk", "-period", "8.000", "get_ports clk") in commands
    place = ("set_property", "-dict", "PACKAGE_PIN H16 IOSTANDARD LVCMOS33", "get_ports clk")
    assert place in commands


@pytest.mark.synth
def test_cells_are_counted_as_yosys_maps_them(tmp_path):
    source = tmp_path / "source.v"
    source.write_text(VERILOG)
    design = Design(top="board_top", part="xc7s50", package="csga324", frequency_mhz=50)
    mapped = TOOLCHAIN.map(design, [source], tmp_path, tmp_path, pads=False)
    counts = TOOLCHAIN.count(design, tmp_path, tmp_path / "log")
    assert (counts["dsp"], counts["bram"]) == ((1, 120), (1, 150))
    assert mapped.cells["RAM32M"] == 1
    luts = sum(count for kind, count in mapped.cells.items() if kind.startswith("LUT"))
    assert counts["lut"] == (luts + 4 + mapped.cells.get("INV", 0), 32_600)
    assert counts["ff"] == (mapped.flip_flops, 65_200)


def test_a_design_that_does_not_fit_is_refused(tmp_path):
    design = Design(
        top="board_top", part="xc7a35ti", package="csg324", speed="1L", frequency_mhz=100
    )
    mapped = Mapped({"DSP48E1": 91, "RAMB36E1": 51, "RAM64M": 10, "LUT6": 20_700})
    (tmp_path / design.netlist).write_text(json.dumps({"modules": {}}))
    match = r"does not fit xc7a35t: yosys maps it to 91 of 90 dsp, 102 of 100 bram"
    with pytest.raises(TargetError, match=match):
        TOOLCHAIN.place(design, mapped, tmp_path, tmp_path, seeds=(1,), bitstream=True)
    assert not (tmp_path / "board_top.tcl").exists()
