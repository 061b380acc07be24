"""Tables of measured figures are those of docs/measured/; a bench replaces its own row alone."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "scripts" / "bench"


@pytest.fixture(scope="module")
def scripts():
    """The modules of records and of pages."""
    sys.path.insert(0, str(BENCH))
    try:
        yield importlib.import_module("measured"), importlib.import_module("measured_pages")
    finally:
        sys.path.remove(str(BENCH))


def test_pages_have_tables(scripts):
    _, pages = scripts
    assert all("<!-- measured: " in page.read_text() for page in pages.PAGES)


def test_a_row_is_replaced_in_its_place(scripts, tmp_path, monkeypatch):
    measured, _ = scripts
    first, second, *_ = measured.read().values()
    monkeypatch.setattr(measured, "FILE", tmp_path / "measured" / "builds.json")
    for row in (first, second, replace(first, commit="12345678", old=True)):
        measured.record(row)
    assert list(measured.read().values()) == [replace(first, commit="12345678", old=True), second]
    assert len(json.loads(measured.FILE.read_text())) == 2


def test_rows_of_another_design_are_marked(scripts, tmp_path, monkeypatch):
    measured, pages = scripts
    row = next(row for row in measured.read().values() if (row.network, row.options)
               == ("digits_cnn", ""))  # fmt: skip
    monkeypatch.setattr(measured, "FILE", tmp_path / "builds.json")
    empty = "<!-- measured: full -->\n<!-- end of measured -->"
    assert "| digits_cnn" not in pages.with_tables(empty)
    for old in (False, True):
        measured.record(replace(row, old=old))
        page = pages.with_tables(empty)
        assert "| digits_cnn" in page
        assert (pages.OLD in page, pages.OLD_NOTE in page) == (old, old)


def test_a_row_without_a_design_is_old(scripts):
    measured, _ = scripts
    assert all(row.old for row in measured.read().values() if row.design is None)


def test_the_design_is_the_netlist_and_what_the_memory_chip_holds(scripts, tmp_path, monkeypatch):
    measured, _ = scripts
    manifest = SimpleNamespace(board="icebreaker")
    monkeypatch.setattr(measured, "read_manifest", lambda _: manifest)
    for folder in ("rtl", "board"):
        (tmp_path / folder).mkdir()
    verilog = "module top (input a, output b);\n    assign b = !a;\nendmodule\n"

    def digest(text, image=None):
        (tmp_path / "rtl" / "top.v").write_text(text)
        if image is not None:
            (tmp_path / "board" / "weights.bin").write_bytes(image)
        return measured.design_digest(tmp_path)

    first = digest(verilog)
    assert digest(f"// inverter\n{verilog}") == first
    found = {
        first,
        digest(verilog.replace("!", "")),
        digest(verilog, b"\1"),
        digest(verilog, b"\2"),
    }
    assert len(found) == 4


@pytest.mark.parametrize("design", ["of today", "of another day"])
def test_rows_are_marked_without_measuring(design, scripts, tmp_path, monkeypatch):
    measured, _ = scripts
    bench = importlib.import_module("bench")
    key, row = next((key, row) for key, row in measured.read().items() if key[0] == "digits_cnn")
    monkeypatch.setattr(measured, "FILE", tmp_path / "builds.json")
    measured.record(replace(row, design=design, old=design == "of today"))
    monkeypatch.setattr(bench, "_design", lambda _: "of today")
    monkeypatch.setattr(bench, "write_pages", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench", "--mark-old", "digits_cnn", "--out", str(tmp_path)])
    bench.main()
    assert measured.read() == {key: replace(row, design=design, old=design != "of today")}
