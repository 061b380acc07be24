"""Maxima and sums over windows, channel by channel."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nnef_hw.arithmetic.images.windows import gather_taps, pad_border
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.tflite.numerics import TfliteAverage, TfliteRequant
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir.graph import Node
from nnef_hw.ir.layers.layer import Codes, Layer, layers
from nnef_hw.ir.operators import PoolAttributes

__all__ = ["MaxPool", "Pool", "SumPool"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool(Layer):
    """A function of the codes of a window, for every channel.

    Parameters
    ----------
    pool
        The window: size, stride, dilation, padding and border.
    """

    pool: PoolAttributes

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"pool": node.attributes(PoolAttributes)}

    @property
    def leaves_padding_out(self) -> bool:
        """Whether padding counts for nothing."""
        return self.pool.border == "ignore"

    @property
    @abstractmethod
    def pad_code(self) -> int:
        """Code of the padding for hardware that does not leave it out."""

    @cached_property
    def window(self) -> Window:
        """The window: a block for every channel, read by channel."""
        height, width, channels = self.image
        pool = self.pool
        return Window(
            height, width, channels, pool.size, pool.stride, pool.dilation, pool.padding,
            passes=channels, by_channel=True,
        )  # fmt: skip

    def _taps(self, x: Codes, value: int) -> tuple[Codes, ...]:
        pool = self.pool
        padded = pad_border(x, pool.padding, pool.border, value)
        return gather_taps(padded, pool.size, pool.stride, pool.dilation)


@layers("max_pool")
@dataclass(frozen=True, eq=False, kw_only=True)
class MaxPool(Pool):
    """The greatest code of every window."""

    @property
    def pad_code(self) -> int:
        return self.source.lo if self.leaves_padding_out else self.source.zero_point

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return np.asarray(np.maximum.reduce(self._taps(x, self.pad_code)))


@layers("avg_pool", "box")
@dataclass(frozen=True, eq=False, kw_only=True)
class SumPool(Pool):
    """The sum of every window's codes, requantized: an average, if that divides it.

    Parameters
    ----------
    requant
        How sums become codes.
    """

    requant: Requant | TfliteRequant | TfliteAverage

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {**super().read(node), "requant": node.attrs["requant"]}

    @property
    def zero(self) -> int:
        """Number to subtract from codes: TensorFlow Lite divides sums of codes as they are."""
        return 0 if isinstance(self.requant, TfliteAverage) else self.source.zero_point

    @property
    def pad_code(self) -> int:
        return self.zero if self.leaves_padding_out else self.source.zero_point

    @cached_property
    def inside(self) -> Codes:
        """Taps of every window that count: [rows, columns]."""
        counts = self.pool.counts(self.operands[0].shape)
        return counts if self.leaves_padding_out else np.full_like(counts, self.pool.taps)

    @property
    def counts(self) -> list[int]:
        """Numbers of taps that count, each once, the least first."""
        return [int(count) for count in np.unique(self.inside)]

    @property
    def positions(self) -> Codes:
        """Places in :attr:`counts` for every window, and so in ``factors.mult``."""
        return np.searchsorted(self.counts, self.inside)

    @property
    def factors(self) -> Requant | TfliteRequant:
        """Multiplications that give the codes, of sums of codes less :attr:`zero`."""
        requant = self.requant
        return requant.as_requant(self.counts) if isinstance(requant, TfliteAverage) else requant

    @cached_property
    def _of_position(self) -> Requant | TfliteRequant:
        requant = self.requant
        assert not isinstance(requant, TfliteAverage)
        mult = tuple(requant.mult[n] for n in self.positions.reshape(-1))
        return replace(requant, mult=mult)

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        zero_point, requant = self.source.zero_point, self.requant
        taps = self._taps(x, zero_point)
        total = np.zeros(taps[0].shape, np.int64)
        for tap in taps:
            total += tap
        total -= len(taps) * zero_point
        if isinstance(requant, TfliteAverage):
            return requant.apply(total, self.inside)
        if not self.leaves_padding_out:
            return requant.apply(total)
        flat = total.reshape(*total.shape[:2], -1)
        return self._of_position.apply(flat, axis=2).reshape(total.shape)
