"""Interpolated tables: any function of one wide activation code, from block RAM and a product."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.blockram import tile_memory
from nnef_hw.numerics import signed_bits
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.primitives import lut_product
from nnef_hw.rtl.stream import beat_layout, elastic_stages
from nnef_hw.tables import TABLE_BITS, table_size

__all__ = ["InterpolatedTable"]


class InterpolatedTable(wiring.Component):
    """Replace every code by a point of the line between two knots of a function.

    Golden model: :func:`nnef_hw.tables.look_up`.

    One beat per cycle; a stage waits only if the next one does. The upper 8 bits of a code address
    a memory of knots and of the differences to the next ones, of which every lane has its own. The
    others are multiplied with the difference in LUTs, in two halves.

    Parameters
    ----------
    knots : list[int]
        257 results, lowest code first.
    in_bits, in_signed, out_bits, out_signed : int, bool
        Formats of codes and results; ``in_bits`` is more than 8.
    lanes : int
        Codes per beat.
    ram : BlockRam
        The device's block RAM.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Attributes
    ----------
    tiling : Tiling
        Memory of a lane.
    latency : int
        Cycles from an accepted beat to its ``o.valid``.
    """

    latency = 4

    def __init__(self, *, knots, in_bits, in_signed, out_bits, out_signed, lanes, ram):
        if in_bits <= TABLE_BITS:
            raise ValueError(f"InterpolatedTable in_bits must be over {TABLE_BITS}, not {in_bits}")
        if len(knots) != table_size(in_bits):
            raise ValueError(
                f"InterpolatedTable needs {table_size(in_bits)} knots, not {len(knots)}"
            )
        differences = [after - knot for knot, after in pairwise(knots)]
        self.difference_bits = signed_bits(min(differences), max(differences))
        self.words = [
            (difference & (1 << self.difference_bits) - 1) << out_bits
            | knot & (1 << out_bits) - 1
            for knot, difference in zip(knots, differences, strict=False)
        ]
        self.low_bits = in_bits - TABLE_BITS
        self.in_signed = in_signed
        self.out_bits = out_bits
        self.lanes = lanes
        self.tiling = tile_memory(ram, len(self.words), out_bits + self.difference_bits)
        super().__init__({
            "i": In(stream.Signature(beat_layout(bits=in_bits, signed=in_signed, lanes=lanes))),
            "o": Out(stream.Signature(beat_layout(bits=out_bits, signed=out_signed, lanes=lanes))),
        })

    def elaborate(self, platform):
        m = Module()
        enables, _ = elastic_stages(m, self.i.valid, self.o, stages=self.latency)
        m.d.comb += self.i.ready.eq(enables[0])
        last = [self.i.payload.last,
                *(Signal(name=f"last{n}", reset_less=True) for n in range(self.latency - 1)),
                self.o.payload.last]
        for enable, earlier, later in zip(enables, last, last[1:], strict=False):
            with m.If(enable):
                m.d.sync += later.eq(earlier)
        for lane in range(self.lanes):
            self._interpolate(m, platform, lane, enables)
        return m

    def _interpolate(self, m, platform, lane, enables):
        """Compute the results of a lane, stage by stage."""
        looked_up, registered, multiplied, added = enables
        code = self.i.payload.data[lane].as_unsigned()
        index = code[self.low_bits:]
        if self.in_signed:
            # The lowest code has the sign bit only.
            index = index ^ (1 << TABLE_BITS - 1)
        memory = TiledMemory(self.tiling, words=self.words)
        m.submodules[f"lane{lane}"] = memory
        m.d.comb += [memory.read_address.eq(index), memory.read_enable.eq(looked_up)]

        def register(enable, value, name):
            held = Signal.like(value, name=f"{name}{lane}", reset_less=True)
            with m.If(enable):
                m.d.sync += held.eq(value)
            return held

        rest = register(looked_up, code[:self.low_bits], "rest")
        rest = register(registered, rest, "registered_rest")
        word = register(registered, memory.read_data, "word")
        # As in other multipliers of LUTs, the low half has an even number of digits.
        split = (self.low_bits + 3) // 4 * 2 if self.low_bits > 2 else 0
        low, high = (
            register(multiplied, product, name)
            for product, name in (
                (self._product(m, platform, rest[:split], word, f"low_product{lane}"), "low"),
                (self._product(m, platform, rest[split:], word, f"high_product{lane}"), "high"),
            )
        )
        knot = register(multiplied, word[:self.out_bits], "knot")
        # Nothing is added below the bit that rounds.
        rise = ((low >> split) + high) >> (self.low_bits - 1 - split)
        with m.If(added):
            m.d.sync += self.o.payload.data[lane].eq((Cat(Const(1, 1), knot) + rise) >> 1)

    def _product(self, m, platform, digits, word, name):
        difference = word[self.out_bits:].as_signed()
        if not len(digits):
            return Const(0, signed(1))
        return lut_product(m, platform, digits, difference, name=name)
