"""Front ends of networks that hear: from samples of audio to features of frames.

Samples are the rows of an image [1, 1, T, 1], frames those of the result [1, C, frames, 1].
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, Self

from nnef_hw.arithmetic.audio.log_bands import LogBands
from nnef_hw.arithmetic.audio.log_mel import LogMel, LogMelRequant
from nnef_hw.arithmetic.audio.log_spectrum import LogSpectrum
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.ir.operators.attributes import Attributes, Pair, padding_pairs
from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = [
    "OPERATORS", "FrontAttributes", "LogBandsAttributes", "LogMelAttributes",
    "LogSpectrumAttributes", "MicroFrontendAttributes",
]  # fmt: skip

MICRO_RATE = 16_000
"""Samples per second of a ``micro_frontend``, which takes no others."""


class FrontAttributes(Attributes):
    """Attributes of every front end of audio."""

    @property
    @abstractmethod
    def limits(self) -> tuple[float, float] | None:
        """The least and the greatest feature that a format needs; None if samples tell."""

    @property
    @abstractmethod
    def rate(self) -> int | None:
        """Samples per second; None if any will do."""

    @abstractmethod
    def frames(self, samples: int) -> int:
        """Return how many frames there are in so many samples."""


@dataclass(frozen=True, kw_only=True)
class LogSpectrumAttributes(FrontAttributes):
    """Attributes of logarithms of the power in bands.

    Parameters
    ----------
    front
        What is computed of samples.
    before
        Zeros in front of the samples: 1 or 0, and 0 without an emphasis, which alone reads it.
    mirrored
        Samples that are mirrored at the first one, and at the last one.
    """

    kind: ClassVar[type[LogSpectrum]]

    front: LogSpectrum
    before: int = 0
    mirrored: Pair = (0, 0)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the attributes that say what is computed of samples."""
        return tuple(field.name for field in fields(cls.kind))

    @classmethod
    def read(cls, attrs: AttributeMap) -> LogSpectrum:
        """Return the front end that attributes describe.

        Raises
        ------
        ValueError
            If the integers cannot compute it.
        """
        return cls.kind.from_json({name: attrs[name] for name in cls.names()})

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node."""
        rows, columns = padding_pairs(attrs["padding"])
        assert columns == (0, 0), f"padding {columns} beside samples"
        if attrs["border"] == "reflect":
            return cls(front=cls.read(attrs), mirrored=rows)
        assert rows[1] == 0, f"padding of {rows[1]} behind samples"
        return cls(front=cls.read(attrs), before=rows[0])

    @property
    def limits(self) -> tuple[float, float] | None:
        """Nothing: samples tell."""
        return None

    @property
    def rate(self) -> int | None:
        """Nothing: bands are bins, whatever the rate."""
        return None

    def frames(self, samples: int) -> int:
        """Return how many frames there are in so many samples."""
        whole = samples + self.before + sum(self.mirrored)
        return max(0, (whole - self.front.reach) // self.front.hop + 1)


@dataclass(frozen=True, kw_only=True)
class LogMelAttributes(LogSpectrumAttributes):
    """Attributes of a ``log_mel``."""

    kind = LogMel

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest feature."""
        return self.front.lowest, self.front.highest

    @property
    def rate(self) -> int:
        """Samples per second."""
        assert isinstance(self.front, LogMel)
        return self.front.rate


@dataclass(frozen=True, kw_only=True)
class LogBandsAttributes(LogSpectrumAttributes):
    """Attributes of a ``log_bands``, whose frequencies are bins of any rate."""

    kind = LogBands


@dataclass(frozen=True, kw_only=True)
class MicroFrontendAttributes(FrontAttributes):
    """Attributes of a ``micro_frontend``.

    Parameters
    ----------
    front
        What it computes of its samples.
    scale
        What a step of its integers stands for.
    """

    front: MicroFrontend
    scale: float

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node; an estimate of noise has no scale."""
        return cls(front=MicroFrontend(attrs["hop"]), scale=attrs.get("scale", 1.0))

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest feature."""
        return 0.0, self.front.highest * self.scale

    @property
    def rate(self) -> int:
        """Samples per second."""
        return MICRO_RATE

    def frames(self, samples: int) -> int:
        """Return how many frames there are in so many samples."""
        return self.front.frames(samples)


_FRONT = frozenset({Trait.FIXED_FORMAT})
_OF_SPECTRUM = _FRONT | {Trait.HEARS}

OPERATORS = (
    CanonicalOperator(
        "log_mel",
        _OF_SPECTRUM,
        attributes=frozenset({*LogMelAttributes.names(), "padding", "border"}),
        parsed=LogMelAttributes,
        requant=LogMelRequant,
        borders=("constant",),
        hardware="one multiplier in turn: window, transform, power, bands, logarithm",
    ),
    CanonicalOperator(
        "log_bands",
        _OF_SPECTRUM,
        attributes=frozenset({*LogBandsAttributes.names(), "padding", "border"}),
        parsed=LogBandsAttributes,
        requant=LogMelRequant,
        borders=("constant", "reflect"),
        hardware="the same, with a window and bands of its own",
    ),
    CanonicalOperator(
        "micro_frontend",
        _FRONT,
        attributes=frozenset({"hop", "scale"}),
        parsed=MicroFrontendAttributes,
        requant=Requant,
        hardware="a program: window, transform, filters, noise, gain, logarithm",
    ),
    CanonicalOperator(
        "micro_frontend_step",
        _FRONT,
        attributes=frozenset({"hop", "scale"}),
        parsed=MicroFrontendAttributes,
        requant=Requant,
        hardware="the same, whose noise stays in it",
    ),
    CanonicalOperator(
        "micro_noise",
        _FRONT,
        attributes=frozenset({"hop"}),
        parsed=MicroFrontendAttributes,
        requant=None,
        hardware="stays in the front end that reads it",
    ),
)
