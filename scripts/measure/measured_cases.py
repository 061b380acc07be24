"""What was measured of every component, beside the case that it was measured for.

``measured/FAMILY.jsonl`` holds what ``measure_resources.py components FAMILY`` printed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from component_cases import component_cases

from nnef_hw.arithmetic.adders import AdderGraph
from nnef_hw.arithmetic.interpolation import Places
from nnef_hw.boards import find_board
from nnef_hw.hardware.devices import Resources
from nnef_hw.hardware.families import Family, lut_weights
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts import WeightRom

__all__ = ["FOLDER", "cases_to_measure", "describe", "measured_cases"]

FOLDER = Path(__file__).parent / "measured"
WEIGHTS = Path(lut_weights.__file__).parent / "weights"


def describe(case: Any) -> dict[str, Any]:
    """Return the parameters of a case's part as JSON values, but for its block RAM.

    Chips and their commands are named; of single-port RAM only whether there is any.
    """
    parameters = {field.name: getattr(case.part, field.name) for field in fields(case.part)}
    parameters.pop("ram", None)
    if "single_port" in parameters:
        parameters["single_port"] = parameters["single_port"] is not None
    parameters.pop("memory", None)  # a case of it is noted
    if isinstance(weights := parameters.pop("weights", None), WeightRom):
        parameters["weight_style"] = weights.style
    if isinstance(window := parameters.get("window"), Window):
        parameters["window"] = window.to_json()
    if isinstance(graph := parameters.get("graph"), AdderGraph):
        parameters["graph"] = {"inputs": graph.inputs, "adders": len(graph.adders)}
    described: dict[str, Any] = json.loads(json.dumps({**parameters, **case.note}, default=_plain))
    return described


def _plain(value: Any) -> Any:
    return asdict(value) if isinstance(value, Places) else value.name


def cases_to_measure(family: Family) -> list[Any]:
    """Return the cases of every part, or the sample of them that the family's weights name.

    Weights with ``"sample": n`` are of n cases of each part, spread over all of them.
    """
    cases = list(component_cases(find_board(family.name).device))
    most = json.loads((WEIGHTS / f"{family.name}.json").read_text()).get("sample", len(cases))
    parts: dict[str, list[Any]] = defaultdict(list)
    for case in cases:
        parts[case.part.costs].append(case)
    return [case for part in parts.values() for case in _spread(part, most)]


def _spread(cases: Sequence[Any], most: int) -> list[Any]:
    """Return the first case, the last one and others between them; one alone is the middle one."""
    if most == 1:
        return [cases[round((len(cases) - 1) / 2)]]
    step = max(1.0, (len(cases) - 1) / max(1, most - 1))
    return [cases[round(n * step)] for n in range(min(most, len(cases)))]


def measured_cases(family: Family) -> Iterator[tuple[Any, Resources]]:
    """Yield every case with what nextpnr packed it into.

    Raises
    ------
    ValueError
        If a case was not measured: the components have to be measured again.
    """
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with (FOLDER / f"{family.name}.jsonl").open() as file:
        for line in map(json.loads, file):
            lines[line["name"]].append(line)
    for case in cases_to_measure(family):
        described = describe(case)
        found = [line for line in lines[case.part.costs] if line["case"] == described]
        if not found:
            raise ValueError(f"{case.part.costs} of {family.name} was not measured: {described}")
        yield case, Resources(**found[0]["found"])
