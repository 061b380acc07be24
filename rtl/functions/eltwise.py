"""Element-wise operators of two activation streams."""

from typing import Any, NamedTuple

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.parts.functions.eltwise import TABLE_INPUTS
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.base.primitives import lut_product
from nnef_hw.rtl.streams.stream import (
    beat_layout,
    check_limits,
    code_range,
    join_beats,
    operand_streams,
)

__all__ = ["EltwiseExtremum", "EltwiseProduct", "EltwiseSum"]


class Term(NamedTuple):
    """Part of a sum: ``value * 2**exponent``, with the bounds of ``value``."""

    exponent: int
    lo: int
    hi: int
    value: Any


class EltwiseSum(wiring.Component):
    """Add or subtract two streams of different scales.

    Golden model: :meth:`nnef_hw.arithmetic.numerics.AddRequant.apply` of ``a - za`` and ``b - zb``.

    One beat per cycle. The products are not multiplied: every four bits of the two codes address a
    table of the sums of their constants, one LUT per bit of the table, and a pipelined tree adds
    the tables. Zero points and rounding are in the tables. A stage waits only if the next one does.

    Both streams carry frames of the same length: ``last`` comes with the same beats, and that of
    ``a`` is passed on.

    Parameters
    ----------
    requant : AddRequant
        Signed mults, shift, zero point, limits.
    in_zero_points : tuple[int, int]
        ``za`` and ``zb``.

    Members
    -------
    a, b : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))

    Raises
    ------
    ValueError
        If the limits of ``requant`` are not codes of the output.
    """

    def __init__(self, part: parts.EltwiseSum, *, requant, in_zero_points):
        check_limits(part, requant)
        self.part = part
        self.requant = requant
        # Everything that does not depend on the codes.
        self.constant = (1 << requant.shift - 1) + (requant.zero_point << requant.shift) - sum(
            z * mult for z, mult in zip(in_zero_points, requant.mult, strict=True))
        results = beat_layout(bits=part.out_bits, signed=part.out_signed, lanes=part.lanes)
        super().__init__({
            **operand_streams(part, lanes=part.lanes),
            "o": Out(stream.Signature(results)),
        })

    def elaborate(self, platform):
        m = Module()
        lo, hi = self.requant.lo, self.requant.hi
        first, *middle, final = join_beats(m, platform, self.a, self.b, self.o,
                                           stages=self.part.latency)
        for lane in range(self.part.lanes):
            terms = self._tables(m, lane, first)
            for level, enable in enumerate(middle):
                terms = _add_neighbours(m, terms, enable, name=f"sum{lane}_{level}")
            [total] = terms
            rounded = total.value >> self.requant.shift
            clipped = Mux(rounded < lo, lo, Mux(rounded > hi, hi, rounded))
            with m.If(final):
                m.d.sync += self.o.payload.data[lane].eq(clipped)
        return m

    def _tables(self, m, lane, enable):
        """Look up the sums of the constants of a lane's code bits, four bits at a time."""
        inputs = []
        for port, mult, bits, is_signed in zip((self.a, self.b), self.requant.mult,
                                               self.part.in_bits, self.part.in_signed, strict=True):
            code = port.payload.data[lane]
            for n in range(bits):
                weight = -mult if is_signed and n == bits - 1 else mult
                inputs.append((n, weight, code[n]))
        inputs.sort(key=lambda item: item[0])
        groups = [inputs[n:n + TABLE_INPUTS] for n in range(0, len(inputs), TABLE_INPUTS)]
        exponents = [group[0][0] for group in groups]

        terms = []
        for n, (group, exponent) in enumerate(zip(groups, exponents, strict=True)):
            # Every table takes the bits of the constant that lie below the next one's.
            constant = self.constant >> exponent
            if n + 1 < len(groups):
                constant &= (1 << exponents[n + 1] - exponent) - 1
            entries = [
                constant + sum(weight << position - exponent
                               for bit, (position, weight, _) in enumerate(group)
                               if select >> bit & 1)
                for select in range(1 << len(group))
            ]
            lo, hi = min(entries), max(entries)
            width = signed_bits(lo, hi)
            packed = sum((entry & (1 << width) - 1) << width * index
                         for index, entry in enumerate(entries))
            contents = Const(packed, width * len(entries))
            value = Signal(signed(width), name=f"table{lane}_{n}", reset_less=True)
            select = Cat(code_bit for _, _, code_bit in group)
            with m.If(enable):
                m.d.sync += value.eq(contents.word_select(select, width))
            terms.append(Term(exponent, lo, hi, value))
        return terms


