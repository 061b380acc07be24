"""Factors and shifts that bring the sums of all layers to codes, with one shift behind an array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineLayer

__all__ = ["Scales"]


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of all layers, as an array of some size applies them.

    Parameters
    ----------
    layers
        Layers of a network.
    shape
        Size of the array.
    existing_shift
        Shift of the engine that a bitstream has already; None to take one for these layers.
    """

    layers: tuple[EngineLayer, ...]
    shape: Shape
    existing_shift: int | None

    @cached_property
    def rounds_twice(self) -> bool:
        """Whether results have shifts of their own, before which some are rounded, too."""
        return any(layer.scale.shifts for layer in self.layers)

    @cached_property
    def shift(self) -> int:
        """Shift behind the factors of all layers; where results have their own, that before."""
        if self.existing_shift is not None:
            return self.existing_shift
        scales = [layer.scale for layer in self.layers]
        return max(x.fraction_bits if self.rounds_twice else x.shift for x in scales)

    def factors(self, layer: EngineLayer) -> list[int]:
        """Return the factors of everything of a layer that has a bias, for that shift."""
        if self.rounds_twice:
            return layer.per_result(layer.scale.factors(self.shift).mult, self.shape, 1)
        up = self.shift - layer.scale.shift
        return layer.per_result([mult << up for mult in layer.scale.mult], self.shape, 1 << up)

    def shifts(self, layer: EngineLayer) -> list[int]:
        """Return the shifts behind, of an engine whose results have their own."""
        found = layer.scale.factors(self.shift).shifts
        return layer.per_result(found, self.shape, min(found))
