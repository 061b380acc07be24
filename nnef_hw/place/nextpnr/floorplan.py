"""Where nextpnr put the cells of a design, and how many of them each block of it has."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from nnef_hw.arithmetic.records import JsonObject, JsonView
from nnef_hw.place.critical import ADDED, OUTSIDE, block_of
from nnef_hw.place.netlist.bels import place_of
from nnef_hw.place.nextpnr.dialect import Dialect
from nnef_hw.place.nextpnr.timing import limiting_path

__all__ = ["describe_places"]


def describe_places(netlist: Path, report: JsonView, dialect: Dialect) -> JsonObject:
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
            kind = dialect.counted_as(cell["type"])
            if kind not in units:
                units[kind] = _units(kind, kinds, dialect)
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


def _blocks(module: JsonView) -> dict[str, str]:
    """Return the block of every cell; what nextpnr adds to a carry chain is that of the chain."""
    cells = module["cells"]
    nets = {bit: net for net, row in module["netnames"].items() for bit in row["bits"]}
    bits = {
        name: {bit for pins in cell["connections"].values() for bit in pins if bit in nets}
        for name, cell in cells.items()
    }
    blocks = {name: block_of(name) for name in cells if not name.startswith(ADDED)}
    joined: dict[object, list[str]] = {}
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


def _units(kind: str, kinds: Iterable[str], dialect: Dialect) -> dict[str, int]:
    """Return how much of each resource a cell takes; ``kinds`` are all that nextpnr counts."""
    counts = dict.fromkeys(kinds, (0, 0)) | {kind: (1, 0)}
    return {name: used for name, (used, _) in dialect.utilization(counts).items() if used}
