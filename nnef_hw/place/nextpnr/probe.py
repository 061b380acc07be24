"""Which places a device has: nextpnr tells by placing as many cells as it has."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nnef_hw.arithmetic.records import JsonView
from nnef_hw.place.nextpnr.dialect import Dialect
from nnef_hw.place.nextpnr.run import run_nextpnr, utilisation_of
from nnef_hw.place.toolchain import Design

__all__ = ["all_places", "lone_cells", "places_of"]


def all_places(
    dialect: Dialect, design: Design, kinds: Sequence[str], top: str, folder: Path, log: Path
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Ask nextpnr to place as many cells as there are; return what there is, and all places.

    Parameters
    ----------
    design
        Whose device it is.
    kinds
        Types of cells.
    top
        Name of the netlists that are tried, and of the folder for them, below ``folder``.
    """
    probe = replace(design, top=top, constraints=None)
    own = folder / top
    source, placed = folder / f"{top}.json", own / "placed.json"

    def ask(numbers: Mapping[str, int], *options: str) -> dict[str, int]:
        source.write_text(lone_cells(numbers, top))
        run_nextpnr(dialect, probe, source.name, options, own, log)
        return {cell: there for cell, (_, there) in utilisation_of(log).items()}

    there = ask(dict.fromkeys(kinds, 1), "--pack-only")
    way, *_ = dialect.placings(1)
    name = placed.relative_to(folder).as_posix()
    ask({kind: there[kind] for kind in kinds}, *way, "--no-route", "--write", name)
    places = places_of(json.loads(placed.read_text()))
    shutil.rmtree(own)
    source.unlink()
    log.unlink()
    return there, places


def lone_cells(numbers: Mapping[str, int], top: str) -> str:
    """Return a mapped netlist, as text, of so many cells of each type and not a wire."""
    cells = {
        f"{kind}_{n}": {
            "type": kind, "parameters": {}, "attributes": {}, "port_directions": {},
            "connections": {},
        }
        for kind, number in numbers.items() for n in range(number)
    }  # fmt: skip
    module = {"attributes": {"top": "1"}, "ports": {}, "cells": cells, "netnames": {}}
    return json.dumps({"modules": {top: module}})


def places_of(netlist: JsonView) -> dict[str, list[str]]:
    """Return nextpnr's names of all places that a placed netlist uses, by types of cells."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in netlist["modules"].values():
        for cell in module["cells"].values():
            places[cell["type"]].append(cell["attributes"]["NEXTPNR_BEL"])
    return places
