"""Signals of log-mel features that passes, products and memories have in common."""

from amaranth import *

from nnef_hw.arithmetic.audio.log_spectrum import FACTOR_BITS, NUMBER_BITS
from nnef_hw.arithmetic.audio.logarithm import SEGMENT_BITS
from nnef_hw.parts.audio.log_mel import ROOT_BITS, TOP_BIT, LogMelWords
from nnef_hw.rtl.arrays.wide_product import WideProduct
from nnef_hw.rtl.base.memory import PacedMemory, TiledMemory

__all__ = [
    "HALF_BITS", "LOW_BITS", "SQUARE_BITS", "SUM_BITS", "WHOLE_BITS", "By", "Constant", "First",
    "LogMelSignals", "Operation", "Table", "Written",
]

SUM_BITS = TOP_BIT + 2
HALF_BITS = FACTOR_BITS - 1
WHOLE_BITS = FACTOR_BITS - 2
LOW_BITS = 16
SQUARE_BITS = 10
"""Lower bits of a number that is squared: the 16 above have a sign."""


class Constant:
    """Places of the constants that no other table has."""

    ZERO, UNIT, QUARTERS, HALVES, MULT, TWICE = range(6)


class Operation:
    """Operations on the sum of products, one per cycle."""

    HOLD, ADD, SHIFT, NORMALIZE = range(4)


class First:
    """First values of a sum; ``SHIFTED`` is the sum itself, 16 places higher.

    Of a floor, ``FLOOR`` is the upper part and ``JOINED`` the lower one, behind a ``SHIFTED`` sum.
    """

    ZERO, HALF, BIAS, PLACES, SHIFTED, FLOOR, JOINED = range(7)


class By:
    """Factors of a number: a constant, or a part of the number itself."""

    FACTOR, LOW, HIGH, SIGN = range(4)


class Written:
    """Values that are written: bits of the sum from 16, 14 or 41 on, or a sample."""

    ROUNDED, WHOLE, TOP, GIVEN = range(4)


class Table:
    """Tables of factors."""

    WINDOW, COSINE, WEIGHT, LOGARITHM, CONSTANT = range(5)


class LogMelSignals:
    """Signals by which passes say what happens in a cycle, and registers that several of them use.

    Parameters
    ----------
    part : parts.LogMel
    requant : LogMelRequant
        The front end.
    """

    def __init__(self, part, requant):
        self.part, self.requant = part, requant
        self.layout = LogMelWords.of(requant)
        if part.single_port:
            self.data = PacedMemory(
                part.single_port, depth=part.data_words, width=NUMBER_BITS)
        else:
            self.data = TiledMemory(part.data_memory, writable=True)
        self.words = TiledMemory(part.word_memory, words=self.layout.words)
        self.multiplier = WideProduct(
            a_bits=NUMBER_BITS, b_bits=FACTOR_BITS, in_dsp=part.in_dsp)
        self.bias = requant.bias + (requant.zero_point << requant.shift)
        self.places = places = (part.half - 1).bit_length()
        # the last cycle of a step
        self.moves = Signal()
        # a cycle of a pass: its step, and the element that it is at, without a stage's digit
        self.count = Signal(6)
        self.steps = Signal()
        self.inner_end = Signal()
        self.in_three, self.in_turn = Signal(), Signal()
        self.base = Signal(places)
        self.skip = Signal(places)
        self.wraps = Signal()
        # the digit of a stage: one bit, or the lower one of two
        self.low_digit, self.high_digit = Signal(places), Signal(places)
        self.is_pair = Signal()
        # the energy of a bin is taken for its root
        self.takes_root = Signal()
        self.root = Signal(ROOT_BITS)
        self.is_apart = Signal()
        self.low_bit, self.high_bit = Signal(), Signal()
        self.to_low, self.to_high = Signal(), Signal()
        # numbers that are read and written; without a read the number stays
        self.reads = Signal()
        self.reads_samples = Signal()
        self.is_mirrored, self.to_mirrored = Signal(), Signal()
        self.is_whole, self.to_whole = Signal(), Signal()
        self.to_element = Signal(places)
        self.piece, self.to_piece = Signal(), Signal()
        self.is_written = Signal()
        # products and sums
        self.by = Signal(2)
        self.kind = Signal(2)
        self.is_first = Signal()
        self.begin = Signal(range(First.JOINED + 1))
        self.is_less = Signal()
        self.slice = Signal(2)
        # factors
        self.table = Signal(3)
        self.constant = Signal(3)
        self.angle = Signal(places + 1)
        self.takes_sine = Signal()
        self.turn = Signal(places)
        self.weight = Signal(range(part.word_memory.depth))
        self.segment = Signal(SEGMENT_BITS)
        self.takes_base = Signal()
        self.is_power = Signal()
        self.is_idle = Signal()
        self.clears = Signal(init=int(not part.frames))
        self.places_left = Signal(range(TOP_BIT + 1))
        self.missing = Signal(range(part.window + 1), init=(
            part.window if part.frames else part.hop))
        self.ends = Signal()
        self.takes = Signal()

        # what one of these parts gives to others
        self.following = Signal(places)
        self.sum = Signal(signed(SUM_BITS), reset_less=True)
        self.sample = Signal(signed(NUMBER_BITS))
        # it stays 0 while samples are cleared
        self.result = Signal(NUMBER_BITS)
        self.place = Signal((part.kept - 1).bit_length())
        self.digits = self.high_digit | self.low_digit
        # a sine is the cosine of a quarter before; magnitudes repeat after a half
        self.quarter = Signal(2)
        self.is_negative = self.quarter[0] ^ self.quarter[1]
        self.band_end = Signal()
        self.gives = Signal()
