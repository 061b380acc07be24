"""Short names of layers in reports: without what exporters add to all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nnef_hw.architecture.timeline import Activity, Timeline
from nnef_hw.report.model.device import Floorplan
from nnef_hw.report.model.report import Report

__all__ = ["short_names", "with_short_names", "with_short_regions", "with_short_rows"]

_OUTPUT = re.compile(r"(?<=.)(?:_output_|:)0(?=_|$)")
"""What the exporters of PyTorch and TensorFlow put to the name of an operator's first result."""
_MADE = re.compile(_OUTPUT.pattern + r".*")
"""The same, with what passes add to the name of a tensor that they make of this result."""
_TWICE = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]\w*?)[_/]\1(?=[._][0-9])")
"""A sequence and its member, as in ``/features/features.3/Conv``, or as an identifier."""


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return names without the path that all but one share, and without the ends of exporters.

    Beside others of ``/model`` is ``/model/block/block.1/Conv_output_0`` called ``block.1/Conv``,
    and so is ``_model_block_block_1_Conv_output_0``, an identifier made of it, ``block_1_Conv``. A
    tensor that a pass made of a result, ``Conv_output_0_image``, is called ``Conv`` if no other is.
    A name that would be another one's stays as it is.
    """
    origins = Counter(_MADE.sub("", name) for name in names)
    plain = {
        name: _TWICE.sub(
            r"\1",
            (_MADE if origins[_MADE.sub("", name)] == 1 else _OUTPUT).sub("", name).lstrip("/_"),
        )
        for name in names
    }
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


def with_short_names(report: Report) -> tuple[Report, dict[str, str]]:
    """Return a report with short names of layers, and the model's own names by these."""
    short = short_names([layer.name for layer in report.layers])

    def named(name: str) -> str:
        return short.get(name, name)

    headroom, path = report.headroom, report.longest_path
    places, placed = report.memory_map, report.placed
    changed = replace(
        report,
        layers=tuple(replace(layer, name=named(layer.name)) for layer in report.layers),
        noise={named(name): value for name, value in report.noise.items()},
        headroom=replace(
            headroom,
            limits=tuple(replace(limit, name=named(limit.name)) for limit in headroom.limits),
            changes=tuple(replace(change, name=named(change.name)) for change in headroom.changes),
        ),
        loop=tuple(map(named, report.loop)) if report.loop else report.loop,
        longest_path=path and replace(
            path,
            parts=tuple(replace(part, name=_part(part.name, short)) for part in path.parts),
        ),
        memory_map=places and replace(
            places,
            steps=tuple(map(named, places.steps)),
            tensors=tuple(replace(tensor, name=named(tensor.name)) for tensor in places.tensors),
        ),
        placed=placed and replace(
            placed, layers={named(name): used for name, used in placed.layers.items()}
        ),
    )  # fmt: skip
    return changed, {found: name for name, found in short.items()}


def _part(name: str, short: Mapping[str, str]) -> str:
    """Return the name of a part of a layer, "layer, part"."""
    layer, comma, part = name.rpartition(", ")
    return short.get(name) or short.get(layer, layer) + comma + part


def with_short_rows(timeline: Timeline, full_names: Mapping[str, str]) -> Timeline:
    """Return a timeline with short names, of which :func:`with_short_names` gives the full ones."""
    short = {name: found for found, name in full_names.items()}

    def row(activity: Activity) -> Activity:
        return replace(activity, name=short.get(activity.name, activity.name))

    return replace(timeline, blocks=tuple(row(activity) for activity in timeline.blocks))


def with_short_regions(floorplan: Floorplan, full_names: Mapping[str, str]) -> Floorplan:
    """Return a floorplan with those names."""
    short = {name: found for found, name in full_names.items()}
    regions = {short.get(name, name): found for name, found in floorplan.regions.items()}
    return replace(floorplan, regions=regions)
