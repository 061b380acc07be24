"""Room for weights: known of a target before a network is quantized for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nnef_hw.errors import ShortageError
from nnef_hw.hardware.devices import Target

__all__ = ["WeightRoom", "name_largest"]

FEW = 3
"""Most layers that are named."""


@dataclass(frozen=True, slots=True)
class WeightRoom:
    """Memory in which an architecture keeps weights on a target.

    Parameters
    ----------
    arch
        Name of the architecture.
    bits
        Most bits of weights that the memory holds if nothing else is in it.
    memories
        What the memory consists of, as a plural: ``block RAMs``.
    """

    arch: str
    bits: int
    memories: str

    def check(self, model: str, weights: Mapping[str, int], target: Target) -> None:
        """Refuse weights that the memory cannot hold.

        Parameters
        ----------
        model
            Name of the network.
        weights
            Bits of every layer's weights.
        target
            Target whose memory this is.

        Raises
        ------
        ShortageError
            If all weights together have more bits than the memory.
        """
        total = sum(weights.values())
        if total <= self.bits:
            return
        layers = name_largest((name, bits // 8) for name, bits in weights.items())
        raise ShortageError(
            f"model {model!r} does not fit {target.name} ({target.device.name})",
            self.arch,
            f"its weights take {total // 8:,} bytes ({layers}), and all {self.memories} "
            f"of the device together hold {self.bits // 8:,}",
        )


def name_largest(amounts: Iterable[tuple[str, int]]) -> str:
    """Name the layers that take most of a resource, with their amounts."""
    ordered = sorted(amounts, key=lambda layer: -layer[1])[:FEW]
    texts = [f"{name} {amount:,}" for name, amount in ordered if amount > 0]
    *first, last = texts
    return f"most in {', '.join(first)} and {last}" if first else f"all in {last}"
