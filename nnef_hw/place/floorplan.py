"""Where nextpnr put the cells of a design, and how many of them each block of it has."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nnef_hw.hardware.families import Family
from nnef_hw.place.critical import ADDED, OUTSIDE, block_of, limiting_path

__all__ = ["describe_places", "place_of", "share_out"]

_BEL = re.compile(r"X(\d+)/?Y(\d+)")


def place_of(name: str) -> tuple[int, int] | None:
    """Return column and row in nextpnr's name of a place; None if it names none."""
    match = _BEL.match(name)
    return (int(match[1]), int(match[2])) if match else None


def describe_places(netlist: Path, report: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """Return where a design is, in tiles of the device.

    Parameters
    ----------
    netlist
        JSON that nextpnr writes of a placed design: each cell says its place, ``X3/Y4/lc5``.
    report
        nextpnr's, of the same placement.

    Returns
    -------
    dict
        ``size`` in columns and rows, as far as there are cells; ``path``, the [column, row] along
        the path that limits the clock; and ``blocks[instance][resource]``, a list of [column, row,
        number]. Instances are those in the accelerator, ``""`` is everything else: the host link.
        The numbers are nextpnr's: they add up to ``utilization``.
    """
    kinds = report["utilization"]
    units: dict[str, dict[str, int]] = {}
    blocks: dict[str, dict[str, Counter[tuple[int, int]]]] = {}
    columns = rows = 0
    for module in json.loads(netlist.read_text())["modules"].values():
        owners = _blocks(module)
        for name, cell in module["cells"].items():
            place = place_of(cell["attributes"].get("NEXTPNR_BEL", ""))
            if place is None:
                continue
            column, row = place
            columns, rows = max(columns, column + 1), max(rows, row + 1)
            kind = family.counted_as(cell["type"])
            if kind not in units:
                units[kind] = _units(kind, kinds, family)
            for resource, count in units[kind].items():
                found = blocks.setdefault(owners[name], {}).setdefault(resource, Counter())
                found[column, row] += count
    return {
        "size": [columns, rows],
        "path": [hop["from"]["loc"] for hop in limiting_path(report) if "loc" in hop["from"]],
        "blocks": {
            block: {
                resource: [[*place, count] for place, count in sorted(found.items())]
                for resource, found in sorted(resources.items())
            }
            for block, resources in sorted(blocks.items())
        },
    }


def _blocks(module: Mapping[str, Any]) -> dict[str, str]:
    """Return the block of every cell; what nextpnr adds to a carry chain is that of the chain."""
    cells = module["cells"]
    nets = {bit: net for net, row in module["netnames"].items() for bit in row["bits"]}
    bits = {
        name: {bit for pins in cell["connections"].values() for bit in pins if bit in nets}
        for name, cell in cells.items()
    }
    blocks = {name: block_of(name) for name in cells if not name.startswith(ADDED)}
    joined: dict[Any, list[str]] = {}
    for name in cells:
        for bit in bits[name]:
            if nets[bit].startswith(ADDED):
                joined.setdefault(bit, []).append(name)
    added = cells.keys() - blocks.keys()
    while added:
        found = {}
        for name in added:
            near = [block_of(nets[bit]) for bit in bits[name] if not nets[bit].startswith("$")]
            near += [
                blocks[other]
                for bit in bits[name]
                for other in joined.get(bit, ())
                if other in blocks
            ]
            if near:
                found[name] = max(near)
        if not found:
            break
        blocks |= found
        added -= found.keys()
    return blocks | dict.fromkeys(added, OUTSIDE)


def _units(kind: str, kinds: Iterable[str], family: Family) -> dict[str, int]:
    """Return how much of each resource a cell takes; ``kinds`` are all that nextpnr counts."""
    counts = dict.fromkeys(kinds, (0, 0)) | {kind: (1, 0)}
    return {name: used for name, (used, _) in family.utilization(counts).items() if used}


def share_out(places: Mapping[str, Any], owners: Mapping[str, str]) -> dict[str, Any]:
    """Return the places with ``regions`` by the names of owners instead of ``blocks``.

    Parameters
    ----------
    places
        What :func:`describe_places` returns.
    owners
        Names by instances in the accelerator; what nobody owns is that of ``""``.
    """
    regions: dict[str, dict[str, list[list[int]]]] = {}
    for block, resources in places["blocks"].items():
        region = regions.setdefault(owners.get(block, OUTSIDE), {})
        for resource, found in resources.items():
            region.setdefault(resource, []).extend(found)
    return {"size": places["size"], "path": places["path"], "regions": regions}
