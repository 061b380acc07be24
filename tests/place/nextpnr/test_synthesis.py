import json
import os
import re
import threading
from pathlib import Path

import pytest
from amaranth.back import verilog
from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal

from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError, ToolError, UnroutedError
from nnef_hw.hardware.families import ARORA, ECP5, GOWIN, ICE40
from nnef_hw.place import mapping
from nnef_hw.place.nextpnr import nextpnr
from nnef_hw.place.nextpnr import run as runs
from nnef_hw.place.nextpnr.congestion import Congestion
from nnef_hw.place.nextpnr.policy import EARLY, FLOOD, MANY, PATIENCE, SPAN
from nnef_hw.place.result import Resource, SynthesisResult
from nnef_hw.place.synthesis import map_only, synthesize
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.system.tools import Tool, find_tool, run_tool

pytestmark = [pytest.mark.system, pytest.mark.synth]

TARGETS = {
    ICE40: {"device": "up5k", "package": "sg48"},
    ECP5: {"device": "85k", "package": "CABGA381"},
    GOWIN: {"device": "GW1N-9C", "package": "GW1NR-LV9QN88P", "speed": "C6/I5"},
    ARORA: {"device": "GW5A-25A", "package": "GW5A-LV25MG121N", "speed": "C1/I0"},
}
# pins of the iCEBreaker, of the ULX3S, of the Tang Nano 9K and of the Tang Primer 25K
PINS = {
    ICE40: "set_io clk 35\nset_io led 11\n",
    ECP5: 'LOCATE COMP "clk" SITE "G2";\nIOBUF PORT "clk" IO_TYPE=LVCMOS33;\n'
    'LOCATE COMP "led" SITE "B2";\nIOBUF PORT "led" IO_TYPE=LVCMOS33;\n',
    GOWIN: 'IO_LOC "clk" 52;\nIO_LOC "led" 10;\n',
    ARORA: 'IO_LOC "clk" E2;\nIO_LOC "led" E8;\n',
}
DESIGN = """
module top(input clk, output led);
  reg [15:0] count = 0;
  reg [15:0] memory [0:255];
  reg [15:0] word;
  wire [31:0] product;
  always @(posedge clk) begin
    count <= count + 1;
    word <= memory[count[7:0]];
    if (count[15]) memory[count[11:4]] <= count;
  end
`ifdef NNEF_HW_ICE40
  SB_MAC16 #(.A_REG(1'b1), .B_REG(1'b1), .TOPOUTPUT_SELECT(2'd3), .BOTOUTPUT_SELECT(2'd3))
    mac(.CLK(clk), .CE(1'b1), .A(word), .B(count), .C(16'd0), .D(16'd0), .O(product));
`endif
`ifdef NNEF_HW_ECP5
  MULT18X18D #(.REG_INPUTA_CLK("CLK0"), .REG_OUTPUT_CLK("CLK0"))
    mac(.CLK0(clk), .CE0(1'b1), .RST0(1'b0), .A0(word[0]), .A1(word[1]), .B0(count[0]),
        .P0(product[0]), .P1(product[1]), .P2(product[2]));
  assign product[31:3] = word;
`endif
`ifdef NNEF_HW_GOWIN
  MULT9X9 #(.AREG(1'b1), .BREG(1'b1), .OUT_REG(1'b1))
    mac(.CLK(clk), .CE(1'b1), .RESET(1'b0), .ASIGN(1'b1), .BSIGN(1'b1), .ASEL(1'b0), .BSEL(1'b0),
        .A(word[8:0]), .B(count[8:0]), .SIA(9'b0), .SIB(9'b0), .DOUT(product[17:0]));
  assign product[31:18] = word[15:9];
`endif
`ifdef NNEF_HW_ARORA
  MULT12X12 #(.AREG_CLK("CLK0"), .BREG_CLK("CLK0"), .OREG_CLK("CLK0"))
    mac(.CLK({1'b0, clk}), .CE(2'b01), .RESET(2'b00), .A(word[11:0]), .B(count[11:0]),
        .DOUT(product[23:0]));
  assign product[31:24] = word[15:8];
`endif
  assign led = ^product;
endmodule
"""
BIG = """
module top(input clk, input d, output q);
  reg [1499:0] shift;
  always @(posedge clk) shift <= {shift[1498:0], d ^ shift[1499]};
  assign q = shift[1499];
endmodule
"""


