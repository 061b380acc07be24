"""Two builds side by side."""

import copy
import io

from rich.console import Console

from nnef_hw.report.beside import Side, beside_tables, put_beside, render_beside
from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Figures


def beside(first, second):
    return put_beside(*(Side.of(from_json(report, Figures)) for report in (first, second)))


def shown(found):
    console = Console(file=io.StringIO(), width=120)
    for table in beside_tables(found, ("a", "b")):
        console.print(table)
    return console.file.getvalue()


def test_equal_builds_differ_in_nothing(tiny):
    found = beside(tiny, copy.deepcopy(tiny))
    assert all(row.first == row.second for row in found.figures)
    assert {row.ratio for row in found.figures} <= {None, 1.0}
    text = shown(found)
    assert "layers that differ" not in text
    assert "\N{MULTIPLICATION SIGN}" not in text


def test_what_differs_is_told_with_its_ratio(tiny):
    other = copy.deepcopy(tiny)
    other["cycles_per_inference"] = 4 * tiny["cycles_per_inference"]
    other["noise"] = {tiny["layers"][0]["name"]: 20.5}
    first, *rest = other["layers"]
    first["cycles"] *= 3
    other["layers"] = [first, *rest[:-1]]
    found = beside(tiny, other)
    [row] = [row for row in found.figures if row.name == "cycles per inference"]
    assert row.ratio == 4
    [gone] = [row for row in found.layers if row.name == rest[-1]["name"]]
    assert gone.cycles == (rest[-1]["cycles"], None)
    [changed] = [row for row in found.layers if row.name == first["name"]]
    assert changed.cycles == (first["cycles"] // 3, first["cycles"])
    assert changed.sqnr_db == (None, 20.5)
    text = shown(found)
    assert "\N{MULTIPLICATION SIGN}4" in text
    assert f"{first['cycles'] // 3:,} \N{RIGHTWARDS ARROW} {first['cycles']:,}" in text


def test_what_one_build_lacks_is_told_of_the_other(tiny):
    planned = tiny | {"accuracy": None, "fmax_mhz": None}
    for pair in ((tiny, planned), (planned, tiny)):
        rows = {row.name: row for row in beside(*pair).figures}
        assert {rows["fixed score"].first, rows["fixed score"].second} == {None, 0.98625}
        assert rows["fixed score"].ratio is None
    assert "fixed score" not in {row.name for row in beside(planned, planned).figures}


def test_the_page_holds_both_and_hostile_names(tiny):
    page = render_beside(beside(tiny, tiny), ("<b>one", "two"))
    assert "&lt;b&gt;one" in page
    assert "<b>one" not in page
    assert all(layer["name"] in page for layer in tiny["layers"])