class EltwiseProduct(wiring.Component):
    """Multiply two streams of one-code beats, in LUTs; a :class:`.Requantizer` follows.

    Golden model: ``(a - za) * (b - zb)`` for every code, exact.

    One beat per cycle; a stage waits only if the next one does. Both streams carry frames of the
    same length: ``last`` comes with the same beats, and that of ``a`` is passed on.

    Parameters
    ----------
    in_zero_points : tuple[int, int]
        ``za`` and ``zb``.

    Members
    -------
    a, b : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(sum_layout))
        Products, as wide as the largest one with these zero points.
    """

    def __init__(self, part: parts.EltwiseProduct, *, in_zero_points):
        self.part = part
        self.in_zero_points = in_zero_points
        self.differences = []
        for zero, bits, is_signed in zip(in_zero_points, part.in_bits, part.in_signed, strict=True):
            codes = code_range(bits, is_signed)
            self.differences.append(range(codes.start - zero, codes.stop - zero))
        corners = [a * b for a in self.differences[0][::len(self.differences[0]) - 1]
                   for b in self.differences[1][::len(self.differences[1]) - 1]]
        products = sum_layout(signed_bits(min(corners), max(corners)))
        super().__init__({**operand_streams(part), "o": Out(stream.Signature(products))})

    def elaborate(self, platform):
        m = Module()
        first, middle, final = join_beats(m, platform, self.a, self.b, self.o,
                                          stages=self.part.latency)
        factors = []
        for name, zero, difference in zip("ab", self.in_zero_points, self.differences,
                                          strict=True):
            factor = Signal(difference, name=f"difference_{name}", reset_less=True)
            with m.If(first):
                m.d.sync += factor.eq(getattr(self, name).payload.data[0] - zero)
            factors.append(factor)
        # A factor that is never negative has a digit less.
        digits, operand = sorted(factors, key=lambda factor: factor.shape().signed)
        if not operand.shape().signed:
            operand = Cat(operand, Const(0)).as_signed()
        # Both halves of the digits at once, then their sum.
        split = max(1, len(digits) // 4 * 2)
        upper = digits[split:].as_signed() if digits.shape().signed else digits[split:]
        products = []
        for name, half in (("low", digits[:split]), ("high", upper)):
            product = lut_product(m, platform, half, operand, name=f"{name}_product")
            register = Signal(product.shape(), name=name, reset_less=True)
            with m.If(middle):
                m.d.sync += register.eq(product)
            products.append(register)
        low, high = products
        with m.If(final):
            m.d.sync += self.o.payload.acc[0].eq(Cat(low[:split], (low >> split) + high))
        return m


class EltwiseExtremum(wiring.Component):
    """Lane-wise maximum or minimum of two streams of one format; golden model: ``max``, ``min``.

    One beat per cycle. Both streams carry frames of the same length: ``last`` comes with the same
    beats, and that of ``a`` is passed on.

    Members
    -------
    a, b : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))
    """

    def __init__(self, part: parts.EltwiseExtremum):
        self.part = part
        layout = beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes)
        super().__init__({
            "a": In(stream.Signature(layout)),
            "b": In(stream.Signature(layout)),
            "o": Out(stream.Signature(layout)),
        })

    def elaborate(self, platform):
        m = Module()
        [enable] = join_beats(m, platform, self.a, self.b, self.o, stages=self.part.latency)
        for lane in range(self.part.lanes):
            a, b = self.a.payload.data[lane], self.b.payload.data[lane]
            greater, less = (a, b) if self.part.greatest else (b, a)
            with m.If(enable):
                m.d.sync += self.o.payload.data[lane].eq(Mux(greater > less, a, b))
        return m


def _add_neighbours(m, terms, enable, *, name):
    """Register the sums of neighbouring terms, whose exponents ascend; an odd one waits."""
    sums = []
    for n in range(0, len(terms), 2):
        total = terms[n]
        if n + 1 < len(terms):
            low, high = terms[n:n + 2]
            apart = high.exponent - low.exponent
            upper = (low.value >> apart) + high.value
            total = Term(low.exponent, low.lo + (high.lo << apart), low.hi + (high.hi << apart),
                         Cat(low.value[:apart], upper))
        register = Signal(signed(signed_bits(total.lo, total.hi)), name=f"{name}_{n // 2}",
                          reset_less=True)
        with m.If(enable):
            m.d.sync += register.eq(total.value)
        sums.append(total._replace(value=register))
    return sums
