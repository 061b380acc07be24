"""Write the schema of report.json and its page in docs/: ``python scripts/report_schema.py``."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from nnef_hw.report.model import schema

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "nnef_hw" / "report" / "model" / "report.schema.json"
PAGE = ROOT / "docs" / "report.md"
_HEAD = """\
# report.json

What `nnef-hw build` writes to `report.json` and prints with `--json`: a `Report` and its parts.
Their JSON Schema is `nnef_hw/report/model/report.schema.json`; classes there make both, by
`python scripts/report_schema.py`.

Later versions may have more keys. An *optional* one is left out where it says nothing.
"""


def schema_text() -> str:
    """Return the text of the schema's file."""
    return json.dumps(schema.report_schema(), indent=1) + "\n"


def page() -> str:
    """Return the text of the page."""
    found = schema.report_schema()["$defs"]
    sections = (
        "\n".join(_section(kind.__name__, found[kind.__name__])) for kind in schema.report_classes()
    )
    return "\n".join((_HEAD, *sections))


def _section(name: str, found: dict) -> Iterator[str]:
    yield f"## {name}\n\n{found['description']}\n"
    yield "| key | type | |\n|---|---|---|"
    rows = [
        (f"`{key}`", _type(value) + ("" if key in found["required"] else ", *optional*"),
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
    if value["type"] == "array":
        items = value.get("items") or value["prefixItems"][0]
        return f"list of {_type(items)}"
    if value["type"] == "object" and "additionalProperties" in value:
        return f"by name: {_type(value['additionalProperties'])}"
    return str(value["type"])


if __name__ == "__main__":
    SCHEMA.write_text(schema_text())
    PAGE.write_text(page())
