"""Between the link's bytes and the accelerator's beats.

A code of at most 8 bits is one byte, a wider one two, low byte first; the codes of a beat follow
each other, lane 0 first. Signed codes are sign-extended towards the host.
"""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.host.protocol import LINK_BITS

__all__ = ["BeatSerializer", "PacketFeeder", "beat_bytes", "code_bytes"]


def code_bytes(layout):
    """Bytes of one code of a beat layout ``{"data": ArrayLayout(codes), "last": 1}``."""
    if not (isinstance(layout, data.StructLayout) and list(layout.members) == ["data", "last"]
            and isinstance(layout["data"].shape, data.ArrayLayout)):
        raise TypeError(
            f"beat must be a StructLayout of an array 'data' and a bit 'last', not {layout!r}")
    bits = Shape.cast(layout["data"].shape.elem_shape).width
    if not 1 <= bits <= LINK_BITS:
        raise ValueError(f"codes of a beat must have 1 to {LINK_BITS} bits, not {bits}")
    return (bits + 7) // 8


def beat_bytes(layout):
    """Bytes of one whole beat."""
    return code_bytes(layout) * layout["data"].shape.length


class PacketFeeder(wiring.Component):
    """Read an accepted packet from the buffer and hand it to the accelerator as beats.

    A beat may span packets. Takes about three cycles per byte when nothing stalls, far less than
    a byte takes on the line.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's input stream.

    Members
    -------
    start : In(1)
        Take over the packet described by the next three members; only while not ``busy``.
    bank : In(1)
        Half of the packet buffer.
    length : In(6)
        Payload bytes, at least one; the first is stored at this address, the last at address 1.
    end : In(1)
        The packet ends a frame: its last beat carries ``last``.
    busy : Out(1)
        A packet is being handed over.
    request, grant, address, read_data
        Read access: ``read_data`` belongs to ``address`` in the cycle after ``request & grant``.
    o : Out(stream.Signature(layout))
        Beats for the accelerator.

    Attributes
    ----------
    latency : int
        Cycles from ``start`` to the first beat of one byte, with every request granted.
    """

    latency = 3

    def __init__(self, layout):
        self.bytes = beat_bytes(layout)
        self.layout = layout
        super().__init__({
            "start": In(1),
            "bank": In(1),
            "length": In(6),
            "end": In(1),
            "busy": Out(1),
            "request": Out(1),
            "grant": In(1),
            "address": Out(7),
            "read_data": In(8),
            "o": Out(stream.Signature(layout)),
        })

    def elaborate(self, platform):
        m = Module()
        bank = Signal()
        end = Signal()
        remaining = Signal(6)
        missing = Signal(range(self.bytes), init=self.bytes - 1)
        beat = Signal(8 * self.bytes, reset_less=True)
        m.d.comb += self.address.eq(Cat(remaining, bank))

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))

            with m.State("IDLE"):
                m.d.sync += [bank.eq(self.bank), end.eq(self.end), remaining.eq(self.length)]
                with m.If(self.start):
                    m.next = "FETCH"

            with m.State("FETCH"):
                m.d.comb += self.request.eq(1)
                with m.If(self.grant):
                    m.d.sync += remaining.eq(remaining - 1)
                    m.next = "SHIFT"

            with m.State("SHIFT"):
                m.d.sync += beat.eq(Cat(beat, self.read_data)[8:])
                with m.If(missing == 0):
                    m.d.sync += missing.eq(self.bytes - 1)
                    m.next = "OFFER"
                with m.Else():
                    m.d.sync += missing.eq(missing - 1)
                    m.next = "IDLE"
                    with m.If(remaining != 0):
                        m.next = "FETCH"

            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "IDLE"
                    with m.If(remaining != 0):
                        m.next = "FETCH"

        m.d.comb += self.o.p.last.eq(end & (remaining == 0))
        width = 8 * code_bytes(self.layout)
        for lane in range(self.layout["data"].shape.length):
            m.d.comb += self.o.p.data[lane].eq(beat.word_select(lane, width))
        return m


class BeatSerializer(wiring.Component):
    """Split the accelerator's result beats into bytes.

    One byte per cycle; the beat is taken in the cycle after its last byte. ``i.ready`` is thus a
    register: nothing that the host's side does reaches the accelerator within a cycle.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's output stream.

    Members
    -------
    i : In(stream.Signature(layout))
        Beats of the accelerator.
    o : Out(stream.Signature(8))
        Their bytes.

    Attributes
    ----------
    latency : int
        Cycles from ``i.valid`` to the first byte.
    """

    latency = 0

    def __init__(self, layout):
        self.bytes = beat_bytes(layout)
        self.layout = layout
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        index = Signal(range(self.bytes))
        final = index == self.bytes - 1
        width = 8 * code_bytes(self.layout)
        beat = Signal(8 * self.bytes)
        for lane in range(self.layout["data"].shape.length):
            m.d.comb += beat.word_select(lane, width).eq(self.i.p.data[lane])

        m.d.comb += [
            self.o.valid.eq(self.i.valid & ~self.i.ready),
            self.o.payload.eq(beat.word_select(index, 8)),
        ]
        m.d.sync += self.i.ready.eq(0)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [index.eq(Mux(final, 0, index + 1)), self.i.ready.eq(final)]
        return m
