"""Who may import whom (docs/design.md, section 3)."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASE = {
    "adders", "errors", "interpolation", "numerics", "tables", "tflite_division", "tflite_numerics",
    "tflite_short_functions",
    "window", "blockram", "devices", "families", "files", "process_group", "protocol", "sources",
    "stream_rows", "subexpressions", "workers",
}  # fmt: skip
GRAPH = BASE | {"ir"}
ALLOWED = {
    **dict.fromkeys(BASE, BASE),
    "manifest": BASE,
    "tools": BASE,
    "doctor": BASE | {"tools"},
    "ir": GRAPH,
    "frontend": GRAPH | {"frontend", "reference"},
    "reference": GRAPH | {"reference"},
    "passes": GRAPH | {"passes", "reference"},
    "quantize": GRAPH | {"passes", "quantize", "reference"},
    "memories": {"memories"},
    "parts": BASE | {"memories", "parts"},
    "architecture": GRAPH | {"memories", "parts"},
    "architectures": GRAPH | {"architecture", "engine", "streaming"},
    "streaming": GRAPH | {"passes", "parts", "streaming", "boards", "architecture"},
    "engine": GRAPH | {"parts", "engine", "boards", "architecture", "memories"},
    "boards": BASE | {"boards", "memories", "rtl"},
    "samples": GRAPH,
    "scoring": GRAPH,
    "testing": GRAPH | {"reference"},
    "rtl": {"interpolation", "numerics", "tables", "tflite_division", "blockram", "parts", "rtl"},
}
HARDWARE = {"engine.accelerator", "streaming.accelerator", "streaming.layer_module"}
WITHOUT_AMARANTH = {*ALLOWED, "run", "report", "cli"} - {"rtl", "boards"}
HIGH = {"codegen", "build", "explore", "run", "report", "api", "cli"}


def modules():
    """Yield (name below nnef_hw, source file)."""
    for package in ("nnef_hw", "rtl", "sim", "boards"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[1:] if package == "nnef_hw" else parts), path


def imports(path):
    """Yield the full names of everything a file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = dict(modules())


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down_only(module):
    layer = module.partition(".")[0]
    imported = set(imports(MODULES[module]))
    ours = {name.split(".")[1] for name in imported if name.startswith("nnef_hw.")}
    ours -= {"__version__"}
    if layer in ALLOWED:
        assert ours <= ALLOWED[layer] | ({"rtl"} if module in HARDWARE else set())
    if layer != "cli":
        assert "cli" not in ours
    if layer not in {"api", "cli", "__init__"}:
        assert "api" not in ours
    if layer in {"codegen", "sim"}:
        assert not ours & {"run", "report"}
    if layer == "sim":
        assert "build" not in ours
    if layer in WITHOUT_AMARANTH and module not in HARDWARE:
        assert not {name for name in imported if name.partition(".")[0] == "amaranth"}


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


def test_imports_make_no_circle():
    graph = {module: imported_modules(module) for module in MODULES}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError
    assert "frontend.nnef.rules" in graph["frontend.nnef.evaluate"]
    assert "families.__init__" in graph["devices"]
    assert "families.__init__" not in graph["families.ice40"]


def test_every_layer_has_a_rule():
    layers = {module.partition(".")[0] for module in MODULES} - {"__init__"}
    assert layers <= {*ALLOWED, *HIGH, "sim"}


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("nnef_hw.run", ("amaranth", "lark")),
        ("nnef_hw.boards", ("amaranth",)),
        ("nnef_hw.families", ("amaranth",)),
        ("nnef_hw.parts", ("amaranth",)),
        ("nnef_hw.streaming", ("amaranth",)),
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
