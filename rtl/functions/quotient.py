"""Quotient of two activation streams, in TensorFlow Lite's integers."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from nnef_hw import parts
from nnef_hw.arithmetic.tflite.division import DIFFERENCE_BITS, FRACTION_BITS, SHIFT_BITS
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.functions.table import words_by_address
from nnef_hw.rtl.streams.stream import beat_layout, check_limits, code_range, operand_streams

__all__ = ["Quotient"]


class Quotient(wiring.Component):
    """Divide the codes of one stream by those of another one.

    Golden model: :meth:`nnef_hw.arithmetic.tflite.division.TfliteQuotient.apply` of ``a - za`` and
    ``b - zb``, or the other way round if ``part.inverts``.

    A memory has the reciprocal of every divisor. One multiplier, that takes a digit per cycle,
    multiplies it by the dividend, whose leading bits are shifted out, and then by the ratio of the
    scales; a barrel shifter does the rest. Both streams carry frames of the same length: ``last``
    comes with the same beats, and that of ``a`` is passed on.

    Parameters
    ----------
    requant : TfliteQuotient
        Ratio of the scales, zero point, limits.
    in_zero_points : tuple[int, int]
        ``za`` and ``zb``.

    Members
    -------
    a, b : In(stream.Signature(beat_layout))
        One code per beat.
    o : Out(stream.Signature(beat_layout))

    Raises
    ------
    ValueError
        If the limits of ``requant`` are not codes of the output.
    """

    unproved = "the solver finds no invariant in 240 s; tests simulate it under stalls"

    def __init__(self, part: parts.Quotient, *, requant, in_zero_points):
        check_limits(part, requant)
        self.part = part
        self.requant = requant
        self.in_zero_points = in_zero_points
        results = beat_layout(bits=part.out_bits, signed=part.out_signed, lanes=1)
        super().__init__({**operand_streams(part), "o": Out(stream.Signature(results))})

    def elaborate(self, platform):
        m = Module()
        part, requant = self.part, self.requant
        ports = self.a, self.b
        dividend, divisor = (ports[n].payload.data[0] for n in part.order)
        zero_point = self.in_zero_points[part.order[0]]

        m.submodules.reciprocals = reciprocals = TiledMemory(part.memory, words=self._words())
        m.d.comb += [
            reciprocals.read_address.eq(divisor.as_unsigned()),
            reciprocals.read_enable.eq(1),
        ]
        word = reciprocals.read_data
        places_at = part.reciprocal_bits
        is_negative = word[-1]

        # The dividend with the divisor's sign; then without leading bits, and how many there were.
        value = Signal(signed(DIFFERENCE_BITS + 1), name="dividend", reset_less=True)
        leading, places = _without_leading_bits(value)
        last = Signal(name="last", reset_less=True)
        moved = Signal(part.moved_bits, name="moved", reset_less=True)
        # How far the last product is shifted; if shifts wrap, by the low bits of this number.
        amount = Signal(SHIFT_BITS + 1, name="amount", reset_less=True)
        is_wrapped = amount[-1] & requant.wraps
        distance = amount[:SHIFT_BITS] if requant.wraps else amount

        # Each product is the operand times all digits, the lowest first.
        width = part.digit_bits
        of_dividend, of_ratio = (width * count for count in part.digits)
        operand = Signal(signed(FRACTION_BITS + 2), name="operand", reset_less=True)
        digits = Signal(max(of_dividend, of_ratio), name="digits", reset_less=True)
        step = Signal(range(max(part.digits)), name="step")
        is_ratio = Signal(name="is_ratio")
        product = Signal(signed(FRACTION_BITS + width + 3), name="product", reset_less=True)
        is_final = Signal(name="is_final")
        digit = Signal(signed(width + 1), name="digit")
        partial = Signal.like(product, name="partial")
        m.d.comb += [
            is_final.eq(step == Mux(is_ratio, *(count - 1 for count in part.digits[::-1]))),
            # The highest digit of a dividend has its sign.
            digit.eq(Cat(digits[:width], digits[width - 1] & is_final & ~is_ratio)),
            partial.eq((product + operand * digit) >> width),
        ]

        once = Signal(signed(FRACTION_BITS + 2), name="rounded_once", reset_less=True)
        shifted = Signal.like(once, name="shifted", reset_less=True)
        rounded = Signal(signed(FRACTION_BITS + 3), name="rounded")
        # A half; where the shift is wrapped, one, unless the number is negative.
        more = Cat(~is_wrapped, is_wrapped & ~shifted[-1])
        m.d.comb += rounded.eq(((shifted + more) >> 1) + requant.zero_point)

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [
                    self.a.ready.eq(self.b.valid),
                    self.b.ready.eq(self.a.valid),
                ]
                m.d.sync += [
                    value.eq(dividend - zero_point),
                    last.eq(self.a.payload.last),
                ]
                with m.If(self.a.valid & self.b.valid):
                    m.next = "LOOK UP"
            with m.State("LOOK UP"):
                m.d.sync += [
                    # Twice the reciprocal: the products of a dividend are halved once less.
                    operand.eq(Cat(Const(0, 1), word[:places_at], Const(1, 1))),
                    moved.eq(word[places_at:-1]),
                    value.eq(Mux(is_negative, -value, value)),
                ]
                m.next = "NORMALIZE"
            with m.State("NORMALIZE"):
                m.d.sync += [
                    digits.eq(leading << of_dividend - DIFFERENCE_BITS - 1),
                    amount.eq(moved + places + requant.least_shift),
                    product.eq(1 << of_dividend - 1),
                    step.eq(0),
                    is_ratio.eq(0),
                ]
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.sync += [
                    product.eq(partial),
                    digits.eq(digits >> width),
                    step.eq(step + 1),
                ]
                with m.If(is_final):
                    m.d.sync += [
                        operand.eq(partial),
                        digits.eq(requant.mult << of_ratio - FRACTION_BITS),
                        product.eq(1 << of_ratio - 1),
                        step.eq(0),
                        is_ratio.eq(1),
                    ]
                    with m.If(is_ratio):
                        m.next = "ROUND"
            with m.State("ROUND"):
                # Halves go away from 0: below it, twice the number is made less by one. The
                # product, which the last digit left there, is read from the operand.
                below = operand[-1] & ~is_wrapped
                m.d.sync += once.eq(Cat(below, operand - below).as_signed())
                m.next = "SHIFT"
            with m.State("SHIFT"):
                m.d.sync += shifted.eq(once >> distance)
                m.next = "LIMIT"
            with m.State("LIMIT"):
                m.d.sync += [
                    self.o.payload.data[0].eq(
                        Mux(rounded < requant.lo, requant.lo,
                            Mux(rounded > requant.hi, requant.hi, rounded))),
                    self.o.payload.last.eq(last),
                ]
                m.next = "OUTPUT"
            with m.State("OUTPUT"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "IDLE"
        return m

    def _words(self):
        """Reciprocals without their highest bit, places, and signs, by the divisor's code."""
        part, which = self.part, self.part.order[1]
        bits, is_signed = part.in_bits[which], part.in_signed[which]
        entries = []
        for code in code_range(bits, is_signed):
            difference = code - self.in_zero_points[which]
            factor, places = self.requant.reciprocals(max(abs(difference), 1))
            fraction = int(factor) - (1 << part.reciprocal_bits)
            entries.append(fraction | int(places) << part.reciprocal_bits
                           | (difference < 0) << part.reciprocal_bits + part.moved_bits)
        return words_by_address(entries, signed=is_signed, width=part.memory.width)


def _without_leading_bits(value):
    """Return a number whose highest bit beside the sign differs from that, and what it was moved.

    Numbers 0 and -1, which have no such bit, are moved by all their bits.
    """
    number, moves = value, []
    for count in (4, 2, 1, 1):
        top = number[-count - 1:]
        is_moved = (top == 0) | top.all()
        number = Mux(is_moved, Cat(Const(0, count), number[:-count]), number)[:len(value)]
        moves.append(Mux(is_moved, count, 0))
    return number.as_signed(), sum(moves)
