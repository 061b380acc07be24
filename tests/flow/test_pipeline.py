"""Whole builds: their files, what is done again and what is not, and what makes them fail."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from build_cases import write_samples
from cli_cases import tiny_graph
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import find_streams, link_of
from nnef_hw.errors import CheckError, SampleError, ToolError, UsageError
from nnef_hw.flow import compilation, emit, pipeline, reporting, verification
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import UP_TO_DATE, build
from nnef_hw.frontend import graph_hash, load, save
from nnef_hw.ir import Stage
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Report
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulate import compare
from nnef_hw.streaming.architecture import Streaming
from nnef_hw.streaming.foldings.lower import _lowered, lower
from nnef_hw.streaming.foldings.plan import StreamingPlan

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"
FILES = {
    "manifest.json", "model.nnef.tgz", "float.nnef.tgz", "plan.json", "rtl/top.v",
    "sim/bench.json", "sim/run.py", "sim/test_accelerator.py", "sim/i.hex", "sim/o.hex",
    "board/board_top.v", "board/board_top.pcf", "board/model.h", "report.json", "report.html",
}  # fmt: skip
TIMED = {"report.json", "report.html"}
SYNTHESIZED = {"board/board_top.bin", "board/nextpnr.log", "board/floorplan.json"}

pytestmark = [pytest.mark.system, pytest.mark.verilator, pytest.mark.usefixtures("fixed_sources")]


def files(folder):
    """Contents of a build's own files."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".steps" not in path.parts
    }


def flip_weights(verilog):
    """Return Verilog with the lowest bits of its first memories inverted."""
    text, count = re.subn(
        r"(tile_0_0\[\d+\] = \d+'h[0-9a-f]*)([0-9a-f])(;)",
        lambda match: f"{match[1]}{int(match[2], 16) ^ 1:x}{match[3]}",
        verilog,
    )
    assert count
    return text


# what a build is


def test_files(finished):
    folder, report = finished
    assert files(folder).keys() == FILES
    manifest = json.loads((folder / "manifest.json").read_text())
    assert all((folder / name).exists() for name in manifest["files"].values())
    fixed, canonical = load(folder / "model.nnef.tgz"), load(folder / "float.nnef.tgz")
    plan = (folder / "plan.json").read_text()
    assert StreamingPlan.from_json(json.loads(plan), lower(fixed)).dumps() == plan
    assert (fixed.stage, canonical.stage) == (Stage.FIXED, Stage.CANONICAL)
    assert manifest["model_hash"] == graph_hash(fixed)
    assert from_json(json.loads((folder / "report.json").read_text()), Report) == report
    verilog = (folder / "rtl" / "top.v").read_text()
    assert "module top (" in verilog
    assert all(layer in verilog for layer in json.loads(plan)["layers"])


def test_report(finished):
    folder, report = finished
    plan = json.loads((folder / "plan.json").read_text())
    assert {key: getattr(report, key) for key in ("period", "settling")} == {
        key: plan[key] for key in ("period", "settling")
    }
    assert (report.period, type(report.settling)) == (1, int)
    simulation = report.simulation
    assert (simulation.frames, simulation.bit_exact) == (20, True)
    for key in ("cycles_per_inference", "latency_cycles"):
        predicted = getattr(simulation, f"predicted_{key}")
        assert getattr(simulation, key) == predicted == getattr(report, key)
    assert report.macs == 16 * 3 * 9 + 12 * 4
    used = report.cycles_per_inference * report.multipliers
    assert report.mac_utilization == report.macs / used
    clock = find_board("icebreaker").clock_mhz * 1e6
    assert report.inferences_per_second == clock / report.cycles_per_inference
    # so few that all calibrate
    assert report.accuracy.calibration_samples == report.accuracy.samples == 20
    assert report.accuracy.calibrated is True
    assert report.bitstream is report.timing_met is report.fmax_mhz is None
    assert all(row.used is None for row in report.resources.values())
    assert {"compile", "simulate", "total"} == report.seconds.keys()