@pytest.fixture(autouse=True)
def installed():
    try:
        for family in TARGETS:
            for program in toolchain_of(family).programs:
                find_tool(program)
    except ToolError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "design.v"
    path.write_text(DESIGN)
    return path


@pytest.fixture(params=TARGETS, ids=lambda family: family.name)
def family(request):
    return request.param


def run(source, family, folder, **options):
    options = {"constraints": PINS[family], "frequency_mhz": 12.0} | options
    return synthesize(source, top="top", family=family, out_dir=folder, **TARGETS[family] | options)


@pytest.fixture
def commands(monkeypatch):
    """Lines with the tools that ran and their arguments, and with the scripts of yosys."""
    lines = []

    def run(tool, arguments, *, cwd, **options):
        name = getattr(tool, "name", tool)
        lines.append(" ".join(["$", name, *map(str, arguments)]))
        if name == "yosys":
            lines.extend(f"    {line}" for line in (cwd / arguments[-1]).read_text().splitlines())
        return run_tool(tool, arguments, cwd=cwd, **options)

    for module in (mapping, runs, nextpnr):
        monkeypatch.setattr(module, "run_tool", run)
    return lines


def test_design_becomes_a_bitstream(source, family, commands, tmp_path):
    folder = tmp_path / "build"
    result = run(source, family, folder)
    recorded = (Path(__file__).parent / "commands" / f"{family.name}.txt").read_text()
    assert commands == recorded.splitlines()
    assert result.timing_met
    assert result.fmax_mhz > 12
    assert result.frequency_mhz == 12
    dsps, brams = {ICE40: (8, 30), ECP5: (156, 208), GOWIN: (40, 26), ARORA: (56, 56)}[family]
    assert result.resources["dsp"] == Resource(1, dsps)
    assert result.resources["bram"] == Resource(1, brams)
    assert 16 <= result.resources["ff"].used <= 64
    assert 16 <= result.resources["lut"].used < 120
    assert {name for name in result.files.values() if not (folder / name).is_file()} == set()
    assert (folder / result.files["bitstream"]).stat().st_size > 100_000
    assert SynthesisResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    assert sum(ns for _, ns in result.path) == pytest.approx(1e3 / result.fmax_mhz, rel=0.01)
    places = json.loads((folder / result.files["floorplan"]).read_text())
    [(outside, cells)] = places["blocks"].items()
    assert outside == ""
    columns, rows = places["size"]
    for name in toolchain_of(family).dialect.cells:
        assert all(0 <= x < columns and 0 <= y < rows for x, y, _ in cells.get(name, ()))
        if name in cells or name in result.resources:
            used = sum(count for _, _, count in cells.get(name, ()))
            assert used == result.resources[name].used, name
    assert len(places["path"]) == len(result.path)
    assert (result.seed, [*result.seeds]) == (1, ["1"])
    assert not list(folder.glob("*.config.json"))


def test_missed_timing_is_a_result(source, tmp_path):
    result = run(source, ICE40, tmp_path / "build", frequency_mhz=400.0, bitstream=False)
    assert not result.timing_met
    assert result.fmax_mhz < 400
    assert result.frequency_mhz == 400
    assert "bitstream" not in result.files
    assert not (tmp_path / "build" / "top.bin").exists()


