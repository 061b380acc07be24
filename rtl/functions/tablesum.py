"""Sums of functions of two activation streams."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from nnef_hw import parts
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.functions.table import words_by_address
from nnef_hw.rtl.streams.stream import join_beats, operand_streams

__all__ = ["TableSum"]


class TableSum(wiring.Component):
    """Add what a table says of each code of one stream to what another says of the second one's.

    Golden model: ``entries[0][a - lowest code] + entries[1][b - lowest code]``, exact.

    One beat per cycle; a stage waits only if the next one does. Both streams carry frames of the
    same length: ``last`` comes with the same beats, and that of ``a`` is passed on.

    Parameters
    ----------
    entries : tuple[list[int], list[int]]
        Value of every code of ``a`` and of ``b``, lowest code first.

    Members
    -------
    a, b : In(stream.Signature(beat_layout))
        One code per beat.
    o : Out(stream.Signature(sum_layout))

    Raises
    ------
    ValueError
        If a code has no entry, or an entry no code.
    """

    def __init__(self, part: parts.TableSum, *, entries):
        for name, values, bits in zip("ab", entries, part.in_bits, strict=True):
            if len(values) != 1 << bits:
                raise ValueError(
                    f"TableSum has {len(values)} entries for the {1 << bits} codes of {name}"
                )
        self.part = part
        self.entries = entries
        sums = sum_layout(part.acc_bits)
        super().__init__({**operand_streams(part), "o": Out(stream.Signature(sums))})

    def elaborate(self, platform):
        part = self.part
        m = Module()
        looked_up, registered, final = join_beats(m, platform, self.a, self.b, self.o,
                                                  stages=part.latency)
        values = []
        operands = zip("ab", self.entries, part.in_signed, part.memories, strict=True)
        for name, entries, is_signed, tiling in operands:
            words = words_by_address(entries, signed=is_signed, width=part.acc_bits)
            table = TiledMemory(tiling, words=words)
            m.submodules[f"table_{name}"] = table
            value = Signal(signed(part.acc_bits), name=f"value_{name}", reset_less=True)
            m.d.comb += [
                table.read_address.eq(getattr(self, name).payload.data[0].as_unsigned()),
                table.read_enable.eq(looked_up),
            ]
            with m.If(registered):
                m.d.sync += value.eq(table.read_data)
            values.append(value)
        with m.If(final):
            m.d.sync += self.o.payload.acc[0].eq(values[0] + values[1])
        return m
