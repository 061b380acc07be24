import re
import shutil
from pathlib import Path

import pytest

from nnef_hw.sim import fast_runner

pytestmark = pytest.mark.system

SIM_KEYS = {
    "frames", "bit_exact", "mismatches", "cycles_per_inference", "latency_cycles",
    "predicted_cycles_per_inference", "predicted_latency_cycles", "steady_cycles_per_inference",
    "cycles_per_second",
}  # fmt: skip


@pytest.mark.verilator
def test_sim(cli, built, tmp_path):
    plain = cli("sim", built)
    assert (plain.status, plain.err) == (0, "")
    assert "bit exact" in plain.out

    value = cli("sim", built, "--json").json
    assert value.keys() >= SIM_KEYS
    assert (value["frames"], value["bit_exact"], value["mismatches"]) == (16, True, 0)
    assert value["cycles_per_inference"] == value["predicted_cycles_per_inference"]
    assert value["latency_cycles"] == value["predicted_latency_cycles"]

    samples = built.parent / "samples.npz"
    options = ("--samples", samples, "--limit", 3, "--stall", 0.5, "--trace", "out.vcd")
    stalled = cli("sim", built, *options, "--json")
    assert (stalled.status, stalled.err) == (0, "")
    assert (stalled.json["frames"], stalled.json["bit_exact"]) == (3, True)
    assert stalled.json["cycles"] > 1.5 * 36 * 3
    assert "$enddefinitions" in (tmp_path / "out.vcd").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out.vcd"]


def last_cycle(path):
    """Return the cycle in which a waveform ends, two half cycles each, reset included."""
    return int(re.findall(r"^#(\d+)$", path.read_text(), re.MULTILINE)[-1]) // 2


def scopes(path):
    """Return the modules of a waveform that have signals."""
    stack, found = [], set()
    for line in path.read_text().partition("$enddefinitions")[0].splitlines():
        word, *rest = line.split() or [""]
        if word == "$scope":
            stack.append(rest[1])
        elif word == "$upscope":
            stack.pop()
        elif word == "$var":
            found |= set(stack)
    return found


@pytest.mark.verilator
def test_waveform_has_two_frames_or_those_asked_for(cli, built, tmp_path):
    value = cli("sim", built, "--trace", "two.vcd", "--json").json
    assert (value["frames"], value["trace_frames"], value["bit_exact"]) == (16, 2, True)
    path = tmp_path / "two.vcd"
    assert (value["trace"], value["trace_bytes"]) == ("two.vcd", path.stat().st_size)
    interval, latency = (value[key] for key in ("cycles_per_inference", "latency_cycles"))
    assert 0 <= last_cycle(path) - (latency + interval) <= 3
    found = scopes(path)
    assert {"relu1", "window", "input_skid"} <= found
    assert any(name.startswith("scores") for name in found)

    asked = ("--trace-frames", 5, "--trace-layers", "relu1,pool1")
    result = cli("sim", built, "--trace", "five.vcd", *asked, "--json")
    path = tmp_path / "five.vcd"
    assert result.json["trace_frames"] == 5
    assert re.fullmatch(r"nnef-hw: warning: five\.vcd: 5 frames take about \d+ MB\n", result.err)
    assert 0 <= last_cycle(path) - (latency + 4 * interval) <= 3
    found = scopes(path)
    assert {"relu1", "pool1", "window"} <= found
    assert not {name for name in found if name.startswith(("scores", "input_skid"))}


@pytest.mark.verilator
def test_waveform_that_does_not_fit_is_refused(refused, built, monkeypatch):
    usage = shutil._ntuple_diskusage(10**9, 10**9 - 10, 10)
    monkeypatch.setattr("nnef_hw.run.trace.shutil.disk_usage", lambda _: usage)
    refused(
        "sim", built, "--trace", "out.vcd", "--trace-frames", 16,
        match=r"out\.vcd: 16 frames take about \d+ MB, and 0 MB are free; give a smaller --trace-f",
    )  # fmt: skip


@pytest.mark.verilator
def test_full_disk_ends_a_waveform(refused, built, monkeypatch):
    """The file system has less than a waveform may leave; here none has so much."""
    source = Path(fast_runner.__file__).with_suffix(".cpp")
    text = source.read_text().replace("TraceReserve = 16 << 20", "TraceReserve = 1ull << 60")
    runner = built.parent / "full.cpp"
    runner.write_text(text)
    header = built.parent / "stream_model.h"
    shutil.copyfile(source.with_name(header.name), header)
    monkeypatch.setattr(fast_runner, "_RUNNER", (runner, header))
    refused(
        "sim", built, "--trace", "out.vcd",
        match=r"nnef-hw: out\.vcd: cannot be written: No space left on device; free some space",
    )  # fmt: skip