def test_some_frames_are_simulated_and_all_scored(finished, model, options, tmp_path):
    report = build(options(tmp_path / "build", frames=5))
    simulation, accuracy = report.simulation, report.accuracy
    assert (simulation.frames, simulation.frames_given) == (5, 20)
    assert simulation.bit_exact is True
    assert accuracy.samples == finished[1].accuracy.samples == 20
    for key in ("float", "fixed"):
        assert getattr(accuracy, key) == getattr(finished[1].accuracy, key)
    chosen = [0, 16, 8, 4, 12]
    assert (accuracy.rtl_samples, accuracy.rtl_equal) == (5, True)
    folder = BuildFolder.open(tmp_path / "build")
    with np.load(model.with_name("samples.npz")) as file:
        inputs, labels = file["inputs"][chosen], file["labels"][chosen]
    codes = run_fixed(folder.fixed, quantize_inputs(folder.fixed, {"image": inputs}))["scores"]
    assert accuracy.rtl == (codes.reshape(5, -1).argmax(axis=1) == labels).mean()


def test_time_ends_the_simulation_after_three_frames(options, tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "SIMULATION_SECONDS", 0.0)
    report = build(options(tmp_path / "build", frames=None))
    assert (report.simulation.frames, report.simulation.frames_given) == (3, 20)
    assert report.accuracy.rtl_samples == 3
    assert report.accuracy.samples == 20
    every = build(options(tmp_path / "build", frames="all"))
    assert (every.simulation.frames, every.accuracy.rtl_samples) == (20, 20)


def test_equal_inputs_give_equal_files(finished, model, options, tmp_path):
    moved = [shutil.copy(model.with_name(name), tmp_path) for name in (model.name, "samples.npz")]
    model, samples = map(Path, moved)
    build(options(tmp_path / "elsewhere" / "again", model=model, calibrate=samples))
    first, second = files(finished[0]), files(tmp_path / "elsewhere" / "again")
    assert first.keys() == second.keys()
    assert {name for name in first if first[name] != second[name]} <= TIMED


def test_quantized_model_needs_no_samples(model, options, tmp_path):
    canonical = simplify(load(model))
    inputs = np.random.default_rng(2).uniform(-1, 1, [8, 1, 6, 6])
    save(quantize(canonical, {"image": inputs}), tmp_path / "q.nnef.tgz")
    out = tmp_path / "build"
    report = build(options(out, model=tmp_path / "q.nnef.tgz", calibrate=None))
    assert (report.simulation.frames, report.simulation.bit_exact) == (16, True)
    assert report.accuracy is None
    assert files(out).keys() == FILES - {"float.nnef.tgz"}

    samples = model.with_name("samples.npz")
    report = build(options(out, model=tmp_path / "q.nnef.tgz", calibrate=samples))
    assert (report.accuracy.float, report.accuracy.samples) == (None, 20)
    assert compare(BuildFolder.open(out), samples).layers == ()


def test_progress(options, copy):
    told = []
    build(options(copy), told.append)
    assert told == ["compiling", "simulating"]  # and the report, which names the folder
    build(options(copy), told.append)
    assert told[2:] == ["compiling", "simulating", UP_TO_DATE]


# what is done again


def test_identical_build_does_nothing_again(finished, options, copy, monkeypatch):
    build(options(copy))
    before = files(copy)
    for name in ("quantize_model", "able_architectures", "emit"):
        monkeypatch.setattr(compilation, name, None)
    monkeypatch.setattr(verification, "run_rtl", None)
    monkeypatch.setattr(reporting, "make_report", None)
    report = build(options(copy))
    assert files(copy) == before
    assert report.simulation == finished[1].simulation


