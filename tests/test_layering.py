"""Who may import whom: rooms stand on floors, and imports go down (docs/design.md, floors)."""

import ast
import graphlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_FILES = 20

FLOORS = """
cli
demo
api litex
explore
flow
flow.starters
report
run codegen
architectures
engine streaming
streaming.hardware engine.hardware streaming.search
engine.planning
engine.timing
engine.program streaming.beats
streaming.foldings
engine.memory place.nextpnr place.vivado sim
place.cells
place.blocks place
place.netlist
boards streaming.filters engine.network
boards.buses boards.hardware.motion
boards.hardware.cameras boards.hardware.events boards.hardware.microphones
boards.hardware.mlperf boards.hardware.texts streaming.layers engine.layers
boards.hardware
boards.hardware.clocks boards.hardware.tokens
boards.interfaces
boards.interfaces.cameras boards.interfaces.motion
report.pages
report.wording
architecture
report.model
frontend
frontend.onnx frontend.tflite
frontend.onnx.quantization frontend.tflite.operators frontend.nnef
frontend.onnx.operators frontend.nnef.checking frontend.nnef.writing frontend.nnef.tract
frontend.onnx.lowering frontend.tflite.lowering frontend.nnef.evaluation
frontend.onnx.file frontend.tflite.file frontend.nnef.archive
frontend.nnef.language frontend.building
quantize.judgement
quantize
quantize.calibration quantize.tflite
passes
passes.checks
passes.audio passes.images passes.time
passes.functions
passes.fusing
passes.forms passes.loops
passes.places
passes.structure
passes.rewriting
reference
reference.real
reference.running samples
frontend.shapes host
ir.layers
ir
ir.operators
rtl.engine
rtl.audio rtl.images rtl.functions
rtl.arrays
rtl.readers rtl.windows
rtl.streams
rtl.base rtl
parts
parts.engine
parts.arrays parts.audio parts.functions parts.images parts.readers
parts.streams parts.windows
parts.base
registers system
hardware
hardware.families arithmetic.images
hardware.geometry hardware.memories
arithmetic.tflite arithmetic.audio
arithmetic
verilog
"""
"""Rooms, from the top down; those of one row do not import each other."""

FLOOR = {room: n for n, row in enumerate(FLOORS.split("\n")) for room in row.split()}

NETWORKS = {"ir", "reference", "passes", "quantize", "frontend", "samples", "arithmetic"}
"""Top rooms that know networks, and no hardware but its geometry."""
HARDWARE = {
    "api", "architecture", "architectures", "boards", "cli", "codegen", "demo", "engine", "explore",
    "flow", "host", "litex", "parts", "place", "registers", "report", "rtl", "run", "sim",
    "streaming",
}  # fmt: skip
WITH_AMARANTH = {
    "rtl", "boards", "boards.buses", "boards.hardware", "boards.hardware.cameras",
    "boards.hardware.clocks", "boards.hardware.events", "boards.hardware.microphones",
    "boards.hardware.motion", "codegen", "sim",
    "streaming.hardware", "engine.hardware",
}  # fmt: skip
"""Rooms that import Amaranth, or top rooms all of whose rooms do."""


def modules():
    """Yield (name below nnef_hw, source file)."""
    for package in ("nnef_hw", "rtl", "sim", "boards"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[1:] if package == "nnef_hw" else parts), path


@cache
def imports(path):
    """Return the full names of everything a file imports, at any depth."""
    return tuple(_imports(path))


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = dict(modules())
ROOMS = {module.rpartition(".")[0] for module in MODULES} - {""}


@cache
def imported_modules(module):
    """Return which of our modules a module imports, also within functions and for types only."""
    names = {name.removeprefix("nnef_hw.") for name in imports(MODULES[module])}
    found = names & MODULES.keys()
    for name in names - found:
        # a package, or what a module or the __init__ of a package defines
        package = name if f"{name}.__init__" in MODULES else name.rpartition(".")[0]
        if not any(other.startswith(f"{name}.") for other in names):
            found |= {f"{package}.__init__"} & MODULES.keys()
    return found


def room_of(module):
    return module.rpartition(".")[0]


def test_every_room_has_a_floor():
    assert FLOOR.keys() == ROOMS


@pytest.mark.parametrize("room", FLOOR)
def test_imports_go_down_only(room):
    up = {
        (module, imported)
        for module in MODULES
        if room_of(module) == room
        for imported in imported_modules(module)
        if room_of(imported) not in {room, ""} and FLOOR[room_of(imported)] <= FLOOR[room]
    }
    assert not up


@pytest.mark.parametrize("module", MODULES)
def test_what_knows_networks_knows_no_hardware(module):
    if module.partition(".")[0] in NETWORKS:
        tops = {imported.partition(".")[0] for imported in imported_modules(module)}
        assert not tops & HARDWARE


@pytest.mark.parametrize("module", MODULES)
def test_amaranth_stays_in_its_rooms(module):
    if "amaranth" in {name.partition(".")[0] for name in imports(MODULES[module])}:
        room = room_of(module)
        assert {room, room.partition(".")[0]} & WITH_AMARANTH


def test_imports_make_no_circle():
    graph = {module: imported_modules(module) for module in MODULES}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError
    assert "frontend.nnef.evaluation.rules" in graph["frontend.nnef.evaluation.evaluate"]
    assert "hardware.families.__init__" in graph["hardware.devices"]
    assert "hardware.families.__init__" not in graph["hardware.families.ice40"]


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_has_a_sign_and_few_files(room):
    folder = MODULES[f"{room}.__init__"].parent
    assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    files = [path for path in folder.iterdir() if path.is_file()]
    assert len(files) <= MOST_FILES


@pytest.mark.parametrize("room", ["bench", "generate", "hunt", "measure", "record"])
def test_a_room_of_scripts_has_few_files(room):
    folder = ROOT / "scripts"
    assert not [path for path in folder.iterdir() if path.is_file()]
    files = [path for path in (folder / room).iterdir() if path.is_file()]
    assert 0 < len(files) <= MOST_FILES


def test_the_root_has_few_files():
    root = [path.name for path in (ROOT / "nnef_hw").iterdir() if path.is_file()]
    assert sorted(root) == ["__init__.py", "errors.py", "py.typed", "testing.py"]


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("nnef_hw.run", ("amaranth", "lark")),
        ("nnef_hw.host", ("amaranth", "lark", "scipy")),
        ("nnef_hw.boards", ("amaranth",)),
        ("nnef_hw.boards.interfaces", ("amaranth", "serial")),
        ("nnef_hw.hardware.families", ("amaranth",)),
        ("nnef_hw.place.nextpnr.ice40", ("amaranth", "scipy")),
        ("nnef_hw.place.nextpnr.ecp5", ("amaranth", "scipy")),
        ("nnef_hw.flow.pipeline", ("scipy",)),
        ("nnef_hw.parts", ("amaranth",)),
        ("nnef_hw.streaming.search.solver", ("amaranth",)),
        ("nnef_hw.engine.architecture", ("amaranth",)),
        ("nnef_hw.quantize", ("amaranth",)),
        ("nnef_hw.frontend", ("amaranth", "onnx")),
    ],
)
def test_importing_does_not_load(module, absent):
    program = f"import sys, {module}; print(*sorted(set({absent}) & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []
