"""Where the cells of a placed design are, by the layers that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.place.critical import OUTSIDE
from nnef_hw.report.model.device import Floorplan, Spots

__all__ = ["Places", "share_out"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where the cells of a placed design are, by the instances in the accelerator.

    Parameters
    ----------
    size, path
        As :class:`.Floorplan` has them.
    blocks
        Spots by instance and by resource.
    """

    size: tuple[int, int]
    path: tuple[tuple[int, int], ...]
    blocks: Mapping[str, Mapping[str, Spots]]


def share_out(places: Places, owners: Mapping[str, str]) -> Floorplan:
    """Return the places by the names of owners; what nobody owns is that of ``""``.

    Parameters
    ----------
    owners
        Names by instances in the accelerator.
    """
    regions: dict[str, dict[str, list[tuple[int, int, int]]]] = {}
    for block, resources in places.blocks.items():
        region = regions.setdefault(owners.get(block, OUTSIDE), {})
        for resource, found in resources.items():
            region.setdefault(resource, []).extend(found)
    return Floorplan(places.size, places.path, regions)
