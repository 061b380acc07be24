"""Links of the page of passes lead somewhere."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "passes.md"


def test_every_link_leads_to_a_section_and_every_section_is_there_once():
    page = PAGE.read_text()
    sections = re.findall(r"^##+ (.+)$", page, re.MULTILINE)
    anchors = [section.lower().replace(" ", "-") for section in sections]
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\(#([^)]+)\)", page)) <= set(anchors)
