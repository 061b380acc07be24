"""Packet engine of the host link (docs/protocol.md): one request in, one reply out."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.buffer import PacketBuffer
from nnef_hw.boards.hardware.counters import COUNTER_LAYOUT, LAYER_COUNTS
from nnef_hw.boards.hardware.crc import SerialCrc
from nnef_hw.host.protocol import (
    CLOCK_COUNTS,
    COUNTS_BYTES,
    LAYER_COUNTS_BYTES,
    LOST_BITS,
    LOST_COUNTS,
    MAX_PAYLOAD,
    RATIO_BITS,
    REPLAY_BYTES,
    START,
    Reason,
    Reply,
    Request,
)
from nnef_hw.rtl.base.reset import WithReset

__all__ = ["PacketLink"]


class PacketLink(wiring.Component):
    """Answer the host's requests; pass data packets on only when their CRC holds.

    Half duplex: bytes that arrive while a reply is sent are ignored, the host waits for the reply
    before it sends again. A data or read request that repeats the sequence number of the request
    before it gets the same reply again and is not executed again.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's input stream.
    identity : bytes
        Payload of the reply to ``IDENTIFY``.
    idle_cycles : int
        Silence after which an unfinished packet is forgotten, in cycles or, ``with_ratio``, in
        ticks; a power of two.
    with_data : bool
        Serve ``DATA`` and ``DATA_END``: an input comes from the host. Otherwise they are unknown.
    with_replay : bool
        Serve ``REPLAY``; otherwise it is an unknown type.
    layers : int
        Layers that ``COUNTERS`` can be asked for, at most 255.
    with_memory : bool
        The accelerator needs a memory beside the FPGA.
    with_image : bool
        The host fills that memory: serve ``LOAD``.
    with_lost : bool
        A source loses samples: ``COUNTERS`` tell how many.
    with_texts : bool
        A session may be one of texts: the argument of its ``ABORT`` says so.
    with_ratio : bool
        The clock is known after routing: ``COUNTERS`` tell its ratio to the oscillator's.
    long_wires : bool
        A byte of a reply is chosen in one cycle and sent in the next.

    Members
    -------
    i_rx, o_tx : In, Out(stream.Signature(8))
        Bytes from and to the UART; ``i_rx`` is always ready, its bytes at least 16 cycles apart.
    o : Out(stream.Signature(layout))
        Beats for the accelerator.
    i_result : In(stream.Signature(8))
        Bytes of the accelerator's results; up to 255 wait here for the host.
    abort : Out(1)
        Restarts the accelerator: after a reset, and for one cycle when the host asks for it.
    restarted : In(1)
        The restart has reached the accelerator's end: the buffer is cleared.
    counts : In(COUNTER_LAYOUT)
        Read by ``COUNTERS``.
    lost : In(16)
        Only ``with_lost``: samples that are lost, read by ``COUNTERS`` too.
    layer : Out(range(layers + 1))
        Argument of the last request, for whose counts it asks; 0 is none.
    layer_counts : In(LAYER_COUNTS)
        They, a few cycles later.
    replay : Out(1)
        Begin a replay of ``replay_count`` frames, for one cycle.
    replay_count : Out(16)
        Frames.
    working : In(1)
        A frame is inside the accelerator, or a replay is running: no replay may begin.
    replaying : In(1)
        A replay is running: data has to wait.
    memory_error : In(1)
        Only ``with_memory``: that is not there, and frames are refused.
    loaded : In(1)
        Only ``with_image``: the memory has it all. Until then the bytes of ``LOAD`` leave by ``o``.
    ratio, tick : In(RATIO_BITS), In(1)
        Only ``with_ratio``: those of :class:`.ClockRatio`.
    texts : Out(1)
        Only ``with_texts``: the session is one of texts.

    Attributes
    ----------
    latency : int
        Cycles from the last byte of a request to the first byte of its reply.
    """

    latency = 13

    def __init__(
        self, layout, *, identity, idle_cycles, with_data=True, with_replay=False, layers=0,
        with_memory=False, with_image=False, with_lost=False, with_texts=False, with_ratio=False,
        long_wires=False,
    ):
        if idle_cycles < 2 or idle_cycles & (idle_cycles - 1):
            raise ValueError(f"idle_cycles must be a power of two, not {idle_cycles!r}")
        if with_lost and with_ratio:
            raise ValueError("COUNTERS tell what is lost, or the ratio of the clocks, not both")
        self.layout = layout
        self.identity = bytes(identity)
        self.idle_cycles = idle_cycles
        self.with_data = with_data
        self.with_replay = with_replay
        self.layers = layers
        self.with_memory = with_memory
        self.with_image = with_image
        self.with_lost = with_lost
        self.with_texts = with_texts
        self.with_ratio = with_ratio
        self.long_wires = long_wires
        super().__init__({
            "i_rx": In(stream.Signature(8)),
            "o_tx": Out(stream.Signature(8)),
            "o": Out(stream.Signature(layout)),
            "i_result": In(stream.Signature(8)),
            "abort": Out(1, init=1),
            "restarted": In(1),
            "counts": In(COUNTER_LAYOUT),
            "layer": Out(range(layers + 1)),
            "layer_counts": In(LAYER_COUNTS),
            "replay": Out(1),
            "replay_count": Out(16),
            "working": In(1),
            "replaying": In(1),
            **({"memory_error": In(1)} if with_memory else {}),
            **({"loaded": In(1)} if with_image else {}),
            **({"lost": In(LOST_BITS)} if with_lost else {}),
            **({"texts": Out(1)} if with_texts else {}),
            **({"ratio": In(RATIO_BITS), "tick": In(1)} if with_ratio else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = SerialCrc()
        buffer = PacketBuffer(self.layout, self.identity)
        m.submodules.buffer = WithReset(buffer, self.restarted)
        wiring.connect(m, wiring.flipped(self.o), buffer.o)
        wiring.connect(m, buffer.i_result, wiring.flipped(self.i_result))

        # the request: its fields, and what is wrong with it
        byte, arrived = self.i_rx.payload, self.i_rx.valid
        kind = Signal(range((Request.LOAD if self.with_image else Request.REPLAY) + 1))
        sequence = Signal(8)
        length = Signal(6)
        unknown = Signal()
        foreign = Signal()
        repeated = Signal()
        damaged = Signal()
        asks_texts = Signal()
        last_sequence = Signal(8)
        session = Signal()
        is_data = (kind == Request.DATA) | (kind == Request.DATA_END)
        is_ordered = is_data | (kind == Request.READ)
        if self.with_replay:
            is_ordered |= kind == Request.REPLAY
        needs_memory = is_ordered & self.memory_error if self.with_memory else C(0)
        if self.with_image:
            is_ordered |= kind == Request.LOAD

        # the reply, kept so that it can be repeated; a NAK of a damaged request leaves it alone
        reply = Signal(3)
        reason = Signal(3)
        reply_bytes = Signal(6)
        damaged_count = Signal(8)
        latency = Signal(32)
        interval = Signal(32)
        m.d.comb += [latency.eq(self.counts.latency), interval.eq(self.counts.interval)]
        counts = Cat(latency, interval, self.counts.frames, damaged_count)
        counts_bytes = COUNTS_BYTES
        if self.with_lost:
            counts, counts_bytes = Cat(counts, self.lost), LOST_COUNTS.size
        if self.with_ratio:
            ratio = Signal(32)
            m.d.comb += ratio.eq(self.ratio)
            counts, counts_bytes = Cat(counts, C(0, LOST_BITS), ratio), CLOCK_COUNTS.size
        most_bytes = counts_bytes
        if self.layers:
            asked = self.layer != 0
            counts = Mux(asked, self.layer_counts.as_value(), counts)
            counts_bytes = Mux(asked, LAYER_COUNTS_BYTES, counts_bytes)

        remaining = Signal(6)
        index = Signal(range(most_bytes))
        idle_timer = Signal(range(self.idle_cycles + 1))
        # A register of its own, which can stand where the reset of the accelerator begins.
        aborting = Signal()
        m.d.sync += [aborting.eq(0), self.abort.eq(aborting), idle_timer.eq(0)]

        m.d.comb += [
            self.i_rx.ready.eq(1),
            crc.i.payload.eq(byte),
            buffer.store_index.eq(remaining),
            buffer.store_data.eq(byte),
            buffer.length.eq(length),
            buffer.end.eq(kind == Request.DATA_END),
            buffer.fetch_identity.eq(reply == _short(Reply.IDENTITY)),
        ]
        with m.Switch(reply):
            with m.Case(_short(Reply.IDENTITY)):
                m.d.comb += reply_bytes.eq(len(self.identity))
            with m.Case(_short(Reply.RESULT)):
                m.d.comb += reply_bytes.eq(buffer.portion)
            with m.Case(_short(Reply.COUNTS)):
                m.d.comb += reply_bytes.eq(counts_bytes)
        with m.If(damaged):
            m.d.comb += reply_bytes.eq(0)

        def receive(following):
            """Take a byte into the CRC and go on, or forget the packet after a long silence."""
            m.d.comb += crc.i.valid.eq(arrived)
            m.d.sync += idle_timer.eq(idle_timer + (self.tick if self.with_ratio else 1))
            with m.If(idle_timer[-1]):
                m.next = "HUNT"
            with m.If(arrived):
                m.d.sync += idle_timer.eq(0)
                m.next = following

        # one byte waits for transmitter and CRC
        can_send = ~self.o_tx.valid & self.o_tx.ready & crc.i.ready
        skip_crc = Signal()
        sent = self.o_tx.valid & self.o_tx.ready
        with m.If(self.o_tx.ready):
            m.d.sync += self.o_tx.valid.eq(0)
        with m.If(sent):
            m.d.comb += [crc.i.valid.eq(~skip_crc), crc.i.payload.eq(self.o_tx.payload)]

        def send(value, following):
            """Offer a byte to the transmitter and go on."""
            with m.If(can_send):
                m.d.sync += [self.o_tx.valid.eq(1), self.o_tx.payload.eq(value)]
                m.next = following

        counting = reply == _short(Reply.COUNTS)
        payload = Mux(counting, counts.word_select(index, 8), buffer.fetch_data)

        def refuse(why):
            m.d.sync += [reply.eq(_short(Reply.NAK)), reason.eq(why)]

        with m.FSM():
            with m.State("HUNT"):
                m.d.comb += crc.start.eq(1)
                m.d.sync += damaged.eq(0)
                with m.If(arrived & (byte == START)):
                    m.next = "TYPE"

            with m.State("TYPE"):
                receive("SEQUENCE")
                with m.If(arrived):
                    m.d.sync += [kind.eq(byte), unknown.eq(byte[len(kind):] != 0)]

            with m.State("SEQUENCE"):
                receive("TENSOR")
                with m.If(arrived):
                    m.d.sync += [sequence.eq(byte), repeated.eq(byte == last_sequence)]

            with m.State("TENSOR"):
                receive("LENGTH")
                with m.If(arrived):
                    m.d.sync += foreign.eq(byte != 0)
                    if self.layers:
                        m.d.sync += self.layer.eq(byte)
                        with m.If(kind == Request.COUNTERS):
                            m.d.sync += foreign.eq(byte > self.layers)
                    if self.with_texts:
                        with m.If(kind == Request.ABORT):
                            m.d.sync += [foreign.eq(byte[1:] != 0), asks_texts.eq(byte[0])]

            with m.State("LENGTH"):
                receive("PAYLOAD")
                m.d.sync += [length.eq(byte), remaining.eq(byte)]
                with m.If(arrived):
                    with m.If(byte == 0):
                        m.next = "CRC_HIGH"
                    with m.Elif(byte > MAX_PAYLOAD):
                        m.d.sync += damaged.eq(1)
                        m.next = "START"

            with m.State("PAYLOAD"):
                receive("PAYLOAD")
                m.d.comb += buffer.store.eq(arrived)
                with m.If(arrived):
                    m.d.sync += remaining.eq(remaining - 1)
                    if self.with_replay:
                        m.d.sync += self.replay_count.eq(Cat(self.replay_count[8:], byte))
                    with m.If(remaining == 1):
                        m.next = "CRC_HIGH"

            with m.State("CRC_HIGH"):
                receive("CRC_LOW")

            with m.State("CRC_LOW"):
                receive("CHECK")

            with m.State("CHECK"):
                with m.If(crc.i.ready):
                    m.d.sync += damaged.eq(crc.crc != 0)
                    m.next = "JUDGE"

            with m.State("JUDGE"):
                with m.If(damaged | (repeated & session & is_ordered & ~unknown)):
                    m.next = "START"
                with m.Else():
                    m.d.comb += buffer.release.eq(1)
                    m.next = "EXECUTE"

            with m.State("EXECUTE"):
                m.d.sync += [last_sequence.eq(sequence), reason.eq(Reason.NONE)]
                m.next = "START"
                with m.If(unknown):
                    refuse(Reason.TYPE)
                with m.Elif(foreign):
                    refuse(Reason.TENSOR)
                with m.Elif(is_ordered & ~session):
                    refuse(Reason.SESSION)
                with m.Elif(needs_memory):
                    refuse(Reason.MEMORY)
                with m.Else():
                    with m.Switch(kind):
                        with m.Case(Request.IDENTIFY):
                            m.d.sync += reply.eq(_short(Reply.IDENTITY))
                        with m.Case(Request.ABORT):
                            m.d.sync += [aborting.eq(1), session.eq(1)]
                            if self.with_texts:
                                m.d.sync += self.texts.eq(asks_texts)
                            m.d.sync += reply.eq(_short(Reply.ACK))
                        with m.Case(Request.COUNTERS):
                            m.d.sync += reply.eq(_short(Reply.COUNTS))
                        if self.with_data:
                            with m.Case(Request.DATA, Request.DATA_END):
                                with m.If(length == 0):
                                    refuse(Reason.LENGTH)
                                with m.Elif(buffer.busy | self.replaying):
                                    m.d.sync += reply.eq(_short(Reply.BUSY))
                                with m.Else():
                                    m.d.comb += buffer.accept.eq(1)
                                    m.d.sync += reply.eq(_short(Reply.ACK))
                        with m.Case(Request.READ):
                            m.d.comb += buffer.take.eq(1)
                            m.d.sync += reply.eq(_short(Reply.RESULT))
                        if self.with_replay:
                            with m.Case(Request.REPLAY):
                                with m.If(length != REPLAY_BYTES):
                                    refuse(Reason.LENGTH)
                                with m.Elif(buffer.busy | self.working):
                                    m.d.sync += reply.eq(_short(Reply.BUSY))
                                with m.Else():
                                    m.d.comb += self.replay.eq(1)
                                    m.d.sync += reply.eq(_short(Reply.ACK))
                        if self.with_image:
                            with m.Case(Request.LOAD):
                                with m.If(self.loaded & (length != 0)):
                                    refuse(Reason.LOADED)
                                with m.Elif(buffer.busy | ~self.loaded & (length == 0)):
                                    m.d.sync += reply.eq(_short(Reply.BUSY))
                                with m.Else():
                                    m.d.comb += buffer.accept.eq(length != 0)
                                    m.d.sync += reply.eq(_short(Reply.ACK))
                        with m.Default():
                            refuse(Reason.TYPE)

            with m.State("START"):
                m.d.comb += [crc.start.eq(1), buffer.rewind.eq(1)]
                m.d.sync += index.eq(0)
                send(START, "SEND_TYPE")

            with m.State("SEND_TYPE"):
                m.d.comb += [crc.start.eq(1), skip_crc.eq(1)]
                send(Cat(Mux(damaged, _short(Reply.NAK), reply), C(0b10000, 5)), "SEND_SEQUENCE")

            with m.State("SEND_SEQUENCE"):
                send(sequence, "SEND_REASON")

            with m.State("SEND_REASON"):
                send(Mux(damaged, Reason.DAMAGED, reason), "SEND_LENGTH")

            with m.State("SEND_LENGTH"):
                m.d.sync += remaining.eq(reply_bytes)
                send(reply_bytes, "FETCH")

            # the byte stays readable for one cycle only: fetch it when it can leave at once
            with m.State("FETCH"):
                with m.If(remaining == 0):
                    m.next = "SEND_CRC_HIGH"
                with m.Elif(can_send):
                    m.next = "READ"

            with m.State("READ"):
                m.d.comb += buffer.fetch.eq(1)
                m.next = "CHOOSE" if self.long_wires else "SEND_PAYLOAD"

            if self.long_wires:
                chosen = Signal.like(payload, name="chosen", reset_less=True)
                m.d.sync += chosen.eq(payload)
                payload = chosen
                with m.State("CHOOSE"):
                    m.next = "SEND_PAYLOAD"

            with m.State("SEND_PAYLOAD"):
                send(payload, "FETCH")
                m.d.sync += [index.eq(index + 1), remaining.eq(remaining - 1)]

            with m.State("SEND_CRC_HIGH"):
                send(crc.crc[8:], "SEND_CRC_LOW")

            with m.State("SEND_CRC_LOW"):
                send(crc.crc[8:], "FINISH")

            with m.State("FINISH"):
                with m.If(can_send):
                    m.d.sync += damaged_count.eq(damaged_count + damaged)
                    m.next = "HUNT"
        return m


def _short(reply):
    """Low bits of a reply's type; the others are the same in all."""
    return reply & 7
