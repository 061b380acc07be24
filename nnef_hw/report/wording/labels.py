"""Short names of layers in reports: without what exporters add to all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nnef_hw.architecture.architecture import Activity, Timeline

__all__ = ["short_names", "with_short_names", "with_short_regions", "with_short_rows"]

_OUTPUT = re.compile(r"(?<=.)(?:_output_|:)0$")
"""What the exporters of PyTorch and TensorFlow put to the name of an operator's first result."""
_TWICE = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]\w*?)[_/]\1(?=[._][0-9])")
"""A sequence and its member, as in ``/features/features.3/Conv``, or as an identifier."""


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return names without the path that all but one share, and without the ends of exporters.

    Beside others of ``/model`` is ``/model/block/block.1/Conv_output_0`` called ``block.1/Conv``,
    and so is ``_model_block_block_1_Conv_output_0``, an identifier made of it, ``block_1_Conv``. A
    name that would be another one's stays as it is.
    """
    plain = {name: _TWICE.sub(r"\1", _OUTPUT.sub("", name).lstrip("/_")) for name in names}
    head = _shared_head([name for name in plain.values() if name])
    short = {name: found.removeprefix(head) or name for name, found in plain.items()}
    taken = Counter(short.values())
    return {
        name: found if taken[found] == 1 and (found == name or found not in short) else name
        for name, found in short.items()
    }


def _shared_head(names: Sequence[str]) -> str:
    """Return the path with which all names begin; one may be the user's own, and begin apart."""
    paths = [
        [name[: place.end()] for place in re.finditer(r"[/.:]|_(?=[A-Za-z])", name)]
        for name in names
    ]
    firsts = Counter(path[0] for path in paths if path)
    first, count = max(firsts.items(), key=lambda item: item[1], default=("", 0))
    if count < max(2, len(names) - 1):
        return ""
    family = [name for name, path in zip(names, paths, strict=True) if path and path[0] == first]
    shared = set.intersection(*(set(path) for path in paths if path and path[0] == first))
    return max((h for h in shared if all(_is_left(x, h) for x in family)), key=len, default="")


def _is_left(name: str, head: str) -> bool:
    """Whether a name without the head says what it is: of an identifier more than one word."""
    rest = name.removeprefix(head)
    return bool(rest) and (head[-1] != "_" or "_" in rest)


def with_short_names(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a build's report with short names of layers; ``full_name`` has the model's own."""
    short = short_names([layer["name"] for layer in report["layers"]])

    def named(name: str) -> str:
        return short.get(name, name)

    def rows(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{**row, "name": named(row["name"])} for row in found]

    changed: dict[str, Any] = {
        "layers": [
            {**layer, "name": named(layer["name"]), "full_name": layer["name"]}
            for layer in report["layers"]
        ],
        "noise": {named(name): value for name, value in (report.get("noise") or {}).items()},
    }
    headroom = report["headroom"]
    changed["headroom"] = {
        **headroom, "limits": rows(headroom["limits"]), "changes": rows(headroom["changes"]),
    }  # fmt: skip
    if loop := report.get("loop"):
        changed["loop"] = [named(name) for name in loop]
    if path := report.get("longest_path"):
        changed["longest_path"] = {
            **path,
            "parts": [{**part, "name": _part(part["name"], short)} for part in path["parts"]],
        }
    if places := report.get("memory_map"):
        changed["memory_map"] = {
            **places, "steps": [named(name) for name in places["steps"]],
            "tensors": rows(places["tensors"]),
        }  # fmt: skip
    if placed := report.get("placed"):
        layers = {named(name): used for name, used in placed["layers"].items()}
        changed["placed"] = {**placed, "layers": layers}
    return {**report, **changed}


def _part(name: str, short: Mapping[str, str]) -> str:
    """Return the name of a part of a layer, "layer, part"."""
    layer, comma, part = name.rpartition(", ")
    return short.get(name) or short.get(layer, layer) + comma + part


def with_short_rows(timeline: Timeline, report: Mapping[str, Any]) -> Timeline:
    """Return a timeline with the names of the layers of a report that has short ones."""
    short = {layer["full_name"]: layer["name"] for layer in report["layers"]}

    def row(activity: Activity) -> Activity:
        return replace(activity, name=short.get(activity.name, activity.name))

    return replace(timeline, blocks=tuple(row(activity) for activity in timeline.blocks))


def with_short_regions(floorplan: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a floorplan with those names."""
    short = {layer["full_name"]: layer["name"] for layer in report["layers"]}
    regions = {short.get(name, name): found for name, found in floorplan["regions"].items()}
    return {**floorplan, "regions": regions}
