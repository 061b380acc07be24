"""Pages of the documentation's site that are made from the code; hooks of MkDocs.

``reference/`` has the command line, the boards, the Python API and all messages; ``notebooks/`` the
notebooks of the examples with their outputs; ``gallery/`` the reports of the examples as they are
planned now. Files that a page names outside of docs/ are
copied, and ``<!-- README: HEADING -->`` stands for a section of the README. Links that show a
page's file name show its title on the site, and columns of numbers are aligned at the right.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import posixpath
import re
from collections.abc import Iterator
from inspect import ismodule
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files, InclusionLevel
from nbconvert import MarkdownExporter

import nnef_hw as nh
from nnef_hw import errors
from nnef_hw.boards import BOARDS
from nnef_hw.boards.interfaces import Spi
from nnef_hw.cli import command_parser

ROOT = Path(__file__).parents[2]
SOURCES = ("nnef_hw", "boards", "sim")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")
INCLUDE = re.compile(r"<!-- README: (.+?) -->")
NAMED = re.compile(r"\[`?(?:\w+/)*[\w-]+\.md`?\]\(([^)#\s:]+\.md)(#[^)\s]*)?\)")
"""Links whose text is the name of a file."""
TABLE = re.compile(
    r"^\|.*\|\n(?P<line>\|(?: ?:?-+:? ?\|)+)\n(?P<rows>(?:\|.*\|(?:\n|\Z))+)", re.MULTILINE
)
CELL = re.compile(r"(?<!\\)\|")
NUMBER = re.compile(
    r"[-+\u00b1~]?\d[\d,.]*( ?(%|x|MHz|dB|s|ms|us|ns|KB|MB|bits?))?( \([^)]*\))?( \u2020)?"
)
COPIES = "files"
NONE = "\N{EN DASH}"
NOTEBOOKS = ROOT / "examples" / "notebooks"
GALLERY = {"digits_cnn": "icebreaker", "digits_gru": "icebreaker"}


def on_files(files: Files, *, config: Any) -> Files:
    """Add what is made from the code, and the files that pages name."""
    pages = {
        "reference/cli.md": _cli(),
        "reference/boards.md": _boards(),
        "reference/api.md": _api(),
        "reference/messages.md": _messages(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        for name, content in _notebook(notebook).items():
            files.append(File.generated(config, name, content=content))
    for name, board in GALLERY.items():
        files.append(File.generated(config, f"gallery/{name}.html", content=_report(name, board)))
    waiting = list(files.documentation_pages())
    while waiting:
        page = waiting.pop()
        for target in _targets(_included(page.content_string, page.src_uri), page.src_uri):
            name = _place(target)
            if name.startswith(COPIES) and files.get_file_from_path(name) is None:
                copy = _copy(target, name, config)
                copy.inclusion = InclusionLevel.NOT_IN_NAV
                files.append(copy)
                if copy.is_documentation_page():
                    waiting.append(copy)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Put in sections of the README, lead links to where files are in the site, align numbers."""
    del config
    name = page.file.src_uri

    def lead(found: re.Match[str]) -> str:
        target = _target(found, name)
        if target is None:
            return found[0]
        place = posixpath.relpath(_place(target), posixpath.dirname(name) or ".")
        return f"]({place}{found[2] or ''})"

    def entitle(found: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(name), found[1]))
        target = files.get_file_from_path(place)
        title = target and re.search(r"^# (.+?)(?: \{.*\})?$", target.content_string, re.MULTILINE)
        return f"[{title[1]}]({found[1]}{found[2] or ''})" if title else found[0]

    return align_numbers(NAMED.sub(entitle, LINK.sub(lead, _included(markdown, name))))


