"""Reports as values: their JSON, and what older and newer versions make of it."""

import copy
import dataclasses
import json

import pytest
from msgspec import UNSET

from nnef_hw.report.model.conversion import from_json, to_json
from nnef_hw.report.model.report import Figures, Insides, Origin, Report


def test_a_report_survives_json(any_report):
    report = from_json(any_report, Report)
    assert from_json(json.loads(json.dumps(to_json(report))), Report) == report
    assert dataclasses.replace(report, macs=-1) != report


def test_only_what_is_said_is_written(tiny):
    del tiny["warnings"]
    plain = to_json(from_json(tiny, Report))
    assert plain["warnings"] == []
    assert plain.keys() & {"loop", "memory", "memory_map", "shared", "tools"} == set()
    assert to_json(from_json(tiny | {"memory": None, "loop": []}, Report)).items() >= {
        ("memory", None)
    }
    assert "stall_cycles" not in plain["layers"][0]


@pytest.mark.parametrize("kind", [Figures, Insides, Origin, Report])
def test_no_default_is_lost_where_there_are_no_slots(kind):
    """Those are the class's, and msgspec writes what the value itself has."""
    defaults = {field.default for field in dataclasses.fields(kind)}
    assert defaults <= {dataclasses.MISSING, UNSET}


def test_a_newer_report_is_read_without_what_it_has_more(tiny):
    newer = copy.deepcopy(tiny)
    newer["weather"] = newer["layers"][0]["mood"] = "fine"
    assert from_json(newer, Report) == from_json(tiny, Report)


def test_older_reports_are_compared(tiny):
    older = copy.deepcopy(tiny)
    for key in ("roofs", "headroom", "boards", "link", "commands", "inputs", "simulation"):
        del older[key]
    for layer in older["layers"]:
        del layer["sources"]
    assert from_json(older, Figures).cycles_per_inference == tiny["cycles_per_inference"]
    with pytest.raises(ValueError, match="missing required field"):
        from_json(older, Report)


@pytest.mark.parametrize(
    ("change", "place"),
    [({"macs": "many"}, r"\$\.macs"), ({"layers": [{"name": "a"}]}, r"\$\.layers\[0\]")],
    ids=["type", "missing"],
)
def test_what_is_wrong_is_told_with_its_place(change, place, tiny):
    with pytest.raises(ValueError, match=place):
        from_json(tiny | change, Report)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused(value, tiny):
    report = dataclasses.replace(from_json(tiny, Report), clock_mhz=value)
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(report)
