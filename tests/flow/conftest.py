"""Builds of a tiny network, with synthesis or without."""

import shutil
from dataclasses import replace

import pytest
from build_cases import write_samples
from cli_cases import tiny_graph

from nnef_hw.flow import compilation, pipeline, reporting, verification
from nnef_hw.flow import steps as step_module
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.place.result import Resource, SynthesisResult


@pytest.fixture(scope="module")
def fixed_sources():
    """Keep builds of a module comparable while somebody edits the sources."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (compilation, verification, reporting):
            patch.setattr(module, "package_digest", lambda: "sources")
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A float model with ``samples.npz`` beside it."""
    folder = tmp_path_factory.mktemp("model")
    save(tiny_graph(), folder / "tiny.nnef.tgz")
    write_samples(folder / "samples.npz")
    return folder / "tiny.nnef.tgz"


@pytest.fixture(scope="module")
def options(model):
    """Return ``options(out, **changes)``."""

    def options(out, **changes):
        samples = model.with_name("samples.npz")
        wanted = BuildOptions(
            model, "icebreaker", out, calibrate=samples, bitstream=False, frames="all"
        )
        return replace(wanted, **changes)

    return options


@pytest.fixture(scope="module")
def finished(options, tmp_path_factory):
    """A build that nobody changes, and its report."""
    folder = tmp_path_factory.mktemp("finished") / "build"
    return folder, build(options(folder))


@pytest.fixture
def copy(finished, tmp_path):
    """The finished build, to play with."""
    return shutil.copytree(finished[0], tmp_path / "build")


@pytest.fixture
def steps(monkeypatch):
    """Names of the steps that ran, in the order of their ends."""
    ran = []

    def spy(directory, name, key, produce):
        value, is_new = original(directory, name, key, produce)
        ran.extend([name] * is_new)
        return value, is_new

    original = step_module.cached_step
    monkeypatch.setattr(step_module, "cached_step", spy)
    return ran


@pytest.fixture
def fake_synthesis(monkeypatch):
    """Synthesis in no time: the bitstream tells the length of the Verilog."""

    def synthesize(verilog, *, out_dir, constraints, frequency_mhz, tuning=None, fmax=40.0, **_):
        out_dir.mkdir(parents=True)
        (out_dir / "board_top.pcf").write_text(constraints)
        (out_dir / "board_top.bin").write_bytes(len(verilog.read_text()).to_bytes(4, "little"))
        (out_dir / "nextpnr.log").write_text("placed\n")
        (out_dir / "floorplan.json").write_text('{"size": [1, 1], "path": [], "blocks": {}}\n')
        setting = tuning and tuning.choose(fmax)
        limit = setting.clock_mhz if setting else frequency_mhz
        return SynthesisResult(
            fmax_mhz=fmax, frequency_mhz=limit, timing_met=limit <= fmax,
            clocks={"clk": (fmax, limit)}, clock_mhz=setting and limit,
            resources={"lut": Resource(1234, 5280)}, cells={"SB_LUT4": 1000},
            files={"bitstream": "board_top.bin", "floorplan": "floorplan.json"},
            seconds={"yosys": 0.1, "nextpnr": 0.2},
        )  # fmt: skip

    monkeypatch.setattr(pipeline, "synthesize", synthesize)
    for module in (pipeline, reporting):
        monkeypatch.setattr(module, "tool_identities", lambda family: ("tools of", family.name))
