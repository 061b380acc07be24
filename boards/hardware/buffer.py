"""Packet and result memory of the host link, in one block RAM of 512 bytes."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.beats import PacketFeeder
from nnef_hw.host.protocol import MAX_PAYLOAD

__all__ = ["PacketBuffer"]

DEPTH_BYTES = 512
IDENTITY_ADDRESS = 128
RING_BYTES = 256


class PacketBuffer(wiring.Component):
    """Hold one packet being received, one being handed to the accelerator, and its results.

    Addresses 0..127 are two halves of packet data, 128..191 the identity, 256..511 a ring of
    results. Results are taken in portions that stay in the ring until they are released.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's input stream.
    identity : bytes
        Payload of the reply to ``IDENTIFY``.

    Members
    -------
    store : In(1)
        Write ``store_data`` at ``store_index`` of the packet being received.
    store_index, store_data
        The first byte of a packet has its length as its index, the last one has 1.
    accept : In(1)
        Hand the received packet of ``length`` bytes over; only while not ``busy``.
    length, end
        The same as in :class:`.PacketFeeder`.
    busy : Out(1)
        The packet before is still being handed over.
    o : Out(stream.Signature(layout))
        Beats for the accelerator.
    i_result : In(stream.Signature(8))
        Bytes of the accelerator's results; up to 255 wait here, all but the last readable.
    take : In(1)
        Make a portion of the oldest results, at most one packet of them.
    release : In(1)
        Drop the portion taken last; not together with ``take``.
    portion : Out(6)
        Bytes of the portion, from the cycle after ``take``.
    rewind : In(1)
        Go to the first byte of the portion, or of the identity if ``fetch_identity``.
    fetch : In(1)
        Read the next byte of it; not together with ``store``.
    fetch_data : Out(8)
        That byte, in the cycle after ``fetch`` only.

    Attributes
    ----------
    latency : int
        Cycles from a result byte accepted until it can be taken.
    """

    latency = 2

    def __init__(self, layout, identity):
        if not 1 <= len(identity) <= MAX_PAYLOAD:
            raise ValueError(f"identity must have 1 to {MAX_PAYLOAD} bytes, not {len(identity)}")
        self.layout = layout
        self.identity = bytes(identity)
        super().__init__({
            "store": In(1),
            "store_index": In(6),
            "store_data": In(8),
            "accept": In(1),
            "length": In(6),
            "end": In(1),
            "busy": Out(1),
            "o": Out(stream.Signature(layout)),
            "i_result": In(stream.Signature(8)),
            "take": In(1),
            "release": In(1),
            "portion": Out(6),
            "rewind": In(1),
            "fetch": In(1),
            "fetch_identity": In(1),
            "fetch_data": Out(8),
        })

    def elaborate(self, platform):
        m = Module()
        init = bytes(IDENTITY_ADDRESS) + self.identity
        m.submodules.memory = buffer = memory.Memory(shape=8, depth=DEPTH_BYTES, init=init)
        write_port, read_port = buffer.write_port(), buffer.read_port()
        m.submodules.feeder = feeder = PacketFeeder(self.layout)
        wiring.connect(m, wiring.flipped(self.o), feeder.o)

        bank = Signal()
        m.d.sync += bank.eq(bank ^ self.accept)
        m.d.comb += [
            feeder.start.eq(self.accept),
            feeder.bank.eq(bank),
            feeder.length.eq(self.length),
            feeder.end.eq(self.end),
            self.busy.eq(feeder.busy),
        ]

        head = Signal(range(RING_BYTES))
        base = Signal(range(RING_BYTES))
        waiting = Signal(range(RING_BYTES))
        # one byte on its way to the ring: what is decided with it comes from registers alone
        room = Signal()
        result = Signal(8)
        pending = Signal()
        moving = pending & room
        writing = Signal()
        m.d.comb += [
            waiting.eq(head - base),
            writing.eq((self.store | moving) & ~self.fetch),
            self.i_result.ready.eq(~pending),
            write_port.en.eq(writing),
            write_port.addr.eq(Mux(self.store, Cat(self.store_index, bank), Cat(head, C(1, 1)))),
            write_port.data.eq(Mux(self.store, self.store_data, result)),
        ]
        # a byte may be written in the cycle in which this is found: two are left then
        m.d.sync += room.eq(waiting < RING_BYTES - 2)
        with m.If(self.i_result.ready):
            m.d.sync += [result.eq(self.i_result.payload), pending.eq(self.i_result.valid)]
        with m.If(moving & ~self.store & ~self.fetch):
            m.d.sync += [head.eq(head + 1), pending.eq(0)]
        with m.If(self.release):
            m.d.sync += [base.eq(base + self.portion), self.portion.eq(0)]
        with m.If(self.take):
            m.d.sync += self.portion.eq(Mux(waiting > MAX_PAYLOAD, MAX_PAYLOAD, waiting))

        # never a read and a write in one cycle: their collision would have to be emulated in LUTs
        pointer = Signal(9)
        with m.If(self.rewind):
            m.d.sync += pointer.eq(Mux(self.fetch_identity, IDENTITY_ADDRESS, Cat(base, C(1, 1))))
        with m.Elif(self.fetch):
            m.d.sync += pointer[:8].eq(pointer[:8] + 1)
        m.d.comb += [
            feeder.grant.eq(~self.fetch & ~writing),
            feeder.read_data.eq(read_port.data),
            self.fetch_data.eq(read_port.data),
            read_port.en.eq(self.fetch | (feeder.request & ~writing)),
            read_port.addr.eq(Mux(self.fetch, pointer, feeder.address)),
        ]
        return m
