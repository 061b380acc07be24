"""Tables of measured figures are those of docs/measured/; a bench replaces its own row alone."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def scripts():
    """The modules of records and of pages."""
    sys.path.insert(0, str(ROOT / "scripts" / "bench"))
    try:
        yield importlib.import_module("measured"), importlib.import_module("measured_pages")
    finally:
        sys.path.remove(str(ROOT / "scripts" / "bench"))


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
