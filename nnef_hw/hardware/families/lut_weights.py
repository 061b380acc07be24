"""LUTs of components in a family: data that ``scripts/measure/measure_resources.py`` writes.

``weights/FAMILY.json`` has, of every part, its weights, what they were fitted to, and the published
error, which a test compares with cross-validation. ``multiplier`` has what is measured of
multipliers in logic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

__all__ = ["LutWeights", "lut_weights"]

FOLDER = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class LutWeights:
    """LUTs of a family's components.

    Parameters
    ----------
    multiplier
        ``luts`` of a registered 8x8 multiplier in logic, and what tells those of other widths.
    parts
        LUTs per unit of every feature of a part: ``parts[part][feature]``.
    errors
        Mean error of each part's weights on measured cases that they were not fitted to; None of a
        part with one case.
    """

    multiplier: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]
    errors: Mapping[str, float | None]


def lut_weights(name: str) -> LutWeights:
    """Read the weights of the family with that name."""
    data = json.loads((FOLDER / f"{name}.json").read_text())
    parts = data["parts"].items()
    return LutWeights(
        MappingProxyType(data["multiplier"]),
        MappingProxyType({part: MappingProxyType(row["weights"]) for part, row in parts}),
        MappingProxyType({part: row["error"] for part, row in parts}),
    )
