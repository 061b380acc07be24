"""Tables: any function of one activation code, or of code and channel, from block RAM."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.blockram import tile_memory
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.stream import beat_layout, elastic_stages

__all__ = ["ChannelTable", "Table"]


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
        self.words = _words(entries, in_bits=in_bits, in_signed=in_signed, out_bits=out_bits)
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
                storage.read_address.eq(_bits(self.i.payload.data[lane])),
                storage.read_enable.eq(self.i.ready),
                self.o.payload.data[lane].eq(storage.read_data),
            ]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.last.eq(self.i.payload.last)]
        return m


class ChannelTable(wiring.Component):
    """Replace every code by the entry of its channel: prelu, or constants per channel.

    Golden model: ``entries[channel][code - lowest code]``.

    One beat per cycle; a stage waits only if the next one does.

    Parameters
    ----------
    entries : list[list[int]]
        Result of every code, lowest code first, for every channel.
    in_bits, in_signed, out_bits, out_signed : int, bool
        Formats of codes and results.
    ram : BlockRam
        The device's block RAM.

    Members
    -------
    i, o : stream.Signature(beat_layout)
        One code per beat.

    Attributes
    ----------
    tiling : Tiling
        Its memory.
    latency : int
        Cycles from an accepted beat to its ``o.valid``.
    """

    latency = 2

    def __init__(self, *, entries, in_bits, in_signed, out_bits, out_signed, ram):
        self.channels = len(entries)
        self.words = [word for channel in entries
                      for word in _words(channel, in_bits=in_bits, in_signed=in_signed,
                                         out_bits=out_bits)]
        self.tiling = tile_memory(ram, len(self.words), out_bits)
        super().__init__({
            "i": In(stream.Signature(beat_layout(bits=in_bits, signed=in_signed, lanes=1))),
            "o": Out(stream.Signature(beat_layout(bits=out_bits, signed=out_signed, lanes=1))),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.storage = storage = TiledMemory(self.tiling, words=self.words)
        enables, _ = elastic_stages(m, self.i.valid, self.o, stages=self.latency)
        channel = Signal(range(self.channels))
        last = Signal()
        m.d.comb += [
            self.i.ready.eq(enables[0]),
            storage.read_address.eq(Cat(_bits(self.i.payload.data[0]), channel)),
            storage.read_enable.eq(enables[0]),
        ]
        with m.If(enables[0]):
            m.d.sync += last.eq(self.i.payload.last)
            with m.If(self.i.valid):
                m.d.sync += channel.eq(Mux(channel == self.channels - 1, 0, channel + 1))
        with m.If(enables[1]):
            m.d.sync += [
                self.o.payload.data.eq(storage.read_data),
                self.o.payload.last.eq(last),
            ]
        return m


def _words(entries, *, in_bits, in_signed, out_bits):
    """Return the entries by the code's bits: of signed codes the negative half comes second."""
    if len(entries) != 1 << in_bits:
        raise ValueError(f"Table needs {1 << in_bits} entries, not {len(entries)}")
    half = len(entries) // 2 if in_signed else 0
    mask = (1 << out_bits) - 1
    return [int(entry) & mask for entry in [*entries[half:], *entries[:half]]]


def _bits(code):
    """Return a code as an address."""
    return code.as_unsigned() if code.shape().signed else code
