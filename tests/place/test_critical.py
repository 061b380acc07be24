"""The longest path: the clock that limits, and the names of its parts."""

from types import SimpleNamespace

from nnef_hw.place.critical import name_parts, owners_of
from nnef_hw.place.nextpnr.timing import longest_path
from nnef_hw.report.model.device import LongestPath, PathPart

INSTANCES = {"relu1": "features.0/Relu", "pool1": "pool1"}


def path(begin, end, *hops):
    return {
        "from": begin, "to": end,
        "path": [{"from": {"cell": cell}, "to": {"cell": "x"}, "delay": ns} for cell, ns in hops],
    }  # fmt: skip


REPORT = {
    "fmax": {
        "core.clk": {"achieved": 50.0, "constraint": 24.0},
        "clk12": {"achieved": 100.0, "constraint": 12.0},
    },
    "critical_paths": [
        path("<async>", "posedge core.clk", ("core.rx", 99.0)),
        path("posedge clk12", "posedge clk12", ("pll_lock", 10.0)),
        path(
            "posedge core.clk", "posedge core.clk",
            ("core.accelerator.relu1.array.sum_LC", 1.5),
            ("core.accelerator.relu1.array.b_LC", 2.0),
            ("core.accelerator.relu1.valid_LC", 0.5), ("core.accelerator.pool1.window.c", 4.0),
            ("core.accelerator.input_skid.o_LC", 3.0), ("core.link.reply_LC", 8.0), ("led", 1.0),
        ),
    ],
}  # fmt: skip


def test_the_path_is_that_of_the_clock_that_limits():
    found = longest_path(REPORT)
    assert [cell for cell, _ in found][:2] == [
        "core.accelerator.relu1.array.sum_LC", "core.accelerator.relu1.array.b_LC",
    ]  # fmt: skip
    assert sum(ns for _, ns in found) == 20.0
    assert longest_path({"fmax": {}, "critical_paths": []}) == []


def test_parts_have_the_names_of_layers():
    named = name_parts(longest_path(REPORT), INSTANCES)
    assert named == LongestPath(
        20.0,
        (
            PathPart("features.0/Relu, array", 3.5),
            PathPart("features.0/Relu", 0.5),
            PathPart("pool1, window", 4.0),
            PathPart("input_skid", 3.0),
            PathPart("host link", 9.0),
        ),
    )
    assert name_parts([], INSTANCES) is None


def test_cells_of_nextpnr_count_for_those_before_them():
    cells = ["core.accelerator.relu1.array.a_LC", "$nextpnr_ICESTORM_LC_7",
             "core.accelerator.relu1.array.b_LC"]  # fmt: skip
    found = name_parts([[cell, 1.0] for cell in cells], INSTANCES)
    assert found.parts == (PathPart("features.0/Relu, array", 3.0),)
    [part] = name_parts([["$nextpnr_ICESTORM_LC_7", 1.0]], INSTANCES).parts
    assert part.name == "host link"


def test_an_instance_that_runs_several_layers_is_no_layer():
    stations = [SimpleNamespace(name=name, instance=instance) for name, instance in (
        ("conv1", "engine"), ("conv2", "engine"), ("softmax", "tail"))]  # fmt: skip
    assert owners_of(stations) == {"engine": "shared engine", "tail": "softmax"}
