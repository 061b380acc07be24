"""Where the cells of a placed design are, by the layers that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nnef_hw.place.critical import OUTSIDE

__all__ = ["share_out"]


def share_out(places: Mapping[str, Any], owners: Mapping[str, str]) -> dict[str, Any]:
    """Return the places with ``regions`` by the names of owners instead of ``blocks``.

    Parameters
    ----------
    places
        ``size`` in columns and rows; ``path``, the [column, row] along the path that limits the
        clock; and ``blocks[instance][resource]``, a list of [column, row, number].
    owners
        Names by instances in the accelerator; what nobody owns is that of ``""``.
    """
    regions: dict[str, dict[str, list[list[int]]]] = {}
    for block, resources in places["blocks"].items():
        region = regions.setdefault(owners.get(block, OUTSIDE), {})
        for resource, found in resources.items():
            region.setdefault(resource, []).extend(found)
    return {"size": places["size"], "path": places["path"], "regions": regions}
