"""Facts about an operator that every stage may ask for: its traits and its attributes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from types import UnionType

from nnef_hw.ir.operators.attributes import Attributes

__all__ = ["CanonicalOperator", "Operator", "Trait"]


class Trait(Enum):
    """Traits that passes, the quantizer and reports ask for: ``node.has(Trait.WINDOW)``."""

    TABLE = auto()
    """A function of one activation: a table in the fixed stage."""
    EXACT_TABLE = auto()
    """Its table must have every code: functions of steps have nothing between knots."""
    SHORT_OPERANDS = auto()
    """Looks its operands up: they have at most 8 bits."""
    ARITHMETIC = auto()
    """A function of two operands, element by element."""
    ELEMENTWISE = auto()
    """Every element of the result depends on the same element of each operand alone."""
    WEIGHTS = auto()
    """Products with a filter, and a bias: the second and the third operand."""
    WINDOW = auto()
    """Reads windows of rows and columns."""
    POOL = auto()
    """A window whose size, stride and padding have items for batch and channels, too."""
    CONTRACTS = auto()
    """Sums products of elements of two activations."""
    SUMS = auto()
    """Adds what a window holds: zeros around the image are as good as none."""
    ALONG_CHANNELS = auto()
    """Computes a pixel of the result from all channels of a pixel."""
    INDEX = auto()
    """The result is the place of an element, no real number."""
    INDEXED = auto()
    """The last operand is an integer, the place of a row; one beyond the last row is that."""

    MOVES = auto()
    """Nothing but another order, or another shape, of the elements."""
    RESHAPES = auto()
    """Nothing but another shape: the elements keep their order."""
    REARRANGES = auto()
    """Has every element of its input once; functions may be applied before it."""

    ENTERS_LOOP = auto()
    """The result has ``steps`` values for each of the first operand, one after the other."""
    LEAVES_LOOP = auto()
    """The result has a value for ``steps`` of the operand."""

    KEEPS_FORMAT = auto()
    """Every element is one of the first operand's, or a constant: the result has its format."""
    ONE_FORMAT = auto()
    """Hands codes of several operands on: they and the result have one format."""
    HEARS = auto()
    """Its first operand is samples of audio, of 16 bits with a sign."""
    FIXED_FORMAT = auto()
    """The format of the result does not depend on its values."""
    CLIPS = auto()
    """May keep its result in any limits at no cost, as ReLU does."""
    LETS_SCALES_THROUGH = auto()
    """A positive factor of a channel of the input is one of the result."""

    RAISES = auto()
    """Means the same on [1, C, L] as on [1, C, L, 1]."""
    ALIGNED = auto()
    """Every operand has the axes of the result."""

    PER_AXIS = auto()
    """Some of its attributes have an item for each axis of the image."""


@dataclass(frozen=True)
class Operator:
    """An operator of any stage.

    Parameters
    ----------
    name
        Name in NNEF, or in its extension (``library/extended.nnef``).
    """

    name: str
    traits: frozenset[Trait] = frozenset()

    def has(self, trait: Trait) -> bool:
        """Whether the operator has a trait."""
        return trait in self.traits


@dataclass(frozen=True, kw_only=True)
class CanonicalOperator(Operator):
    """An operator of the canonical and the fixed stage: hardware exists for it.

    Parameters
    ----------
    attributes
        Names of what every node of these stages has, beside ``requant`` and ``table``.
    parsed
        Class of its attributes as :meth:`~nnef_hw.ir.Node.attributes` returns them; None if they
        are read where one thing is done with them.
    requant
        Class of the ``requant`` that a node of the fixed stage has; None if it has none.
    hardware
        What becomes of it in streaming hardware, in the words of docs/operators.md.
    borders
        What may be around an image that it pads.
    place_axis
        Axis of the first operand that its integer operand counts along, if it is indexed.
    """

    attributes: frozenset[str]
    requant: type | UnionType | None
    hardware: str
    parsed: type[Attributes] | None = None
    borders: tuple[str, ...] = ()
    place_axis: int = 0
