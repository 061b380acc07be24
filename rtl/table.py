"""Table: any function of one activation code, from block RAM."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.blockram import tile_memory
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.stream import beat_layout

__all__ = ["Table"]


class Table(wiring.Component):
    """Replace every code by its entry; golden model: ``entries[code - lowest code]``.

    One beat per cycle; holds while ``o`` is stalled. Every lane has a memory of its own.

    Parameters
    ----------
    entries : list[int]
        Result of every code, lowest code first.
    in_bits, in_signed, out_bits, out_signed : int, bool
        Formats of codes and results.
    lanes : int
        Codes per beat.
    ram : BlockRam
        The device's block RAM.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Attributes
    ----------
    latency : int
        Cycles from an accepted beat to its ``o.valid``.
    """

    latency = 1

    def __init__(self, *, entries, in_bits, in_signed, out_bits, out_signed, lanes, ram):
        if len(entries) != 1 << in_bits:
            raise ValueError(f"Table needs {1 << in_bits} entries, not {len(entries)}")
        # Addressed by the code's bits: for signed codes the negative half comes second.
        half = len(entries) // 2 if in_signed else 0
        mask = (1 << out_bits) - 1
        self.words = [int(entry) & mask for entry in [*entries[half:], *entries[:half]]]
        self.out_bits = out_bits
        self.lanes = lanes
        self.ram = ram
        super().__init__({
            "i": In(stream.Signature(beat_layout(bits=in_bits, signed=in_signed, lanes=lanes))),
            "o": Out(stream.Signature(beat_layout(bits=out_bits, signed=out_signed, lanes=lanes))),
        })

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        for lane in range(self.lanes):
            storage = TiledMemory(tile_memory(self.ram, len(self.words), self.out_bits),
                                  words=self.words)
            m.submodules[f"lane{lane}"] = storage
            m.d.comb += [
                storage.read_address.eq(self.i.payload.data[lane].as_unsigned()
                                        if self.i.payload.data[lane].shape().signed
                                        else self.i.payload.data[lane]),
                storage.read_enable.eq(self.i.ready),
                self.o.payload.data[lane].eq(storage.read_data),
            ]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.last.eq(self.i.payload.last)]
        return m
