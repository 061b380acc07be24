"""Weights of LUTs: fitted to what was measured, validated by cases left out, written as data.

``nnef_hw/hardware/families/weights/FAMILY.json`` holds them. A weight that the fit confirms stays
as it is, so writing them again changes nothing unless something was measured anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measured_cases import measured_cases
from numpy.typing import NDArray

from nnef_hw.boards import find_board
from nnef_hw.hardware import families
from nnef_hw.hardware.families import Family

__all__ = [
    "COMPONENTS", "PartCases", "cases_of", "fitted_text", "published_error", "weights_file",
]  # fmt: skip

COMPONENTS, ELSEWHERE = "components", "elsewhere"
"""What weights are fitted to: the measured components, or other cases, such as whole designs."""
CONFIRMED = 0.01
"""Share of a case's LUTs by which weights and fit may differ: some were rounded to tenths."""
PLACES = 2
ERROR_PLACES = 3

Data = dict[str, Any]


@dataclass(frozen=True)
class PartCases:
    """What was measured of one part.

    Parameters
    ----------
    names
        Its features.
    features
        How much each case has of them [case, feature].
    found
        LUTs of each case but for its multipliers in logic.
    products
        LUTs of these multipliers, by the family's figure.
    """

    names: Sequence[str]
    features: NDArray[np.float64]
    found: NDArray[np.float64]
    products: NDArray[np.float64]

    @classmethod
    def of(cls, lines: Sequence[Mapping[str, Any]]) -> PartCases:
        """Return the cases of lines with ``features``, ``found`` and maybe ``products``."""
        names = list(lines[0]["features"])
        return cls(
            names,
            np.array([[line["features"][name] for name in names] for line in lines], float),
            np.array([line["found"]["lut"] for line in lines], float),
            np.array([line.get("products", 0) for line in lines], float),
        )

    def fitted(self, without: int | None = None) -> NDArray[np.float64]:
        """Return the weights with the least squares of relative errors, none below 0.

        Parameters
        ----------
        without
            A case that is left out.
        """
        kept = [n for n in range(len(self.found)) if n != without]
        return _least_squares(self.features[kept] / self.found[kept, None])

    def errors(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by which share of a case's LUTs weights miss it [case]."""
        found: NDArray[np.float64] = np.abs(self.features @ weights - self.found)
        return found / np.maximum(1, self.found + self.products)

    def cross_validated(self) -> float | None:
        """Return the mean error of cases by weights that do not know them; None of a lone case."""
        count = len(self.found)
        if count < 2:
            return None
        missed = [self.errors(self.fitted(without=n))[n] for n in range(count)]
        return float(np.mean(missed))


def _least_squares(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights >= 0 for which every row's sum is about 1."""
    kept = list(range(features.shape[1]))
    while True:
        solution = np.linalg.lstsq(features[:, kept], np.ones(len(features)), rcond=None)[0]
        if solution.min() >= 0:
            break
        kept.pop(int(np.argmin(solution)))
    weights = np.zeros(features.shape[1])
    weights[kept] = solution
    return weights


def cases_of(family: Family) -> dict[str, PartCases]:
    """Return what was measured of every part, but for cases that are not typical."""
    device = find_board(family.name).device
    lines: dict[str, list[Data]] = {}
    for case, found in measured_cases(family):
        if case.typical:
            products = case.part.product_luts(device)
            lines.setdefault(case.part.costs, []).append({
                "features": {**case.part.features, "fixed": 1}, "products": products,
                "found": {"lut": found.lut - products},
            })  # fmt: skip
    return {name: PartCases.of(found) for name, found in lines.items()}


def published_error(part: PartCases, entry: Mapping[str, Any]) -> float | None:
    """Return the error of weights on cases that they were not fitted to; None of a lone case."""
    if len(part.found) < 2:
        return None
    if entry["fitted to"] == COMPONENTS:
        return part.cross_validated()
    weights = np.array([entry["weights"][name] for name in part.names])
    return float(part.errors(weights).mean())


def weights_file(family: Family) -> Path:
    """Return the file of a family's weights."""
    return Path(families.__file__).parent / "weights" / f"{family.name}.json"


def fitted_text(family: Family, anew: Iterable[str] = ()) -> str:
    """Return the text of a family's file as the fit has it.

    Parameters
    ----------
    anew
        Parts that are fitted to components from now on, whatever they were fitted to before.
    """
    data = json.loads(weights_file(family).read_text())
    entries: dict[str, Data] = data["parts"]
    measured = cases_of(family)
    for name, part in measured.items():
        entry = entries.setdefault(name, {"fitted to": COMPONENTS, "error": None, "weights": {}})
        if name in anew:
            entry["fitted to"] = COMPONENTS
        if entry["fitted to"] == COMPONENTS:
            entry["weights"] = _confirmed(part, entry["weights"])
        error = published_error(part, entry)
        entry["error"] = None if error is None else _rounded_up(error)
    return _text(data | {"parts": {name: entries[name] for name in sorted(measured)}})


def _confirmed(part: PartCases, known: Mapping[str, float]) -> dict[str, float]:
    """Return the weights that are known if the fit confirms them, else those of the fit."""
    fit = part.fitted()
    if known.keys() == {*part.names}:
        apart = part.features @ (fit - [known[name] for name in part.names])
        if (np.abs(apart) <= CONFIRMED * np.maximum(1, part.found + part.products)).all():
            return dict(known)
    rounded = (round(weight, PLACES) for weight in fit.tolist())
    return dict(zip(part.names, rounded, strict=True))


def _rounded_up(error: float) -> float:
    scale = 10**ERROR_PLACES
    # a rounding of the processor's is no error
    return math.ceil(error * scale - 1e-6) / scale


def _text(data: Mapping[str, Any]) -> str:
    """Return JSON with a line for every part."""
    rows = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in data["parts"].items()]
    head = [f"{json.dumps(name)}: {json.dumps(x)}," for name, x in data.items() if name != "parts"]
    parts = ",\n".join(rows)
    return "\n".join(["{", *head, '"parts": {', parts, "}", "}"]) + "\n"