def align_numbers(markdown: str) -> str:
    """Align the columns of a text's tables at the right that have numbers alone, or none."""

    def aligned(table: re.Match[str]) -> str:
        lines = [CELL.split(line.strip())[1:-1] for line in table["rows"].splitlines()]
        marks = CELL.split(table["line"].strip())[1:-1]
        for place, mark in enumerate(marks):
            cells = [line[place].strip(" *`") for line in lines if place < len(line)]
            shown = [cell for cell in cells if cell not in {"", "-", NONE}]
            if ":" not in mark and shown and all(NUMBER.fullmatch(cell) for cell in shown):
                marks[place] = "---:"
        start = table.start()
        line = "|" + "|".join(marks) + "|"
        return (
            table[0][: table.start("line") - start] + line + table[0][table.end("line") - start :]
        )

    return TABLE.sub(aligned, markdown)


def _copy(target: str, name: str, config: Any) -> File:
    """Return a file of the project as one of the site; of a folder, a list of its files."""
    path = ROOT / target
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir() if file.is_file())
        listed = "\n".join(f"- [{name}]({name})" for name in names)
        return File.generated(config, name, content=f"# {path.name}\n\n{listed}\n")
    return File.generated(config, name, abs_src_path=str(path))


def _origin(page: str) -> str:
    """Return where a page's text stands in the project, from its root."""
    return page.removeprefix(f"{COPIES}/") if page.startswith(f"{COPIES}/") else f"docs/{page}"


def _place(target: str) -> str:
    """Return where a file or folder of the project stands in the site."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if target.endswith(".ipynb"):
        return f"notebooks/{PurePosixPath(target).stem}.md"
    return f"{COPIES}/{target}" + ("/index.md" if (ROOT / target).is_dir() else "")


def _target(found: re.Match[str], page: str) -> str | None:
    """Return which file or folder of the project a link leads to, if it is one."""
    folder = posixpath.dirname(_origin(page))
    path = posixpath.normpath(posixpath.join(folder, found[1]))
    return path if not path.startswith("..") and (ROOT / path).exists() else None


def _targets(text: str, page: str) -> Iterator[str]:
    for found in LINK.finditer(text):
        target = _target(found, page)
        if target is not None:
            yield target


def _included(text: str, page: str) -> str:
    """Put sections of the README into a page of docs/; their links lead from there."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    upwards = posixpath.relpath(".", posixpath.dirname(_origin(page)))

    def section(include: re.Match[str]) -> str:
        found = re.search(
            rf"^(#+) {re.escape(include[1])}\n(.*?)(?=^#{{1,2}} |\Z)", readme,
            re.MULTILINE | re.DOTALL,
        )  # fmt: skip
        if found is None:
            raise ValueError(f"{page}: the README has no section {include[1]!r}")
        return LINK.sub(rf"]({upwards}/\1\2)", found[2].strip())

    return INCLUDE.sub(section, text)