@pytest.mark.verilator
def test_compare(cli, built, tiny):
    value = cli("compare", built, "--samples", tiny / "samples.npz", "--json").json
    assert value.keys() >= {"samples", "bit_exact", "accuracy", "layers"}
    assert (value["samples"], value["bit_exact"], value["mae"]) == (20, True, None)
    assert (value["calibration_samples"], value["evaluation_samples"]) == (20, 20)
    assert value["accuracy"].keys() == {"float", "fixed", "rtl"}
    assert [layer.keys() for layer in value["layers"]] == [{"name", "op", "sqnr_db"}] * 3
    assert all(layer["sqnr_db"] > 10 for layer in value["layers"])

    real = cli("compare", built, "--samples", tiny / "real.npz", "--json").json
    assert real["accuracy"] is None
    assert real["mae"]["rtl"] == real["mae"]["fixed"]
    bare = cli("compare", built, "--samples", tiny / "bare.npz", "--json").json
    assert (bare["accuracy"], bare["mae"]) == (None, None)
    text = cli("compare", built, "--samples", tiny / "samples.npz")
    assert "sqnr db" in text.out


def test_what_is_no_build_is_refused(refused, tiny, built, tmp_path):
    samples = tiny / "samples.npz"
    for path, match in (
        (tmp_path / "nope", "build '.*nope' does not exist; run nnef-hw build"),
        (tiny / "tiny.nnef.tgz", "is not a finished build: it has no manifest.json; run nnef-hw"),
        (tiny, "is not a finished build"),
    ):
        refused("sim", path, match=match)
        refused("compare", path, "--samples", samples, match=match)
    shutil.copytree(built, tmp_path / "cut")
    (tmp_path / "cut" / "plan.json").write_text("{}")
    refused("sim", tmp_path / "cut", match=r"'.*plan\.json' is damaged; run nnef-hw build again")
    (tmp_path / "cut" / "rtl" / "top.v").unlink()
    refused("sim", tmp_path / "cut", match=r"it has no rtl/top\.v")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--limit", "0"], "--limit must be at least 1, not 0"),
        (["--limit=-3"], "--limit must be at least 1, not -3"),
        (["--stall", "1.5"], r"--stall must be in 0\.\.1 \(1 excluded\), not 1\.5"),
        (["--stall", "1"], "--stall must be in"),
        (["--stall=-0.1"], "--stall must be in"),
        (["--stall", "nan"], "--stall must be in"),
        (["--trace", "out.txt"], r"--trace must end in \.fst or \.vcd, not 'out\.txt'"),
        (["--trace", "nowhere/out.vcd"], r"nowhere/out\.vcd: cannot be written: No such file"),
        (
            ["--trace-frames", "3"],
            "--trace-frames and --trace-layers need a waveform; give --trace FILE, too",
        ),
        (["--trace-layers", "relu1"], "--trace-frames and --trace-layers need a waveform"),
        (
            ["--trace", "out.vcd", "--trace-layers", "relu1,relu9"],
            "has no layer 'relu9'; --trace-layers takes some of relu1, pool1, scores",
        ),
    ],
    ids="".join,
)
def test_wrong_sim_options_are_refused(options, match, refused, built):
    refused("sim", built, *options, match=match)


@pytest.mark.verilator
def test_wrong_hardware_fails(cli, built, tiny, tmp_path):
    folder = tmp_path / "wrong"
    shutil.copytree(built, folder)
    verilog = (built / "rtl" / "top.v").read_text()
    flipped = re.sub(
        r"(tile_0_0\[\d+\] = \d+'h)([0-9a-f])",
        lambda match: match[1] + f"{int(match[2], 16) ^ 1:x}",
        verilog,
    )
    assert flipped != verilog
    (folder / "rtl" / "top.v").write_text(flipped)

    result = cli("sim", folder, "--json")
    assert result.status == 1
    assert re.search(r"nnef-hw: \d+ of 16 frames differ from the fixed-point model", result.err)
    assert result.json["bit_exact"] is False
    result = cli("compare", folder, "--samples", tiny / "samples.npz", "--json")
    assert result.status == 1
    assert "of 20 frames differ" in result.err
    assert result.json["bit_exact"] is False
