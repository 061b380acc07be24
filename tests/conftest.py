"""Fixtures every test may use, and the tools that marked tests need."""

import gc
import importlib
import os
import shutil
import sys
import zlib
from functools import partial
from pathlib import Path

# There is a worker for every processor: more threads of BLAS in each of them only wait busily.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from cli_cases import Result, tiny_graph, write_samples

from nnef_hw.boards import BOARDS, find_board
from nnef_hw.cli import main
from nnef_hw.errors import ToolError
from nnef_hw.frontend import save
from nnef_hw.hardware.families import FAMILIES
from nnef_hw.host.line_loop import LineTiming
from nnef_hw.host.link import Timing
from nnef_hw.ir.batch import sample_extents
from nnef_hw.passes import simplify
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.run import device, generate
from nnef_hw.system.tools import find_tool

MARKER_TOOLS = {
    "verilator": ("verilator", "c++"),
    "synth": {tool for family in FAMILIES for tool in toolchain_of(family).programs},
}

MISSING = ("pip install", "could not import", "no C compiler")
"""Begins of the reasons for which tests are skipped that continuous integration has to run."""


# Amaranth's graphs are many small objects that live long: looking at them rarely saves 5%.
gc.set_threshold(100_000, 20, 50)

# Tests start hundreds of processes that read the package: compiled once, not by each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_finish(session):
    """Leave tests and modules out of what the collector looks at."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """Skip what needs a tool that is missing here; in continuous integration that is a failure."""
    if item.get_closest_marker("icarus") and shutil.which("iverilog") is None:
        assert os.environ.get("CI") != "true", "no iverilog"
        pytest.skip("no iverilog (Debian and Ubuntu: apt install iverilog)")
    for marker, tools in MARKER_TOOLS.items():
        if item.get_closest_marker(marker) is None:
            continue
        try:
            for tool in tools:
                find_tool(tool)
        except ToolError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(error))


def _fail_if_missing(report):
    """In continuous integration nothing is skipped for a package that is not installed."""
    if report.skipped and os.environ.get("CI") == "true" and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith(MISSING):
            report.outcome, report.longrepr = "failed", reason
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Look at what a test comes to."""
    return _fail_if_missing((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Look at what a module comes to."""
    return _fail_if_missing((yield))


@pytest.fixture(scope="session", autouse=True)
def briefly_silent():
    """Wait less for a simulated board's line: nothing unfinished precedes what a host sends.

    The usual silence is that of a board, as many times longer as the simulation is slower: up to
    half a minute whenever a host begins.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "Timing", partial(Timing, silence=0.001))
        patch.setattr(generate, "LineTiming", partial(LineTiming, silence=0.003))
        yield


REPORTS = ("nnef_hw.engine.report.BOARDS", "nnef_hw.streaming.report.BOARDS")


@pytest.fixture(scope="session", autouse=True)
def few_boards():
    """Let reports say what two boards would make of a network: each takes a second or so."""
    with pytest.MonkeyPatch.context() as patch:
        for name in REPORTS:
            patch.setattr(name, (find_board("icebreaker"), find_board("ulx3s_85f")))
        yield


@pytest.fixture
def all_boards(monkeypatch):
    """Let reports say what every board would make of a network, as they do for users."""
    for name in REPORTS:
        monkeypatch.setattr(name, BOARDS)


@pytest.fixture
def rng(request):
    """Seeded by the test's id, so that one failure replays alone."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def fix(rng):
    """Return ``fix(graph, **scheme)``: a float graph quantized on noise."""

    def fix(graph, **scheme):
        canonical = simplify(graph)
        samples = {
            name: rng.normal(size=[16, *sample_extents(canonical.tensor(name).shape)])
            for name in canonical.inputs
        }
        return quantize(canonical, samples, Scheme(**scheme))

    return fix


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Folder with ``tiny.nnef.tgz`` and samples with classes, real labels, and none."""
    folder = tmp_path_factory.mktemp("tiny")
    save(tiny_graph(), folder / "tiny.nnef.tgz")
    write_samples(folder / "samples.npz", [1, 6, 6], lambda rng, n: rng.integers(0, 4, n))
    write_samples(folder / "real.npz", [1, 6, 6], lambda rng, n: rng.normal(size=(n, 4)))
    write_samples(folder / "bare.npz", [1, 6, 6])
    return folder


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Run a command in the test's own folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        return Result(status, *capsys.readouterr())

    return run


@pytest.fixture
def compiler():
    """The system's compiler of C."""
    found = shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler called cc")
    return found


def find_shared(name):
    """Return a folder of third-party data; skip the test if it is not there."""
    root = Path(os.environ.get("NNEF_HW_SHARED", Path(__file__).parents[2] / "shared"))
    if not (root / name).is_dir():
        pytest.skip(f"no {name} in {root}; set NNEF_HW_SHARED")
    return root / name


@pytest.fixture(scope="session")
def sense():
    """Folder of recorded speech."""
    return find_shared("sense")


@pytest.fixture(scope="session")
def suites():
    """Folder of other projects' conformance suites."""
    return find_shared("suites")


@pytest.fixture(scope="session")
def exports():
    """Folder of models that other projects' exporters wrote from PyTorch."""
    return find_shared("exports")


@pytest.fixture(scope="session")
def attention():
    """Folder of networks with attention, as their authors published them."""
    return find_shared("attention")


@pytest.fixture(scope="session")
def realworld():
    """Folder of model files of other people, which tests/cases/real_networks.json names."""
    return find_shared("realworld") / "models"


@pytest.fixture(scope="session")
def zoo():
    """Folder of the trained networks used end to end."""
    path = Path(os.environ.get("NNEF_HW_ZOO", Path(__file__).parents[2] / "shared" / "zoo"))
    if not path.is_dir():
        pytest.skip(f"no trained networks at {path}; set NNEF_HW_ZOO")
    return path


@pytest.fixture(scope="module")
def script():
    """``scripts/measure/measure_resources.py``, as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "scripts" / "measure")
        return importlib.import_module("measure_resources")