def test_fastest_of_several_placements_that_are_late_is_taken(source, tmp_path):
    result = run(source, ICE40, tmp_path / "build", seeds=(1, 2, 3), frequency_mhz=400.0)
    assert [*result.seeds] == ["1", "2", "3"]
    assert result.fmax_mhz == max(result.seeds.values())
    assert sorted(path.name for path in (tmp_path / "build").iterdir() if path.is_dir()) == []


def test_first_placement_that_is_in_time_is_taken(source, tmp_path, monkeypatch):
    """The next one would take for ever, and the one after it is not begun."""
    tried = stuck(monkeypatch, {2}, line="Info: Running router2...")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    result = run(source, ICE40, tmp_path / "build", seeds=(1, 2, 3), log_dir=tmp_path / "logs")
    assert sorted(tried) == [1, 2]
    assert (result.seed, [*result.seeds]) == (1, ["1"])
    assert result.timing_met
    assert [path.name for path in (tmp_path / "build").iterdir() if path.is_dir()] == []
    logs = sorted(path.name for path in (tmp_path / "build").glob("nextpnr*.log"))
    assert logs == ["nextpnr.log"]


def test_placement_that_is_in_time_waits_for_those_before_it(source, tmp_path, monkeypatch):
    begun = threading.Event()

    def nextpnr(tool, arguments, **options):
        seed = int(arguments[arguments.index("--seed") + 1])
        if seed == 1:
            begun.wait(60)
        seconds = run_tool(tool, arguments, **options)
        if seed == 2:
            begun.set()
        return seconds

    monkeypatch.setattr("nnef_hw.place.nextpnr.run.run_tool", nextpnr)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    result = run(source, ICE40, tmp_path / "build", seeds=(1, 2))
    assert (result.seed, [*result.seeds]) == (1, ["1"])


def test_placement_that_cannot_be_in_time_is_not_waited_for(source, tmp_path, monkeypatch):
    """Its route would take for ever; the next seed is in time."""
    routes = []

    def nextpnr(tool, arguments, **options):
        if "probe.json" in arguments:
            return run_tool(tool, arguments, **options)
        seed = int(arguments[arguments.index("--seed") + 1])
        if "--no-route" not in arguments:
            routes.append(seed)
        if seed == 2:
            return run_tool(tool, arguments, **options)
        if "--no-route" not in arguments:
            shell = Tool("nextpnr", ("/bin/sh", "-c", "sleep 600"), "1", Path("/bin/sh"))
            return run_tool(shell, [], **options)
        options["log"].write_text("Info: Max frequency for clock 'c': 7 MHz (FAIL at 12.00 MHz)\n")
        placed = options["cwd"] / arguments[arguments.index("--write") + 1]
        top = {"settings": {"target_freq": "12000000.000000"}, "cells": {}}
        return placed.write_text(json.dumps({"modules": {"top": top}}))

    monkeypatch.setattr("nnef_hw.place.nextpnr.run.run_tool", nextpnr)
    monkeypatch.setattr(type(toolchain_of(ECP5).dialect), "tiles", lambda dialect: None)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    result = run(source, ECP5, tmp_path / "build", seeds=(1, 2), log_dir=tmp_path / "logs")
    assert sorted(routes) == [1, 2]
    assert (result.seed, [*result.seeds]) == (2, ["2"])
    assert result.timing_met
    assert not [path for path in (tmp_path / "build").iterdir() if path.is_dir()]


def stuck(
    monkeypatch, seeds, line="Info:     iter=$n wires=300 overused=2 overuse=2 archfail=NA"
):  # fmt: skip
    """Let nextpnr print a line for ever, with these seeds; return what was placed."""
    placed = []

    def nextpnr(tool, arguments, **options):
        seed = int(arguments[arguments.index("--seed") + 1])
        placed.append(seed)
        if seed not in seeds:
            return run_tool(tool, arguments, **options)
        script = f'n=1; while :; do echo "{line}"; n=$((n+1)); [ $n -lt 99 ] || sleep 60; done'
        shell = Tool("nextpnr", ("/bin/sh", "-c", script), "1", Path("/bin/sh"))
        return run_tool(shell, [], **options)

    monkeypatch.setattr("nnef_hw.place.nextpnr.run.run_tool", nextpnr)
    return placed


