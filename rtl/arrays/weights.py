"""Weights that an array reads: known ones in a read-only memory."""

from nnef_hw.parts.arrays.weights import WeightRom as WeightRomPart
from nnef_hw.rtl.arrays.multiplier import weight_code
from nnef_hw.rtl.base.memory import TiledMemory

__all__ = ["WeightRom"]


class WeightRom(TiledMemory):
    """Weights that multipliers with a common address read, in a memory or a table of LUTs.

    Golden model: ``weights[address]``, one cycle later, weight 0 lowest. The members are those of
    :class:`.TiledMemory` with a read port alone.

    Parameters
    ----------
    part : parts.WeightRom
    weights : ndarray of int, shape [depth, weights]
        The weights of every word.
    bits : int
        Width of a weight; of one bit it is a sign (:func:`.weight_code`).
    """

    unproved = "no stream: a memory"

    def __init__(self, part: WeightRomPart, *, weights, bits):
        depth, count = weights.shape
        words = [
            sum(weight_code(int(weight), bits) << n * bits for n, weight in enumerate(word))
            for word in weights
        ]
        [tiling] = part.tilings(depth, [count * bits])
        super().__init__(tiling, words=words, style=part.style)
        self.part = part
