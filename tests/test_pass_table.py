"""The page of passes in docs/ is the generated one."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def page():
    path = ROOT / "scripts" / "generate" / "pass_table.py"
    spec = importlib.util.spec_from_file_location("pass_table", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.make_page()


def test_page_of_passes_is_current(page):
    written = (ROOT / "docs" / "passes.md").read_text()
    assert written == page, "run python scripts/generate/pass_table.py"


def test_every_link_leads_to_a_section_and_every_section_is_there_once(page):
    sections = re.findall(r"^##+ (.+)$", page, re.MULTILINE)
    anchors = [section.lower().replace(" ", "-") for section in sections]
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\(#([^)]+)\)", page)) <= set(anchors)