@pytest.mark.parametrize(
    ("seeds", "without", "placed"),
    [
        pytest.param((1,), {1}, [1, 2], marks=pytest.mark.nightly),
        ((1, 2), {1}, [1, 2]),
        ((1,), {1, 2}, [1, 2, 3]),
    ],
    ids=["next", "one_of_two", "third"],
)
def test_placement_without_a_route_is_given_up(
    seeds, without, placed, source, tmp_path, monkeypatch, caplog
):
    tried = stuck(monkeypatch, without)
    result = run(source, ICE40, tmp_path / "build", seeds=seeds, log_dir=tmp_path / "logs")
    assert sorted(tried) == placed
    assert {seed for seed, fmax in result.seeds.items() if fmax is None} == set(map(str, without))
    assert result.fmax_mhz == max(fmax for fmax in result.seeds.values() if fmax)
    assert "Program finished normally" in (tmp_path / "build" / "nextpnr.log").read_text()
    folders = [path.name for path in (tmp_path / "build").iterdir() if path.is_dir()]
    assert folders == []
    for seed in without:
        assert f"seed {seed}: the placement has no route: several nets want 2 wires" in caplog.text
        assert "overused=2" in (tmp_path / "build" / f"nextpnr{seed}.log").read_text()


def test_design_without_any_route_is_refused(source, tmp_path, monkeypatch):
    tried = stuck(monkeypatch, {1, 2, 3})
    with pytest.raises(UnroutedError, match="seeds 1, 2, 3 lead to no placement with a route"):
        run(source, ICE40, tmp_path / "build", log_dir=tmp_path / "logs")
    assert tried == [1, 2, 3]
    assert len(list((tmp_path / "logs").glob("nextpnr?.log"))) == 3


def test_router_is_stuck_when_it_gets_no_better(tmp_path):
    log = tmp_path / "log"
    congestion = Congestion(log)
    assert not congestion.is_stuck()

    def iterate(first, counts):
        with log.open("a") as file:
            for n, count in enumerate(counts, first):
                file.write(f"Info:     iter={n} wires=9 overused={count} overuse=7 archfail=NA\n")

    log.write_text("Info: Running router2...\n")
    iterate(1, range(100, 0, -2))
    assert not congestion.is_stuck()
    iterate(51, [3] * (PATIENCE - 1))
    assert not congestion.is_stuck()
    iterate(50 + PATIENCE, [1])
    assert not congestion.is_stuck()
    with log.open("a") as file:
        for n in range(51 + PATIENCE, 50 + 2 * PATIENCE):
            file.write(f"Info:     iter={n} wires=9 overused=1 overuse=7 archfail=NA\n")
        file.write(f"Info:     iter={50 + 2 * PATIENCE} wires=9 over")
    assert not congestion.is_stuck()
    with log.open("a") as file:
        file.write("used=1 overuse=7 archfail=NA\n")
    assert congestion.is_stuck()
    assert (congestion.iterations, congestion.overused) == (50 + 2 * PATIENCE, 1)


def test_router_that_takes_up_what_is_late_is_stuck_when_nothing_is_faster(tmp_path):
    log = tmp_path / "log"
    congestion = Congestion(log)
    lines = [(300 - n, 90) for n in range(1, 300)] + [(0, late) for late in range(90, 9, -1)]
    lines += [(n % 2, 10 + n % 7) for n in range(PATIENCE - 1)]
    with log.open("a") as file:
        for n, (wires, late) in enumerate(lines, 1):
            file.write(
                f"Info:     iter={n} wires=9 overused={wires} overuse=7 tmgfail={late} arch\n"
            )
            file.flush()
            assert not congestion.is_stuck()
        file.write(f"Info:     iter={n + 1} wires=9 overused=0 overuse=0 tmgfail=10 archfail=NA\n")
        file.flush()
    assert congestion.is_stuck()


