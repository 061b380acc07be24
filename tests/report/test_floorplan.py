"""The picture of a placed design."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.device import Floorplan
from nnef_hw.report.model.report import Report
from nnef_hw.report.pages.floorplan import draw_floorplan
from nnef_hw.report.pages.html import write_html

REPORT = SimpleNamespace(layers=[SimpleNamespace(name=name) for name in ("conv1", "pool1")])
FLOORPLAN = {
    "size": [3, 2],
    "path": [[0, 0], [2, 1]],
    "regions": {
        "": {"lut": [[0, 0, 2], [2, 1, 1]], "bram": [[1, 0, 1]]},
        "pool1": {"lut": [[0, 1, 3]]},
        "conv1": {"lut": [[0, 0, 6], [0, 1, 5]], "dsp": [[1, 1, 2]]},
    },
}


def rectangles(path):
    """Return (x, y, width, height) of the rectangles of a path."""
    found = re.findall(r"M(\S+) (\S+?)h(\S+?)v(\S+?)h(\S+?)z", path)
    return [tuple(float(n) for n in row[:4]) for row in found]


def test_there_is_none_without_a_placement():
    assert draw_floorplan(REPORT, None) is None


def test_layers_have_their_places_in_their_order():
    drawing = draw_floorplan(REPORT, from_json(FLOORPLAN, Floorplan))
    assert (drawing.width, drawing.height) == (24, 16)
    conv, pool, link = drawing.regions
    assert [region.name for region in drawing.regions] == ["conv1", "pool1", ""]
    # the lower left tile is full, so that what conv1 has above begins behind the gap of the link
    assert rectangles(conv.logic) == [(0, 10, 7, 6), (0, 3, 7, 5)]
    assert rectangles(pool.logic) == [(0, 0, 7, 3)]
    assert rectangles(link.logic) == [(0, 8, 7, 2), (16, 7, 7, 1)]
    assert rectangles(conv.blocks) == [(9, 1, 6, 6)]
    assert rectangles(link.blocks) == [(9, 9, 6, 6)]
    assert drawing.path == "4,12 20,4"
    assert (conv.figures, link.figures) == ("11 LUT, 2 DSP", "3 LUT, 1 block RAM")
    assert link.hue is None
    assert conv.hue != pool.hue


def test_areas_are_the_numbers_of_cells():
    for region in draw_floorplan(REPORT, from_json(FLOORPLAN, Floorplan)).regions:
        cells = sum(n for _, _, n in FLOORPLAN["regions"][region.name]["lut"])
        assert sum(height for *_, height in rectangles(region.logic)) == cells


def test_what_touches_is_one_rectangle():
    stacked = {"size": [1, 3], "path": [], "regions": {"conv1": {
        "lut": [[0, 0, 8], [0, 1, 8], [0, 2, 3]]}}}  # fmt: skip
    [region] = draw_floorplan(REPORT, from_json(stacked, Floorplan)).regions
    assert rectangles(region.logic) == [(0, 5, 7, 19)]


@pytest.mark.parametrize("has_floorplan", [False, True])
def test_page(tiny, timeline_of, tmp_path, has_floorplan):
    placed = {"link": {"lut": 3, "bram": 1}, "shared": None,
              "layers": {"conv1": {"lut": 11}, "pool1": {"lut": 3}}}  # fmt: skip
    report = tiny | {"placed": placed} if has_floorplan else tiny
    floorplan = from_json(FLOORPLAN, Floorplan) if has_floorplan else None
    write_html(from_json(report, Report), timeline_of(report), tmp_path / "x.html", floorplan)
    page = (tmp_path / "x.html").read_text("utf-8")
    found = re.search(r'<svg class="floorplan".*?</svg>', page, re.S)
    assert (found is not None) == has_floorplan
    if found is None:
        return
    groups = {
        group.get("id"): group[0].text
        for group in ET.fromstring(found[0]).iter("{http://www.w3.org/2000/svg}g")
    }
    assert set(re.findall(r'href="#(place-\d+)"', page)) == groups.keys()
    assert groups["place-0"] == "conv1: 11 LUT, 2 DSP"
    assert groups["place-2"] == "host link, border: 3 LUT, 1 block RAM"
    row = re.search(r'<span class="mono">conv1</span></th>\s*<td class="bar">.*?</tr>', page, re.S)
    assert re.findall(r'<td class="n">(.*?)</td>', row[0])[:2] == ["11", "310"]
    assert re.search(r'All</th><td></td><td class="n">4,412</td><td class="n">3,220</td>', page)
