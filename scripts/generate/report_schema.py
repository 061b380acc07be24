"""Write the schema of report.json, and the pages of JSON."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from nnef_hw.report.model import schema
from nnef_hw.report.model.checks import (
    BoardReport,
    BoardSpeed,
    BuildComparison,
    RunnerScore,
    Simulation,
)
from nnef_hw.report.model.exploration import Explored
from nnef_hw.report.model.network import BuildProgram, ModelCheck, ModelDescription
from nnef_hw.report.model.quantization import Quantization
from nnef_hw.report.model.report import Report

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "nnef_hw" / "report" / "model" / "report.schema.json"
PAGE = ROOT / "docs" / "report.md"
RESULTS = ROOT / "docs" / "json.md"
_RESULTS = {
    "sim": Simulation,
    "compare": BuildComparison,
    "bench-device": BoardSpeed,
    "score": RunnerScore,
    "board-report": BoardReport,
    "check": ModelCheck,
    "inspect": ModelDescription,
    "inspect BUILD": BuildProgram,
    "quantize": Quantization,
    "explore": Explored,
}
"""Classes of results by the command that prints them."""
_RESULTS_HEAD = """\
# JSON of commands

What commands print with `--json`, and in Python the values that methods return; classes in
`nnef_hw/report/model/` make this page, by `python scripts/generate/report_schema.py`. What `build
--json` prints is a [Report](report.md).

Later versions may have more keys. An *optional* one is left out where it says nothing. An
[Outlook](#outlook) also has `fits`; a [Point](#point) also `stage`, `timing_met`, and if it is
planned `inferences_per_second` and `lut_share`. `quantize` adds `output`, `calibration_samples` and
`hash` (of the fixed network), with `--advise` also `sensitivities`: `results_db`, `samples`, and
of each of `layers` its `name`, `narrow_db` and `wide_db`. `explore` adds its `folder`; `plan`
prints `model`, `calibrated`, `warnings` and `boards`, a list of [Outlook](#outlook).
"""
_HEAD = """\
# report.json

What `nnef-hw build` writes to `report.json` and prints with `--json`: a `Report` and its parts.
Their JSON Schema is `nnef_hw/report/model/report.schema.json`; classes there make both, by
`python scripts/generate/report_schema.py`.

Later versions may have more keys. An *optional* one is left out where it says nothing.
"""


def schema_text() -> str:
    """Return the text of the schema's file."""
    return json.dumps(schema.report_schema(), indent=1) + "\n"


def page() -> str:
    """Return the text of the page of reports."""
    return "\n".join((_HEAD, *_sections(Report)))


def results_page() -> str:
    """Return the text of the page of other results."""
    rows = [
        f"| `{name} --json` | [{kind.__name__}](#{kind.__name__.lower()}) |"
        for name, kind in _RESULTS.items()
    ]
    table = "\n".join(("| command | prints |", "|---|---|", *rows, ""))
    return "\n".join((_RESULTS_HEAD, table, *_sections(*_RESULTS.values())))


def _sections(*roots: type) -> Iterator[str]:
    found = schema.described_classes(*roots)
    for kind in schema.classes_of(*roots):
        yield "\n".join(_section(kind.__name__, found[kind.__name__]))


def _section(name: str, found: dict) -> Iterator[str]:
    yield f"## {name}\n\n{found['description']}\n"
    yield "| key | type | |\n|---|---|---|"
    rows = [
        (f"`{key}`", _type(value) + ("" if key in found.get("required", ()) else ", *optional*"),
         value["description"].replace("``", "`"))
        for key, value in found["properties"].items()
    ]  # fmt: skip
    for said, alike in groupby(rows, key=lambda row: row[2]):
        keys, types, _ = zip(*alike, strict=True)
        yield f"| {', '.join(keys)} | {'; '.join(dict.fromkeys(types))} | {said} |"
    yield ""


def _type(value: dict) -> str:
    """Say in words what a schema takes."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        return " or ".join(_type(each) for each in value["anyOf"])
    if "enum" in value:
        return " or ".join(f"`{each}`" for each in value["enum"])
    if value["type"] == "array":
        items = value.get("items") or value["prefixItems"][0]
        return f"list of {_type(items)}"
    if value["type"] == "object" and "additionalProperties" in value:
        return f"by name: {_type(value['additionalProperties'])}"
    return str(value["type"])


if __name__ == "__main__":
    SCHEMA.write_text(schema_text())
    PAGE.write_text(page())
    RESULTS.write_text(results_page())
