"""Bounds of a design, and designs that there would be instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from nnef_hw.hardware.devices import Resources

__all__ = [
    "BoardOutlook",
    "Change",
    "Headroom",
    "Limit",
    "OtherArchitecture",
    "Roofs",
    "Shortage",
    "StepOfStream",
]


@dataclass(frozen=True, slots=True)
class Limit:
    """A layer that no folding makes fast enough.

    Parameters
    ----------
    name
        Name of the layer.
    cycles
        Cycles per frame with the fastest folding.
    codes
        Beats per frame of the busiest stream that it reads or gives.
    """

    name: str
    cycles: int
    codes: int


@dataclass(frozen=True, slots=True)
class Change:
    """A layer that needs another folding.

    Parameters
    ----------
    name
        Name of the layer.
    multipliers, then
        Multipliers as planned, and with that folding.
    """

    name: str
    multipliers: int
    then: int


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which a design wants more than there is.

    Parameters
    ----------
    resource
        ``lut``, ``dsp`` or ``bram``.
    wanted, usable
        How many the design wants, and how many of the device's it may use.
    """

    resource: str
    wanted: int
    usable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Cost of half the interval, or the layers and streams that forbid it.

    Parameters
    ----------
    wanted
        Half the interval.
    cycles
        What the slowest layer can come to: that, or more if there are limits.
    multipliers
        Multipliers of the whole design with the changes.
    limits
        Layers that no folding makes as fast as wanted.
    changes
        Layers that need another folding for ``cycles``.
    lacking
        Resources of which the device does not have enough for that.
    resources
        Resources of the whole design with the changes; absent where layers share one array.
    """

    wanted: int
    cycles: int
    multipliers: int
    limits: tuple[Limit, ...]
    changes: tuple[Change, ...]
    lacking: tuple[Shortage, ...]
    resources: Resources | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofs:
    """Bounds of the MACs per cycle.

    Parameters
    ----------
    dsp_multipliers
        Multipliers that all DSP blocks of the device make.
    multipliers
        Multipliers with the LUTs that the rest of the design leaves.
    macs_per_multiplier
        Most of any multiplier: 4 where the design has products of narrow weights packed, 2 where
        fast inner products can be, otherwise 1.
    input, streams
        MACs per beat of the input, and per beat of the busiest stream.
    """

    dsp_multipliers: int
    multipliers: int
    macs_per_multiplier: int
    input: float
    streams: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardOutlook:
    """The fastest design of the network on a board, at the board's usual clock.

    Parameters
    ----------
    board, device
        Names of the board and of its FPGA.
    clock_mhz
        Clock in MHz.
    cycles_per_inference, inferences_per_second
        Its least interval and the rate that follows; null where the network does not fit.
    with_twice
        The interval with twice as many of a resource, for those resources that end it here.
    floor
        Cycles below which no folding of some layer comes, whatever the device; null if not known.
    """

    board: str
    device: str
    clock_mhz: float
    cycles_per_inference: int | None = None
    inferences_per_second: float | None = None
    with_twice: Mapping[str, int]
    floor: int | None = None


@dataclass(frozen=True, slots=True)
class OtherArchitecture:
    """An architecture that was not taken.

    Parameters
    ----------
    arch
        Name of the architecture.
    cycles_per_inference, lut
        Cycles per frame and the estimate of LUTs; null if it is refused.
    refused
        Why it has no design; null if it has one.
    """

    arch: str
    cycles_per_inference: int | None
    lut: int | None
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOfStream:
    """Work of a step of ``--stream``, beside a window that is run as a whole.

    Parameters
    ----------
    rows
        Rows of a step, by input.
    window_rows
        Rows of a window, by input; null if the window is not known.
    window_macs
        MACs of a window; null if it is not known.
    window_cycles
        Cycles of a window on the same target; null where it does not fit or cannot be compared.
    """

    rows: Mapping[str, int]
    window_rows: Mapping[str, int] | None = None
    window_macs: int | None = None
    window_cycles: int | None = None
