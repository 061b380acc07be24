"""The shared engine's units: parts that a tensor passes on its way from memory to memory."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import BEAT_BITS

__all__ = ["UnitConstants", "connect_fields", "write_table"]


def connect_fields(m, unit, component, parameters):
    """Let a unit's part have the fields of the instruction that it looks at."""
    m.d.comb += [getattr(component, port).eq(parameters[field]) for port, field in unit.ports]


def write_table(m, component, part, first, *, address, data, enable):
    """Let the table of a part come from a beat on, of those that are written one by one."""
    per_entry = -(-part.exponential_bits // BEAT_BITS)
    beats = per_entry * part.table_memory.depth
    place = Signal(range(beats), name="table_place")
    comes = enable & (address >= first) & (address < first + beats)
    m.d.comb += place.eq(address - first)
    entry, complete = place, comes
    if per_entry > 1:
        lower = Signal(BEAT_BITS, name="lower_beat", reset_less=True)
        with m.If(comes):
            m.d.sync += lower.eq(data)
        entry, data, complete = place[1:], Cat(lower, data), comes & place[0]
    m.d.comb += [
        component.table_address.eq(entry),
        component.table_data.eq(data),
        component.table_enable.eq(complete),
    ]


class UnitConstants(wiring.Component):
    """Find the constants of one channel after the other in the memory of biases and factors.

    Golden model: the constants of an instruction, from the first one on, over and over for each
    pixel; those of ``results`` channels are a word of the memory.

    Parameters
    ----------
    part : Engine
    channels : int
        Channels of a pixel.

    Members
    -------
    begin : In(1)
        An instruction begins in the cycle before; from three cycles on its first constant is there.
    first : In
        Where its constants begin.
    taken : In(1)
        In the next cycle that of the next channel is wanted.
    address : Out
    word : In
        What is there, a cycle later.
    constant : Out(constant_bits)
        The constant of this channel.
    """

    unproved = "it waits for nothing: a memory is read in turn"

    def __init__(self, part: Engine, *, channels):
        self.part = part
        self.channels = channels
        bits = part.layout.widths["constant"]
        super().__init__({
            "begin": In(1), "first": In(bits), "taken": In(1),
            "address": Out(bits), "word": In(part.array.results * part.constant_bits),
            "constant": Out(part.constant_bits),
        })

    def elaborate(self, platform):
        m = Module()
        results = self.part.array.results
        channel, following = Signal(range(self.channels)), Signal(range(self.channels))
        m.d.comb += following.eq(channel)
        with m.If(self.begin):
            m.d.comb += following.eq(0)
        with m.Elif(self.taken):
            m.d.comb += following.eq(Mux(channel == self.channels - 1, 0, channel + 1))
        m.d.sync += channel.eq(following)
        within = (results - 1).bit_length()
        m.d.comb += [
            self.address.eq(self.first + following[within:]),
            self.constant.eq(
                self.word.word_select(channel[:within], self.part.constant_bits)
                if within else self.word
            ),
        ]
        return m
