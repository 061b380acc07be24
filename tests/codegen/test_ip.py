"""Plain IP: what is written, and that the AXI4-Stream wrapper carries the accelerator's frames."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from cli_cases import tiny_graph
from plain_ip import SPIRIT, TARGET, Component, module_ports, six_bits, two_by_two
from recurrent_graphs import delay_line

from nnef_hw.architecture.architecture import Port
from nnef_hw.codegen.comments import module_comments
from nnef_hw.codegen.fusesoc import axi_testbench, fusesoc_core, ip_readme
from nnef_hw.codegen.ip import axi_width, axi_wrapper, ip_name, is_ip_name
from nnef_hw.codegen.ipxact import component_xml
from nnef_hw.codegen.lint import lint_waivers
from nnef_hw.codegen.vendors import VENDORS, clock_constraint
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.host.streams import to_stream
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.rtl import payloads
from nnef_hw.sim.cocotb_bench import run_tests, write_bench
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.system.tools import find_tool, run_tool
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


def port(**changes):
    return Port(
        **{"name": "i", "tensor": "x", "image": (2, 2, 3), "bits": 8, "signed": False} | changes
    )


@pytest.fixture
def network(rng):
    """A network with one input and one output."""
    return six_bits(tiny_graph(), rng)


def ip_verilog(plan, fixed, name):
    """Everything that plain IP of that name is made of."""
    verilog = to_verilog(Accelerator(plan, fixed), name=name, prefix=f"{name}_")
    return verilog + axi_wrapper(plan, fixed, name)


def hexadecimal(codes, stream):
    kind = np.int8 if stream.signed else np.uint8
    return "".join(frame.astype(kind).tobytes().hex() + "\n" for frame in to_stream(codes, stream))


def pixels(rng):
    """A 1 x 1 convolution, all channels of whose pixels may be a beat."""
    g = GraphBuilder()
    return g.build(g.conv(g.input("x", [1, 5, 2, 3]), rng.normal(size=[3, 5, 1, 1])))


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("graph", "names", "lanes", "rate"),
    [
        pytest.param(
            lambda rng: tiny_graph(), ["m_axis", "s_axis"], [1], None, marks=pytest.mark.nightly
        ),
        (
            partial(two_by_two, size=4),
            ["m_axis_sum", "m_axis_tanh", "s_axis_left_image", "s_axis_right"],
            [2, 1],
            None,
        ),
        (lambda rng: delay_line(), ["m_axis", "s_axis"], [1], None),
        (pixels, ["m_axis", "s_axis"], [5], 10e6),
    ],
    ids=["one", "several", "with a state", "of whole pixels"],
)
def test_frames_pass_the_wrapper_under_idle_and_back_pressure(
    graph, names, lanes, rate, rng, tmp_path
):
    pytest.importorskip("cocotbext.axi")
    fixed, samples = six_bits(graph(rng), rng)
    plan = schedule(fixed, TARGET, target_fps=rate)
    assert [port.lanes for port in plan.inputs] == lanes
    codes = quantize_inputs(fixed, samples[:6].inputs)
    for tensors, ports, tensor_codes in (
        (fixed.inputs, plan.inputs, codes),
        (fixed.outputs, plan.outputs, run_fixed(fixed, codes)),
    ):
        for tensor, port in zip(tensors, ports, strict=True):
            name = f"{'s' if port.name[0] == 'i' else 'm'}_axis{port.name[1:]}.hex"
            (tmp_path / name).write_text(hexadecimal(tensor_codes[tensor], port))
    assert sorted(path.stem for path in tmp_path.iterdir()) == names
    verilog = ip_verilog(plan, fixed, "my")
    environment = {"AXI_BENCH_VECTORS": str(tmp_path)}
    assert run_tests(verilog, "axi_bench", tmp_path, top="my_axis", environment=environment) == 4


@pytest.mark.parametrize(
    ("changes", "width"), [({}, 8), ({"bits": 5, "lanes": 3}, 24), ({"bits": 9, "lanes": 2}, 32)]
)
def test_codes_are_in_whole_bytes(changes, width):
    assert axi_width(port(**changes)) == width


def test_signed_results_are_extended(network):
    plan = schedule(network[0], TARGET)
    plan = replace(plan, outputs=(port(name="o", bits=6, signed=True, lanes=2),))
    text = axi_wrapper(plan, network[0], "my")
    assert "output [16-1:0] m_axis_tdata" in text
    assert "{{2{result[11]}}, result[6 +: 6], {2{result[5]}}, result[0 +: 6]}" in text
    plan = replace(plan, outputs=(port(name="o", bits=6, lanes=2),))
    text = axi_wrapper(plan, network[0], "my")
    assert "{{2{1'b0}}, result[6 +: 6], {2{1'b0}}, result[0 +: 6]}" in text


@pytest.mark.parametrize(
    ("model", "name"),
    [("digits", "digits"), ("my net/v1.2", "my_net_v1_2"), ("2d", "ip_2d"), ("café", "caf_"),
     ("", "ip_")],
)  # fmt: skip
def test_names_begin_like_the_model(model, name):
    assert ip_name(model) == name
    assert is_ip_name(name)
    assert is_ip_name(model) == (model == name)


def test_every_module_carries_the_name(network):
    plan = schedule(network[0], TARGET)
    text = ip_verilog(plan, network[0], "my_net")
    # A module of primitives may have a text of its own for this family.
    others = re.sub(r"`ifdef NNEF_HW_GOWIN.*?`endif", "", text, flags=re.DOTALL)
    modules = re.findall(r"^\s*module\s+\\?([^\s(;#]+)", others, re.MULTILINE)
    assert len(modules) == len(set(modules)) > 10
    assert {name for name in modules if not re.match(r"my_net($|[._])", name)} == set()
    assert "nnef_hw" not in text


def two_ips(network, rng):
    """Verilog of two different networks as plain IP, side by side."""
    first, second = network[0], six_bits(two_by_two(rng, size=4), rng)[0]
    return "".join(
        ip_verilog(schedule(fixed, TARGET), fixed, name)
        for name, fixed in (("one", first), ("other", second))
    ) + (
        "module both(input aclk, input aresetn);\n"
        "one_axis first(.aclk(aclk), .aresetn(aresetn));\n"
        "other_axis second(.aclk(aclk), .aresetn(aresetn));\nendmodule\n"
    )


@pytest.mark.icarus
def test_two_ips_elaborate_in_icarus(network, rng, tmp_path):
    (tmp_path / "both.v").write_text(two_ips(network, rng))
    command = ["iverilog", "-g2012", "-s", "both", "-o", "both.vvp", "both.v"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


@pytest.mark.verilator
def test_two_ips_elaborate_in_verilator(network, rng, tmp_path):
    (tmp_path / "both.v").write_text(two_ips(network, rng))
    options = ["--lint-only", "-Wno-fatal", "--top-module", "both", "both.v"]
    run_tool("verilator", options, cwd=tmp_path, log=tmp_path / "log")
    log = (tmp_path / "log").read_text()
    assert "MODDUP" not in log
    assert "INITIALDLY" not in log


@pytest.mark.synth
def test_two_ips_elaborate_in_yosys(network, rng, tmp_path):
    (tmp_path / "both.v").write_text(two_ips(network, rng))
    (tmp_path / "check.ys").write_text("read_verilog both.v\nhierarchy -check -top both\n")
    run_tool("yosys", ["-s", "check.ys"], cwd=tmp_path, log=tmp_path / "log")


def test_ports_say_which_order_they_have(rng):
    g = GraphBuilder()
    x = g.reshape(g.op("tanh", g.input("x", [1, 6, 2, 2])), [1, 24], name="flat")
    fixed, _ = six_bits(g.build(x), rng)
    plan = schedule(fixed, TARGET)
    comments = module_comments(plan, fixed)[""].splitlines()
    image = "as an image of 2 x 2 pixels of 6 channels, pixel by pixel"
    assert comments[1] == f"i: x, 1x6x2x2, unsigned codes of 6 bits, 3 per beat, 8 beats, {image}"
    assert comments[2].startswith("o: flat, 1x24, ")
    assert comments[2].endswith(
        f"{image}: NOT in the order of the tensor, whose element n is channel n // 4 of pixel n % 4"
    )
    for text in (axi_wrapper(plan, fixed, "my"), ip_readme(plan, fixed, "my")):
        assert comments[1] in text
        assert comments[2] in text
    # That is what the host does.
    codes = np.arange(24).reshape(1, 24)
    [stream] = to_stream(codes, plan.outputs[0])
    beats = {(n // 4, n % 4): n for n in range(24)}
    assert stream.reshape(-1).tolist() == [beats[c, p] for p in range(4) for c in range(6)]


@pytest.fixture
def folder(network, tmp_path):
    """A folder with a network as plain IP, as a build writes it."""
    fixed, samples = network
    plan = schedule(fixed, TARGET)
    for name in ("rtl", "ip", "sim"):
        (tmp_path / name).mkdir()
    codes = quantize_inputs(fixed, samples[:3].inputs)
    vectors = {
        **payloads(fixed.inputs, plan.inputs, codes),
        **payloads(fixed.outputs, plan.outputs, run_fixed(fixed, codes)),
    }
    write_bench(tmp_path / "sim", vectors, top="my")
    beats = {name: len(words) for name, words in vectors.items()}
    verilog = to_verilog(Accelerator(plan, fixed), name="my", prefix="my_")
    (tmp_path / "rtl" / "top.v").write_text(verilog)
    (tmp_path / "ip" / "my_axis.v").write_text(axi_wrapper(plan, fixed, "my"))
    (tmp_path / "ip" / "my_tb.v").write_text(axi_testbench(plan, "my", beats, 3))
    (tmp_path / "my.core").write_text(fusesoc_core(plan, "my"))
    (tmp_path / "ip" / "my.vlt").write_text(lint_waivers(("rtl/top.v", "ip/my_axis.v")))
    (tmp_path / "ip" / "README.md").write_text(ip_readme(plan, fixed, "my"))
    (tmp_path / "ip" / "my.sdc").write_text(clock_constraint("aclk", plan.clock_mhz))
    return tmp_path


CORE = "nnef-hw:ip:my:1.0.0"


def with_verilator(command, folder):
    """Run a command that finds Verilator as the README of plain IP says."""
    path = os.pathsep.join([str(find_tool("verilator").path / "bin"), os.environ["PATH"]])
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )


def fusesoc(folder, *arguments):
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", folder, *arguments]
    return with_verilator(command, folder)


@pytest.mark.verilator
def test_the_lint_command_of_the_readme_warns_of_nothing(folder):
    [command] = re.findall(r"\| lint \| `(.*)` \|", (folder / "ip" / "README.md").read_text())
    lint = with_verilator(command.split(), folder)
    assert (lint.returncode, lint.stderr) == (0, "")
    assert "%Warning" not in lint.stdout


@pytest.mark.icarus
@pytest.mark.verilator
def test_fusesoc_lists_lints_and_simulates_the_core(folder):
    listed = fusesoc(folder, "core", "list")
    assert re.search(rf"^{CORE} .* a bit-exact accelerator", listed.stdout, re.MULTILINE)
    assert "deprecated" not in listed.stdout + listed.stderr
    lint = fusesoc(folder, "run", "--target=lint", CORE)
    assert lint.returncode == 0, lint.stderr
    assert "%Warning-WIDTH" not in lint.stdout + lint.stderr
    good = fusesoc(folder, "run", "--target=sim", CORE)
    assert good.returncode == 0, good.stderr
    assert "my: 3 frames as expected" in good.stdout
    synth = fusesoc(folder, "run", "--target=synth", "--setup", CORE)
    assert synth.returncode == 0, synth.stderr
    script = next((folder / "build").rglob("edalize_yosys_procs.tcl")).read_text()
    assert "synth_ecp5 -nodsp" in script
    assert "NNEF_HW_ECP5" in script

    lines = (folder / "sim" / "o.hex").read_text().splitlines()
    lines[5] = f"{int(lines[5], 16) ^ 1:016x}"
    (folder / "sim" / "o.hex").write_text("\n".join(lines) + "\n")
    bad = fusesoc(folder, "run", "--target=sim", CORE)
    assert bad.returncode != 0
    assert "beat 5 of m_axis is" in bad.stdout + bad.stderr


@pytest.mark.parametrize(
    ("target", "project", "said"),
    [
        ("vivado", "*.tcl", ["xc7a35ticsg324-1L", "top my_axis", "read_xdc -unmanaged"]),
        ("quartus", "*.tcl", ["5CSEBA6U23I7", "TOP_LEVEL_ENTITY my_axis", "SDC_FILE"]),
        ("radiant", "*.tcl", ["LIFCL-40-9BG400C", "my_axis", "my.sdc"]),
        ("gowin", "*.tcl", ["GW2AR-LV18QN88C8/I7", "my_axis", "add_file -type sdc"]),
        ("efinity", "*.xml", ["T20F256", "my_axis", "my.sdc"]),
    ],
)
def test_vendors_projects_have_files_part_and_clock(folder, monkeypatch, target, project, said):
    """Projects as edalize writes them; the tools are not here to open them."""
    monkeypatch.setenv("EFINITY_HOME", str(folder))
    made = fusesoc(folder, "run", f"--target={target}", "--setup", CORE)
    assert made.returncode == 0, made.stderr
    text = "\n".join(path.read_text() for path in (folder / "build").rglob(project))
    for part in (*said, "rtl/top.v", "ip/my_axis.v"):
        assert part in text, part
    assert {vendor.name for vendor in VENDORS} >= {target}


def test_a_constraint_names_the_clock_and_its_period(folder):
    text = clock_constraint("aclk", 87.5)
    assert "create_clock -name aclk -period 11.429 [get_ports {aclk}]\n" in text
    assert re.search(r"\binput aclk\b", (folder / "ip" / "my_axis.v").read_text())


def test_a_component_has_the_ports_of_the_wrapper(rng):
    """Names, directions and widths are those of the Verilog; every bus has what is its own."""
    fixed, _ = six_bits(two_by_two(rng, size=4), rng)
    plan = schedule(fixed, TARGET)
    component = Component(component_xml(plan, fixed, "my"))
    ports = module_ports(axi_wrapper(plan, fixed, "my"), "my_axis")
    assert component.ports == ports
    buses = {
        bus.findtext("s:name", None, SPIRIT): [
            x.text for x in bus.findall("s:portMaps/s:portMap/s:physicalPort/s:name", SPIRIT)
        ]
        for bus in component.root.findall("s:busInterfaces/s:busInterface", SPIRIT)
    }
    assert sorted(x for wires in buses.values() for x in wires) == sorted(ports)
    values = component.values
    streams = ":".join(name for name in buses if "axis" in name)
    assert values["BUSIFPARAM_VALUE.ACLK.ASSOCIATED_BUSIF"] == streams
    assert values["BUSIFPARAM_VALUE.ACLK.FREQ_HZ"] == str(round(plan.clock_mhz * 1e6))
    assert values["BUSIFPARAM_VALUE.ARESETN.POLARITY"] == "ACTIVE_LOW"
    assert component.files == {"rtl/top.v", "ip/my_axis.v"}


def test_core_file_quotes_the_model(network):
    plan = replace(schedule(network[0], TARGET), model='odd: "name"\n# x')
    assert 'description: "odd: \\"name\\"\\\\n# x, a bit-exact' in fusesoc_core(plan, "my")