def test_router_that_goes_astray_is_stuck(tmp_path):
    log = tmp_path / "log"
    congestion = Congestion(log)
    wires = [50000, 9000, 700, 680, 900, 1200, 1860]
    with log.open("a") as file:
        for n, overused in enumerate(wires, 1):
            file.write(f"Info:     iter={n} wires=9 overused={overused} overuse=7 tmgfail=9 a\n")
            file.flush()
            assert not congestion.is_stuck()
        file.write("Info:     iter=8 wires=9 overused=1861 overuse=7 tmgfail=9 archfail=NA\n")
        file.flush()
    assert congestion.is_stuck()


def test_router_that_crawls_is_stuck(tmp_path):
    """Many wires halve within ten iterations; few may take their time."""
    log = tmp_path / "log"

    def stuck_at(counts):
        congestion = Congestion(log)
        log.write_text("")
        for n, overused in enumerate(counts, 1):
            with log.open("a") as file:
                file.write(
                    f"Info:     iter={n} wires=9 overused={overused} overuse=7 tmgfail=9 a\n"
                )
            if congestion.is_stuck():
                return n
        return None

    def falling(halving, end=MANY):
        return [n for n in (round(99_000 / 2 ** (k / halving)) for k in range(90)) if n >= end]

    def fewer(numbers):
        return [n for n in numbers if n < FLOOD]

    assert stuck_at(fewer(falling(9.8))) is None
    assert stuck_at(fewer(falling(10.2))) == SPAN + 1
    tail = fewer(falling(5))
    assert stuck_at([*tail, *[MANY - 1] * (PATIENCE - 1)]) is None
    assert stuck_at([*tail, *[MANY] * PATIENCE]) == len(tail) + 6
    # a flood recedes faster
    assert stuck_at([60_000, 44_000, 36_000, 25_000, 18_400]) is None
    assert stuck_at([60_000, 44_000, 36_000, 25_300, 18_400]) == EARLY + 1
    assert stuck_at([18_000, 16_000, 14_000, 9_999, 9_000, 8_000]) is None


def test_equal_inputs_give_equal_files(source, tmp_path):
    results = [run(source, ICE40, tmp_path / name) for name in ("first", "second")]
    for kind in ("netlist", "report", "bitstream"):
        first, second = (
            (tmp_path / name / result.files[kind]).read_bytes()
            for name, result in zip(("first", "second"), results, strict=True)
        )
        assert first == second, kind
        assert str(tmp_path).encode() not in first
        assert b"site-packages" not in first


def test_assertion_of_yosys_is_tried_around(source, tmp_path, monkeypatch, caplog):
    scripts = []

    def yosys(tool, arguments, *, cwd, log):
        _, script = arguments
        scripts.append((cwd / script).read_text())
        if len(scripts) > 1:
            return run_tool(tool, arguments, cwd=cwd, log=log)
        log.write_text("ERROR: Assert `a == b' failed in kernel/rtlil.cc:3091.\n")
        raise ToolError("yosys failed")

    monkeypatch.setattr("nnef_hw.place.mapping.run_tool", yosys)
    cells = map_only(source, top="top", family=ECP5, device="85k", out_dir=tmp_path / "map")
    assert cells["MULT18X18D"] == 1
    # the last one describes the netlist, which the family has revised
    assert ["-dff" in script for script in scripts] == [False, True, False]
    assert "yosys failed with an assertion of its own" in caplog.text


def test_misfit_has_numbers(tmp_path):
    source = tmp_path / "big.v"
    source.write_text(BIG)
    message = r"does not fit into hx1k-tq144: it needs 15\d\d logic cells of 1280"
    small = {"device": "hx1k", "package": "tq144"}
    with pytest.raises(TargetError, match=message):
        run(source, ICE40, tmp_path / "build", constraints=None, **small)


