"""Interpolated tables: any function of one wide activation code, from block RAM and a product."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import lut_product
from nnef_hw.rtl.streams.stream import beat_layout, elastic_stages

__all__ = ["InterpolatedTable"]


class InterpolatedTable(wiring.Component):
    """Replace every code by a point of the line between two knots of a function.

    Golden model: :func:`nnef_hw.arithmetic.tables.look_up`.

    One beat per cycle; a stage waits only if the next one does. The upper 8 bits of a code address
    a memory of knots and of the differences to the next ones, of which every lane has its own. The
    others are multiplied with the difference in LUTs, in two halves.

    Parameters
    ----------
    knots : list[int]
        257 results, lowest code first.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Raises
    ------
    ValueError
        If there are not 257 knots, or one rises to the next one by more than ``rise_bits`` can say.
    """

    def __init__(self, part: parts.InterpolatedTable, *, knots):
        if len(knots) != (1 << part.index_bits) + 1:
            raise ValueError(
                f"InterpolatedTable needs {(1 << part.index_bits) + 1} knots, not {len(knots)}"
            )
        rises = [after - knot for knot, after in pairwise(knots)]
        if signed_bits(min(rises), max(rises)) > part.rise_bits:
            raise ValueError(f"InterpolatedTable rises {min(rises)}..{max(rises)} do not fit "
                             f"{part.rise_bits} bits")
        self.part = part
        self.words = [
            (rise & (1 << part.rise_bits) - 1) << part.out_bits | knot & (1 << part.out_bits) - 1
            for knot, rise in zip(knots, rises, strict=False)
        ]
        codes, results = (
            beat_layout(bits=bits, signed=signed, lanes=part.lanes)
            for bits, signed in ((part.in_bits, part.in_signed), (part.out_bits, part.out_signed))
        )
        super().__init__({"i": In(stream.Signature(codes)), "o": Out(stream.Signature(results))})

    def elaborate(self, platform):
        m = Module()
        enables, _ = elastic_stages(m, self.i.valid, self.o, stages=self.part.latency)
        m.d.comb += self.i.ready.eq(enables[0])
        last = [self.i.payload.last,
                *(Signal(name=f"last{n}", reset_less=True) for n in range(self.part.latency - 1)),
                self.o.payload.last]
        for enable, earlier, later in zip(enables, last, last[1:], strict=False):
            with m.If(enable):
                m.d.sync += later.eq(earlier)
        for lane in range(self.part.lanes):
            self._interpolate(m, platform, lane, enables)
        return m

    def _interpolate(self, m, platform, lane, enables):
        """Compute the results of a lane, stage by stage."""
        looked_up, registered, multiplied = enables[:3]
        code = self.i.payload.data[lane].as_unsigned()
        index = code[self.part.low_bits:]
        if self.part.in_signed:
            # The lowest code has the sign bit only.
            index = index ^ (1 << self.part.index_bits - 1)
        memory = TiledMemory(self.part.memory, words=self.words)
        m.submodules[f"lane{lane}"] = memory
        m.d.comb += [memory.read_address.eq(index), memory.read_enable.eq(looked_up)]

        def register(enable, value, name):
            held = Signal.like(value, name=f"{name}{lane}", reset_less=True)
            with m.If(enable):
                m.d.sync += held.eq(value)
            return held

        rest = register(looked_up, code[:self.part.low_bits], "rest")
        rest = register(registered, rest, "registered_rest")
        word = register(registered, memory.read_data, "word")
        # As in other multipliers of LUTs, the low half has an even number of digits.
        split = (self.part.low_bits + 3) // 4 * 2 if self.part.low_bits > 2 else 0
        low, high = (
            register(multiplied, product, name)
            for product, name in (
                (self._product(m, platform, rest[:split], word, f"low_product{lane}"), "low"),
                (self._product(m, platform, rest[split:], word, f"high_product{lane}"), "high"),
            )
        )
        knot = register(multiplied, word[:self.part.out_bits], "knot")
        # Nothing is added below the bit that rounds.
        rise = ((low >> split) + high) >> (self.part.low_bits - 1 - split)
        self._finish(m, lane, (Cat(Const(1, 1), knot) + rise) >> 1, enables)

    def _finish(self, m, lane, result, enables):
        """Give the point of a line, of which not all bits matter."""
        with m.If(enables[-1]):
            m.d.sync += self.o.payload.data[lane].eq(result)

    def _product(self, m, platform, digits, word, name):
        difference = word[self.part.out_bits:].as_signed()
        if not len(digits):
            return Const(0, signed(1))
        return lut_product(m, platform, digits, difference, name=name)
