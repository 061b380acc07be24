"""Layer and RMS normalization with constants from outside, for several layers in turn."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.normalization import OFFSET_BITS
from nnef_hw.rtl.functions.inverse_root import of_lane
from nnef_hw.rtl.functions.normalize import Normalize

__all__ = ["SharedNormalize"]


class SharedNormalize(Normalize):
    """Normalize the codes of pixels of a layer, then of another one.

    Golden model: that of :class:`.Normalize`. What ports say of a layer stays from its first code
    to its last result; there is none of the layer before then.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    epsilon : In(epsilon_bits)
        What is added to the variance.
    finer : In
        By how many bits the layer's fraction is shorter than the longest one.
    farther : In
        By how many bits its shift exceeds the least one.
    zero_point : In
        That of the codes; only if no mean is taken from them.
    lowest, below : In(out_bits)
        The layer's lowest result, and by how much its highest one is below the highest code.
    constant : In(lanes * constant_bits)
        Scales and offsets of the channels of the next beat, from the first one on, over and over.
    constant_taken : Out(1)
        They are taken in this cycle: in the next one those of the next beat are there.
    """

    unproved = "the solver would have to multiply; tests simulate it under stalls"

    def __init__(self, part: parts.SharedNormalize):
        self.part = part
        wiring.Component.__init__(self, {
            **self._streams(part),
            "epsilon": In(part.epsilon_bits),
            "finer": In(range(part.finer_steps + 1)),
            "farther": In(range(part.farther_steps + 1)),
            **({} if part.centered else {"zero_point": In(Shape(part.bits, part.signed))}),
            "lowest": In(part.out_bits),
            "below": In(part.out_bits),
            "constant": In(part.lanes * part.constant_bits),
            "constant_taken": Out(1),
        })

    def _epsilon(self):
        return self.epsilon

    def _finer(self):
        return self.finer

    def _zero_point(self):
        return self.zero_point

    def _scale(self, m, lane, take):
        if not lane:  # all move in step
            m.d.comb += self.constant_taken.eq(take)
        constant = self.constant.word_select(lane, self.part.constant_bits)
        return constant[: self.part.scale_bits], constant[self.part.scale_bits :]

    def _whole(self, product):
        return product >> self.part.least_shift - OFFSET_BITS >> self.farther

    def _offset(self, m, lane, advance, valid, beside):
        offset = Signal(signed(self.part.offset_bits), name=of_lane(lane)("offset"),
                        reset_less=True)
        with m.If(advance):
            m.d.sync += offset.eq(beside)
        return offset

    def _limits(self):
        return self.lowest, ~self.below