def _notebook(path: Path) -> dict[str, str | bytes]:
    """Return a notebook as a page with its outputs, and the pictures that this shows."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = cell.source.strip()
    folder = {"output_files_dir": path.stem, "unique_key": "picture"}
    text, found = MarkdownExporter().from_notebook_node(notebook, resources=folder)
    pictures = {f"notebooks/{name}": data for name, data in found["outputs"].items()}
    return {f"notebooks/{path.stem}.md": text, **pictures}


def _cli() -> str:
    """Every command with its options, as ``--help`` prints them."""
    parser = command_parser()
    [subs] = [x for x in parser._actions if isinstance(x, argparse._SubParsersAction)]
    lines = ["# Command line", "", ("Exit status: 0 fine, 1 a check failed, 2 wrong input or "
             "arguments, 3 a tool is missing or failed. `--json` prints one JSON object, "
             "[whose keys](../command_line.md) stay as they are."), ""]  # fmt: skip
    summaries = {action.dest: action.help for action in subs._choices_actions}
    for name, sub in subs.choices.items():
        sub.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=96)
        lines += [f"## {name}", "", f"{summaries[name]}", "", "```text",
                  sub.format_help().rstrip(), "```", ""]  # fmt: skip
    return "\n".join(lines)


def _boards() -> str:
    """List the boards and what their devices have."""
    lines = [
        "---", "hide: [toc]", "---", "# Boards", "",
        ("`nnef-hw boards` prints them; [how to run on one](../boards.md), and to write a file of "
        "your own."), "",
        ("| name | board | device | clock | LUTs | DSPs | million MACs/s in DSPs | "
         "block RAMs | bytes in them | memories | `--link spi` |"),
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for board in BOARDS:
        device = board.device
        memories = ", ".join(type(memory).__name__ for memory in board.memories) or NONE
        names = ", ".join(f"`{name}`" for name in (board.name, *board.aliases))
        lines.append(
            f"| {names} | {board.title} | {device.name} | {board.clock_mhz:g} MHz | {device.lut:,} "
            f"| {device.dsp} | {device.products * board.clock_mhz:,.0f} | {device.bram} "
            f"| {device.ram_bytes:,} | {memories} | {'yes' if board.has_pins(Spi()) else NONE} |"
        )
    return "\n".join([*lines, ""])


def _api() -> str:
    """List the names of the package, by what they are."""
    lines = ["# Python API, by name", "", ("What `import nnef_hw as nh` has; "
             "[an introduction](../api.md)."), ""]  # fmt: skip
    for name in nh.__all__:
        value = getattr(nh, name)
        if name == "BOARDS":
            lines += ["## BOARDS", "", "[The boards](boards.md), a tuple.", ""]
        elif ismodule(value):
            lines += [f"::: {value.__name__}", ""]
        else:
            lines += [f"::: {value.__module__}.{value.__name__}", ""]
    return "\n".join(lines)


def _messages() -> str:
    """List what may be wrong, by exit status and class, from the calls in the code."""
    known = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.NnefHwError)
    }
    found: dict[str, dict[str, str]] = {}
    for path in sorted(path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args):
                continue
            reason = _pattern(call.args[0])
            if call.func.id in known and reason and reason.strip(" …"):
                remedy = next((_pattern(x.value) for x in call.keywords if x.arg == "remedy"), "")
                found.setdefault(call.func.id, {}).setdefault(reason, remedy or "")
    lines = ["# Messages", "", ("Every error is one message: where, what is wrong, what to do. `…` "
             "stands for names and numbers of your files. Search this page for your words."),
             ""]  # fmt: skip
    for status, title in ((1, "a check failed"), (2, "input or arguments are wrong"),
                          (3, "a tool is missing or failed")):  # fmt: skip
        lines += [f"## Exit status {status}: {title}", ""]
        for name, kind in known.items():
            if kind.exit_status == status and name in found:
                lines += [f"### {name}", "", (kind.__doc__ or "").splitlines()[0], "",
                          "| message | what helps |", "|---|---|"]  # fmt: skip
                rows = sorted(found[name].items(), key=_words)
                lines += [f"| {_cell(reason)} | {_cell(remedy)} |" for reason, remedy in rows]
                lines.append("")
    return "\n".join(lines)


def _words(row: tuple[str, str]) -> str:
    return row[0].lstrip(" …'").lower()


def _pattern(node: ast.expr) -> str:
    """Return a text with … for what is put in; empty if it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_pattern(part) if isinstance(part, ast.Constant) else "…"
                       for part in node.values)  # fmt: skip
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (_pattern(node.left) or "…") + (_pattern(node.right) or "…")
    return ""


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    for plain, spelled in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("*", "\\*"), ("_", "\\_"),
                           ("[", "\\["), ("`", "\\`")):  # fmt: skip
        flat = flat.replace(plain, spelled)
    return flat


def _report(name: str, board: str) -> str:
    """Return the report's page of an example as it is planned now."""
    folder = Path("examples") / name
    with contextlib.chdir(ROOT):  # the page names the model's file as it was given
        fixed = nh.load(folder / f"{name}.nnef.tgz").quantize(folder / "samples.npz")
    return fixed.schedule(board).page
