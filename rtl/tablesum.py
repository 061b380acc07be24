"""Sums of functions of two activation streams."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.blockram import tile_memory
from nnef_hw.rtl.array import sum_layout
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.stream import beat_layout, join_beats

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
    in_bits, in_signed : tuple[int, int], tuple[bool, bool]
        Formats of the codes of ``a`` and ``b``.
    acc_bits : int
        Width of the sums, signed; every entry fits it too.
    ram : BlockRam
        The device's block RAM.

    Members
    -------
    a, b : In(stream.Signature(beat_layout))
        One code per beat.
    o : Out(stream.Signature(sum_layout))

    Attributes
    ----------
    latency : int
        Cycles from an accepted pair of beats to its ``o.valid``.
    """

    latency = 3

    def __init__(self, *, entries, in_bits, in_signed, acc_bits, ram):
        self.entries = tuple(map(list, entries))
        self.in_signed = tuple(in_signed)
        self.acc_bits = acc_bits
        self.ram = ram
        for name, words, bits in zip("ab", self.entries, in_bits, strict=True):
            if len(words) != 1 << bits:
                raise ValueError(
                    f"TableSum has {len(words)} entries for the {1 << bits} codes of {name}"
                )
        a_layout, b_layout = (beat_layout(bits=bits, signed=signed, lanes=1)
                              for bits, signed in zip(in_bits, in_signed, strict=True))
        super().__init__({
            "a": In(stream.Signature(a_layout)),
            "b": In(stream.Signature(b_layout)),
            "o": Out(stream.Signature(sum_layout(acc_bits))),
        })

    def elaborate(self, platform):
        m = Module()
        looked_up, registered, final = join_beats(m, self.a, self.b, self.o, stages=self.latency)
        mask = (1 << self.acc_bits) - 1
        values = []
        for name, words, is_signed in zip("ab", self.entries, self.in_signed, strict=True):
            if is_signed:
                # Addresses are the bits of a code: those below zero come last.
                half = len(words) // 2
                words = words[half:] + words[:half]
            table = TiledMemory(tile_memory(self.ram, len(words), self.acc_bits),
                                words=[word & mask for word in words])
            m.submodules[f"table_{name}"] = table
            value = Signal(signed(self.acc_bits), name=f"value_{name}", reset_less=True)
            m.d.comb += [
                table.read_address.eq(getattr(self, name).payload.data[0].as_unsigned()),
                table.read_enable.eq(looked_up),
            ]
            with m.If(registered):
                m.d.sync += value.eq(table.read_data)
            values.append(value)
        with m.If(final):
            m.d.sync += self.o.payload.acc.eq(values[0] + values[1])
        return m