@pytest.mark.parametrize(
    "change",
    [
        "samples",
        "board",
        "clock_mhz",
        "model",
        "sources",
        pytest.param("target_fps", marks=pytest.mark.nightly),
    ],
)
def test_changed_input_builds_anew(change, options, copy, steps, tmp_path, monkeypatch):
    save(tiny_graph(seed=7), tmp_path / "other.nnef.tgz")
    changed = {
        "samples": {"calibrate": write_samples(tmp_path / "other.npz", seed=7)},
        "board": {"board": "ulx3s_85f"},
        "clock_mhz": {"clock_mhz": 12.0},
        "target_fps": {"target_fps": 1000.0},
        "model": {"model": tmp_path / "other.nnef.tgz"},
        "sources": {},
    }[change]
    if change == "sources":
        for module in (compilation, verification):
            monkeypatch.setattr(module, "package_digest", lambda: "other sources")
    report = build(options(copy, **changed))
    # the accelerator is the same at any clock
    simulated = [] if change == "clock_mhz" else ["simulate"]
    assert steps == ["compile", *simulated, "report"]
    assert report.simulation.bit_exact is True
    clock_mhz = find_board("ulx3s_85f" if change == "board" else "icebreaker").clock_mhz
    if change == "clock_mhz":
        clock_mhz = 12.0
    constraints = {path.name for path in (copy / "board").glob("*.?[cp]f")}
    assert constraints == {"board_top.lpf" if change == "board" else "board_top.pcf"}
    assert report.clock_mhz == clock_mhz


def test_alias_of_the_board_is_the_same_build(options, copy, steps):
    build(options(copy))
    steps.clear()
    build(options(copy, board="ice40"))
    assert steps == []