def test_adders_and_flip_flops_alone_are_logic_cells(source, tmp_path):
    """Of a design without pins, too."""
    result = run(source, GOWIN, tmp_path / "build", constraints=None, bitstream=False)
    counts = json.loads((tmp_path / "build" / "timing.json").read_text())["utilization"]
    lut = result.resources["lut"]
    assert lut.used == counts["LUT4"]["used"] + counts["ALU"]["used"]
    assert counts["ALU"]["used"] >= 16
    assert lut.available == 8640
    assert result.resources["ff"].available == 6480
    assert result.resources["dsp"] == Resource(1, 40)
    assert result.timing_met


@pytest.mark.parametrize(
    ("family", "wrong", "named"),
    [
        (GOWIN, {"package": "GW1NR-LV9QN99P"}, "GW1N-9C GW1NR-LV9QN99PC6/I5 (No package for"),
        (GOWIN, {"device": "GW1N-10"}, "GW1N-10 GW1NR-LV9QN88PC6/I5 (Unable to read chipdb"),
        (ICE40, {"package": "sg49"}, "up5k sg49 (Unsupported package 'sg49'"),
        (ECP5, {"package": "CABGA99"}, "85k CABGA99 (Unsupported package 'CABGA99' for"),
    ],
    ids=["package", "device", "ice40", "ecp5"],
)
def test_device_that_nextpnr_lacks(family, wrong, named, source, tmp_path):
    options = {"top": "top", "family": family, "frequency_mhz": 12.0, "constraints": PINS[family]}
    with pytest.raises(TargetError, match="does not know the device " + re.escape(named)) as error:
        synthesize(source, out_dir=tmp_path, **options | TARGETS[family] | wrong)
    assert error.value.remedy == "correct part, package and speed of the board"


def test_wrong_pin_is_a_tool_error(source, tmp_path):
    with pytest.raises(ToolError, match="package does not have a pin named '99'"):
        run(source, ICE40, tmp_path, constraints="set_io clk 99\nset_io led 11\n")


def test_wrong_verilog_is_a_tool_error(tmp_path):
    (tmp_path / "wrong.v").write_text("module top(;")
    with pytest.raises(ToolError, match="syntax error"):
        map_only(
            tmp_path / "wrong.v", top="top", family=ECP5, device="85k", out_dir=tmp_path / "build"
        )


def test_clock_generator_of_arora_becomes_a_bitstream(tmp_path):
    """Apycula reads every divider, and has defaults that it cannot read."""
    design, ports = Module(), [Signal(name="clk"), Signal(name="led")]
    clock, locked, toggle = Signal(), Signal(), Signal()
    design.domains.fast = ClockDomain(reset_less=True)
    pll = find_board("tang_primer_25k").clock(75)
    design.submodules.pll = pll.instance(ports[0], clock, locked)
    design.d.comb += [ClockSignal("fast").eq(clock), ports[1].eq(toggle & locked)]
    design.d.fast += toggle.eq(~toggle)
    source = tmp_path / "pll.v"
    source.write_text(verilog.convert(design, name="top", ports=ports, strip_internal_attrs=True))
    result = run(source, ARORA, tmp_path / "build", frequency_mhz=75.0)
    assert (tmp_path / "build" / result.files["bitstream"]).stat().st_size > 100_000


def test_map_only_counts_cells(source, family, tmp_path):
    part = TARGETS[family]["device"]
    cells = map_only(source, top="top", family=family, device=part, out_dir=tmp_path / "build")
    dsp, ram = {
        ICE40: ("SB_MAC16", "SB_RAM40_4K"),
        ECP5: ("MULT18X18D", "DP16KD"),
        GOWIN: ("MULT9X9", "SDPX9B"),
        ARORA: ("MULT12X12", "SDPX9B"),
    }[family]
    assert (cells[dsp], cells[ram]) == (1, 1)
    assert list(cells) == sorted(cells)
    assert "module top" in (tmp_path / "build" / "top_netlist.v").read_text()
