"""Execute the notebooks of examples/ and keep what they show, without times, folders, versions.

    python scripts/generate/notebooks.py [NAME...]

The page of a report, an iframe of its own, is left out: what a value shows as text stays.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "examples" / "notebooks"
CELL_SECONDS = 900
KEPT = ("image/png", "text/plain")
"""Forms of a value that are kept: the first one that it has."""

_PROGRESS = re.compile(r"(Output\(\)|No such comm: \w+)?\s*")
"""What is left of a bar that has gone."""
_TIME = re.compile(r"\b\d[\d.,]* ?(?:ms|s|min)\b(?: \d+ s\b)?")
_VERSION = re.compile(r"\b(verilator|yosys|nextpnr-\w+) \d[\w.+-]*", re.IGNORECASE)
_COLUMNS = re.compile(r"(?m)[ \t]+$")


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Execute a notebook in a folder, beside which it finds the examples; fill in its outputs."""
    examples = folder / "examples"
    if not examples.exists():
        examples.symlink_to(ROOT / "examples")
    settings = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "COLUMNS": "112"}
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    client.execute(env=os.environ | settings)


def strip(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Leave out what differs from run to run or from tool to tool, and progress."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            found = [kept for each in cell.outputs if (kept := _kept(each, folder))]
            cell.outputs = _joined(found)
    return notebook


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join what was printed in parts, as it is where something else was told in between."""
    joined: list[NotebookNode] = []
    for output in outputs:
        before = joined[-1] if joined else None
        if before is not None and output.output_type == before.output_type == "stream":
            before.text += output.text
        else:
            joined.append(output)
    return joined


def _kept(output: NotebookNode, folder: Path) -> NotebookNode | None:
    if output.output_type == "stream":
        if output.name == "stderr":
            return None
        output.text = _plain(output.text, folder)
        return output if output.text else None
    if "data" not in output:
        return output
    form = next((form for form in KEPT if form in output.data), None)
    if form is None or _PROGRESS.fullmatch(output.data[form]):
        return None
    shown = output.data[form]
    output.data = {form: _plain(shown, folder) if form == "text/plain" else shown}
    output.metadata = {}
    return output


def _plain(text: str, folder: Path) -> str:
    for place in (folder, ROOT):
        text = text.replace(f"{place}/", "")
    return _COLUMNS.sub("", _VERSION.sub(r"\1 …", _TIME.sub("… s", text)))


def main(names: list[str]) -> None:
    """Execute notebooks, all if no names are given, and write them."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            execute(notebook, Path(folder))
            nbformat.write(strip(notebook, Path(folder)), path)


if __name__ == "__main__":
    main(sys.argv[1:])