@pytest.mark.usefixtures("fake_synthesis")
def test_stale_outputs_are_discarded(options, copy, steps, monkeypatch):
    report = build(options(copy, bitstream=True))
    assert files(copy).keys() == FILES | SYNTHESIZED
    assert report.bitstream == str(copy / "board" / "board_top.bin")
    assert report.resources["lut"].used == 1234
    assert steps == ["synthesize", "report", "clock"]

    steps.clear()
    build(options(copy, bitstream=True))
    assert not steps

    report = build(options(copy, clock_mhz=12.0))
    assert files(copy).keys() == FILES
    assert report.bitstream is None
    assert not (copy / ".steps" / "synthesize.json").exists()

    # the new Verilog is there, but what follows from it is not: nothing old may stand beside it
    build(options(copy, bitstream=True))
    monkeypatch.setattr(verification, "run_rtl", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(options(copy, target_fps=500.0))
    assert files(copy).keys() == FILES - TIMED


def interrupt(*_, **__):
    raise KeyboardInterrupt


def interrupt_after(function):
    def wrapper(*arguments, **named):
        function(*arguments, **named)
        interrupt()

    return wrapper


@pytest.mark.parametrize(
    ("module", "moment"),
    [
        (Streaming, "plan"), (emit, "to_verilog"), (emit, "design_board"),
        pytest.param(emit, "save", marks=pytest.mark.nightly),
        pytest.param(emit, "write_bench", marks=pytest.mark.nightly),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_interruption_leaves_nothing_new(
    module, moment, finished, options, copy, tmp_path, monkeypatch
):
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(module, moment, interrupt_after(getattr(module, moment)))
        with pytest.raises(KeyboardInterrupt):
            build(options(tmp_path / "new" / "build"))
        assert not (tmp_path / "new").exists()
        with pytest.raises(KeyboardInterrupt):
            build(options(copy, clock_mhz=12.0))
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    for name in ("able_architectures", "emit"):
        monkeypatch.setattr(compilation, name, None)
    monkeypatch.setattr(verification, "run_rtl", None)
    assert build(options(copy)).simulation == finished[1].simulation


@pytest.mark.parametrize(
    "moment",
    few(["run_rtl", "simulation_row", "make_report", "write_html"], ["run_rtl", "write_html"]),
)
def test_interrupted_build_is_continued(moment, options, steps, tmp_path, monkeypatch):
    module = reporting if moment in {"make_report", "write_html"} else verification
    with monkeypatch.context() as patch:
        patch.setattr(module, moment, interrupt)
        with pytest.raises(KeyboardInterrupt):
            build(options(tmp_path / "build"))
    done = list(steps)
    build(options(tmp_path / "build"))
    assert steps == ["compile", "simulate", "report"]
    assert done == steps[: 1 if moment in {"run_rtl", "simulation_row"} else 2]
    assert files(tmp_path / "build").keys() == FILES


@pytest.mark.parametrize(
    "name",
    few(["rtl/top.v", "sim/o.hex", "plan.json", "model.nnef.tgz"], ["rtl/top.v", "model.nnef.tgz"]),
)
def test_touched_file_is_made_again(name, finished, options, copy, steps):
    (copy / name).write_bytes((copy / name).read_bytes()[:-9])
    build(options(copy))
    assert steps[0] == "compile"
    assert (copy / name).read_bytes() == (finished[0] / name).read_bytes()


def test_removed_report_is_made_again(finished, options, copy, steps):
    """The same from the files as it was from the model in memory, but for times."""
    (copy / "report.html").unlink()
    report = build(options(copy))
    assert steps == ["report"]
    first = finished[1]
    assert report.layers == first.layers
    names = [field.name for field in fields(first)]
    differing = {name for name in names if getattr(report, name) != getattr(first, name)}
    assert differing <= {"commands", "seconds", "simulation"}


def test_a_build_quantizes_and_lowers_once(options, tmp_path, monkeypatch):
    calls = []

    def counted(function):
        def call(*arguments, **named):
            calls.append(function)
            return function(*arguments, **named)

        return call

    monkeypatch.setattr("nnef_hw.flow.fixed.quantize", counted(quantize))
    monkeypatch.setattr("nnef_hw.streaming.foldings.lower._lowered", counted(_lowered))
    build(options(tmp_path / "build"))
    assert calls == [quantize, _lowered]


# what makes a build fail


def test_wrong_hardware_fails(options, tmp_path, monkeypatch):
    def to_verilog(*arguments, **named):
        return flip_weights(original(*arguments, **named))

    original = emit.to_verilog
    monkeypatch.setattr(emit, "to_verilog", to_verilog)
    with pytest.raises(CheckError, match=r"\d+ of 20 frames differ from the fixed-point") as raised:
        build(options(tmp_path / "build"))
    assert raised.value.exit_status == 1
    written = json.loads((tmp_path / "build" / "report.json").read_text())
    assert written["simulation"]["bit_exact"] is False
    with pytest.raises(CheckError, match="frames differ"):
        build(options(tmp_path / "build"))


@pytest.mark.parametrize("key", ["interval", "latency"])
def test_wrong_prediction_fails(key, options, tmp_path, monkeypatch):
    def run_rtl(*arguments, **named):
        outcome = original(*arguments, **named)
        return replace(outcome, **{key: getattr(outcome, key) + 1})

    original = verification.run_rtl
    monkeypatch.setattr(verification, "run_rtl", run_rtl)
    with pytest.raises(CheckError, match=r"simulated \w+ \d+ differ from the predicted \d+"):
        build(options(tmp_path / "build"))


@pytest.mark.usefixtures("fake_synthesis")
def test_failed_tool_keeps_what_was_done(options, steps, tmp_path, monkeypatch):
    def synthesize(*_, **__):
        raise ToolError("nextpnr broke")

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "synthesize", synthesize)
        with pytest.raises(ToolError, match="nextpnr broke"):
            build(options(tmp_path / "build", bitstream=True))
    assert steps == ["compile", "simulate"]
    assert files(tmp_path / "build").keys() == FILES - TIMED
    build(options(tmp_path / "build", bitstream=True))
    assert steps == ["compile", "simulate", "synthesize", "report", "clock"]


def test_plain_ip_has_streams_and_no_board(options, tmp_path):
    out = tmp_path / "build"
    report = build(options(out, board="none", device="generic", bitstream=True))
    assert (report.board, report.device, report.bitstream) == ("none", "generic", None)
    assert report.simulation.bit_exact
    assert report.link_inferences_per_second is None
    names = files(out).keys()
    name = report.model
    ip = {f"{name}.core", f"ip/{name}_axis.v", f"ip/{name}_tb.v", f"ip/{name}.vlt", "ip/README.md",
          "ip/model.h"}  # fmt: skip
    assert {*ip, "sim/run.py"} <= names
    assert json.loads((out / "sim" / "bench.json").read_text())["top"] == name
    assert not any(name.startswith("board/") for name in names)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["link"] == {"kind": "axi4-stream"}
    assert manifest["module"] == name
    streams = find_streams("axi4-lite", "registers")
    renamed = options(out, board="none", device="generic", ip_name="Mine_2", streams=streams)
    assert build(renamed).simulation.bit_exact
    names = files(out).keys()
    assert {"Mine_2.core", "ip/Mine_2_axis.v", "ip/Mine_2_axi4_lite.v", "ip/registers.h",
            "ip/Mine_2.svd", "ip/Mine_2.rdl"} <= names  # fmt: skip
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["link"] == {"kind": "axi4-stream", "bus": "axi4-lite", "data": "registers"}
    assert link_of(manifest["link"]) == streams
    # The hash that a driver compares is that of the header.
    code = re.search(r"MODEL_HASH.*?{\s*(.*?)\s*}", (out / "ip/model.h").read_text(), re.DOTALL)[1]
    first = bytes(int(byte, 16) for byte in code.split(",")[:4])
    header = (out / "ip/registers.h").read_text()
    assert f"#define MINE_2_HASH_INIT {int.from_bytes(first, 'little'):#x}u" in header
    assert not ip - {"ip/README.md", "ip/model.h"} & names


def test_refusals(options, tmp_path):
    out = tmp_path / "build"
    for board, device, match in (
        ("none", None, "plain IP needs a --device to fit; --device generic if"),
        ("icebreaker", "up5k", "--device up5k is for --board none; omit"),
        ("none", "up6k", "device 'up6k' is not known; choose one of up5k, hx8k"),
    ):
        with pytest.raises(UsageError, match=match):
            build(options(out, board=board, device=device))
    for board, name, match in (
        ("icebreaker", "mine", "--ip-name mine is for --board none; omit"),
        ("none", "2d", "--ip-name '2d' cannot begin the names of Verilog modules; use letters"),
    ):
        device = "generic" if board == "none" else None
        with pytest.raises(UsageError, match=match):
            build(options(out, board=board, device=device, ip_name=name))
    for board, bus, data, match in (
        ("icebreaker", "wishbone", "streams", "--bus wishbone is for --board none; omit"),
        ("none", None, "registers", "--bus-data registers needs a --bus; give --bus axi4-lite or"),
        ("none", "avalon", "streams", "no bus 'avalon'; use --bus axi4-lite or wishbone"),
        ("none", "wishbone", "dma", "do not pass through 'dma'; use --bus-data streams or"),
    ):
        device = "generic" if board == "none" else None
        with pytest.raises(UsageError, match=match):
            build(options(out, board=board, device=device, streams=find_streams(bus, data)))
    with pytest.raises(UsageError, match="--freq auto needs a board to place a design for"):
        build(options(out, board="none", device="up5k", fastest=True, bitstream=True))
    with pytest.raises(UsageError, match="--freq auto takes the clock from place and route; omit"):
        build(options(out, fastest=True))
    with pytest.raises(UsageError, match="there is no architecture 'overlay'"):
        build(options(out, arch="overlay"))
    with pytest.raises(SampleError, match="no samples were given; give representative inputs"):
        build(options(out, calibrate=None))
    assert not out.exists()


# the bench in every build


@pytest.mark.slow
def test_bench_runs_without_this_package(finished, tmp_path):
    folder = tmp_path / "build"
    for part in ("sim", "rtl"):
        shutil.copytree(finished[0] / part, folder / part)
    blocker = tmp_path / "blocker"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import sys\nsys.modules['nnef_hw'] = None  # importing it fails\n"
    )

    def run():
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(blocker)}
        environment["MAKEFLAGS"] = "OPT_FAST=-O0 OPT_GLOBAL=-O0"
        return subprocess.run(
            [sys.executable, "run.py"],
            cwd=folder / "sim", env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    good = run()
    assert good.returncode == 0, good.stdout + good.stderr
    assert "TESTS=5 PASS=5 FAIL=0" in good.stdout

    expected = folder / "sim" / "o.hex"
    lines = expected.read_text().splitlines()
    lines[5] = f"{int(lines[5], 16) ^ 1:016x}"
    expected.write_text("\n".join(lines) + "\n")
    bad = run()
    assert bad.returncode == 1
    assert "beat 5 of o is 0x" in bad.stdout


# one build to the end


@pytest.fixture(params=["tiny", pytest.param("digits", marks=pytest.mark.nightly)])
def complete(request, options, tmp_path):
    """Options of a build with a bitstream, the number of its samples and the least accuracy."""
    if request.param == "tiny":
        return options(tmp_path / "build", bitstream=True, target_fps=1000.0), 20, 0.0
    model, samples = EXAMPLE / "digits_cnn.nnef.tgz", EXAMPLE / "samples.npz"
    wanted = BuildOptions(model, "icebreaker", tmp_path / "build", calibrate=samples, frames="all")
    return wanted, 450, 0.98


@pytest.mark.synth
def test_build_with_bitstream(complete, tmp_path, monkeypatch):
    wanted, frames, least = complete
    report = build(wanted)

    assert report.bitstream == str(wanted.out / "board" / "board_top.bin")
    # an iCE40UP5K takes as many bytes whatever is in it
    assert Path(report.bitstream).stat().st_size == 104_090
    assert report.timing_met is True
    # as much as the PLL makes of what was reached
    assert 0.95 * report.fmax_mhz <= report.clock_mhz <= 0.98 * report.fmax_mhz
    assert report.clock_mhz >= find_board("icebreaker").clock_mhz
    path = report.longest_path
    assert path.ns == pytest.approx(1e3 / report.fmax_mhz, rel=1e-3)
    assert sum(part.ns for part in path.parts) == pytest.approx(path.ns, abs=0.02)

    resources = report.resources
    for name in ("dsp", "bram", "spram"):
        assert resources[name].used == resources[name].estimated, name
    assert resources["lut"].estimated == pytest.approx(resources["lut"].used, rel=0.15)
    assert all(0 <= row.used <= row.available for row in resources.values())
    placed = report.placed
    assert placed.layers.keys() == {layer.name for layer in report.layers}
    for name in ("lut", "dsp", "bram", "spram"):
        used = sum(row.get(name, 0) for row in (placed.link, *placed.layers.values()))
        assert used == resources[name].used, name
    for layer in report.layers:
        own = placed.layers[layer.name]
        assert (own.get("dsp", 0), own.get("bram", 0)) == (layer.dsp, layer.bram)
    page = (wanted.out / "report.html").read_text()
    assert 'class="floorplan"' in page
    links = set(re.findall(r'href="([^"#]+)"', page))
    assert {"board/nextpnr.log", "board/yosys.log", "board/board_top.bin", "rtl/top.v"} <= links
    assert all((wanted.out / name).is_file() for name in links)
    assert report.seed == 1
    assert any(tool.startswith("nextpnr-ice40 ") for tool in report.tools)

    simulation, accuracy = report.simulation, report.accuracy
    assert (simulation.frames, simulation.bit_exact) == (frames, True)
    for key in ("cycles_per_inference", "latency_cycles"):
        predicted = getattr(simulation, f"predicted_{key}")
        assert getattr(simulation, key) == predicted == getattr(report, key)
    assert len(accuracy.confusion) > 1
    assert accuracy.worst
    assert report.noise.keys() <= {layer.name for layer in report.layers} != set()
    assert accuracy.rtl == accuracy.fixed >= least
    assert compare(BuildFolder.open(wanted.out), wanted.calibrate).bit_exact is True

    for path in (wanted.out / "board").iterdir():
        assert str(tmp_path).encode() not in path.read_bytes(), path.name
    for module, name in (
        (compilation, "able_architectures"), (verification, "run_rtl"), (pipeline, "synthesize"),
        (reporting, "make_report"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, None)
    said = []
    assert build(wanted, said.append) == report
    assert said[-1] == UP_TO_DATE
