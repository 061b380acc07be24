"""The choice of a token by the scores that a network gives each of them."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["WEIGHT_BITS", "TokenChooser"]

WEIGHT_BITS = 16
RANDOM_BITS = 32


class TokenChooser(wiring.Component):
    """Choose the greatest score of a frame, or one at random by weights of a softmax.

    Golden model: :func:`nnef_hw.arithmetic.sampling.choose_code`. It takes a score per cycle. The
    greatest one is known in the cycle after the last score. At random, two passes over the scores
    follow, which are kept in a memory: one adds up their weights, one finds the place up to which
    they sum up to more than a threshold; between them the threshold is computed, a bit per cycle.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's output stream.
    tokens : int
        Scores of a frame.
    channels : int
        Codes of a pixel; its beats have room for them and perhaps some more.
    is_choice : bool
        A frame is one code, the token that the network itself has chosen.

    Members
    -------
    i : In(stream.Signature(layout))
        Beats of the accelerator.
    wanted : In(1)
        The frame's choice is wanted. It counts in the cycle of ``ended``.
    ended : Out(1)
        The last code of a frame is taken.
    sampled : In(1)
        Choose at random. Members from here on are missing if ``is_choice``.
    random : In(32)
        The number that decides, from the cycle after ``ended`` until a token is taken.
    store : In(1)
        Keep ``weight`` at ``place``: the weight of a score that is so far below the greatest one.
    place, weight : In
    o : Out(stream.Signature(range(tokens)))
        The token.

    Attributes
    ----------
    latency : int
        Cycles from ``ended`` to the greatest one.
    sampled_latency : int
        Cycles from ``ended`` to the first token, where it is chosen at random; a further one for
        each token that it is behind the first one.
    """

    latency = 1

    def __init__(self, layout, *, tokens, channels, is_choice=False):
        if (1 if is_choice else tokens) % channels:
            raise ValueError(f"{tokens} scores are not pixels of {channels} channels")
        if channels > 1 and channels != tokens:
            raise ValueError(f"{tokens} scores lie in several pixels of {channels} channels")
        self.layout, self.tokens, self.channels = layout, tokens, channels
        self.is_choice = is_choice
        self.code = Shape.cast(layout["data"].shape.elem_shape)
        self.weights = 0 if is_choice else 1 << self.code.width
        sampling = {} if is_choice else {
            "sampled": In(1),
            "random": In(RANDOM_BITS),
            "store": In(1),
            "place": In(range(self.weights)),
            "weight": In(WEIGHT_BITS),
        }
        self.sampled_latency = tokens + RANDOM_BITS + 8
        super().__init__({
            "i": In(stream.Signature(layout)),
            "wanted": In(1),
            "ended": Out(1),
            **sampling,
            "o": Out(stream.Signature(range(tokens))),
        })

    def elaborate(self, platform):
        m = Module()
        lanes = self.layout["data"].shape.length
        lane = Signal(range(lanes))
        channel = Signal(range(self.channels + 1))
        last_lane = lane == lanes - 1
        code = Signal(self.code)
        taking, is_real = Signal(), Signal()
        m.d.comb += [
            code.eq(self.i.p.data[lane]),
            is_real.eq(channel != self.channels),
            self.i.ready.eq(taking & last_lane),
            self.ended.eq(self.i.valid & self.i.ready & self.i.p.last),
        ]
        with m.If(self.i.valid & taking):
            m.d.sync += lane.eq(Mux(last_lane, 0, lane + 1))
            with m.If(is_real):
                m.d.sync += channel.eq(channel + 1)
            with m.If(last_lane & (channel >= self.channels - 1)):
                # the pixel's last beat
                m.d.sync += channel.eq(0)

        winner = self.o.payload
        taken = self.i.valid & taking & is_real
        if self.is_choice:
            with m.If(taken):
                m.d.sync += winner.eq(code)
            with m.FSM():
                with m.State("TAKE"):
                    m.d.comb += taking.eq(1)
                    with m.If(self.ended & self.wanted):
                        m.next = "OFFER"
                self._offer(m)
            return m

        best, number, is_first = Signal.like(code), Signal(range(self.tokens)), Signal(init=1)
        with m.If(taken):
            m.d.sync += [is_first.eq(0), number.eq(number + 1)]
            with m.If(is_first | (code > best)):
                m.d.sync += [best.eq(code), winner.eq(number)]
        with m.If(self.ended):
            m.d.sync += [is_first.eq(1), number.eq(0)]

        m.submodules.scores = scores = memory.Memory(
            shape=unsigned(self.code.width), depth=max(2, self.tokens), init=[])
        m.submodules.weights = weights = memory.Memory(
            shape=WEIGHT_BITS, depth=self.weights, init=[])
        keep, fetch = scores.write_port(), scores.read_port()
        fill, look_up = weights.write_port(), weights.read_port()
        following = Signal(range(self.tokens))
        # a score on its way from its memory, its weight, and the sum up to it
        fetched, weighed, added = Signal(), Signal(), Signal()
        scanning = Signal()
        seen = Signal(range(self.tokens))
        bits = WEIGHT_BITS + (self.tokens - 1).bit_length()
        total, threshold = Signal(bits), Signal(bits)
        bit = Signal(range(RANDOM_BITS))
        # never a read and a write in one cycle: their collision would have to be emulated in LUTs
        m.d.comb += [
            keep.addr.eq(number), keep.data.eq(code), keep.en.eq(taken),
            fetch.addr.eq(following), fetch.en.eq(~keep.en),
            look_up.addr.eq(best - fetch.data), look_up.en.eq(~fill.en),
            fill.addr.eq(self.place), fill.data.eq(self.weight), fill.en.eq(self.store),
        ]
        m.d.sync += [fetched.eq(scanning), weighed.eq(fetched), added.eq(weighed)]
        with m.If(scanning):
            m.d.sync += following.eq(following + 1)
            with m.If(following == self.tokens - 1):
                m.d.sync += [following.eq(0), scanning.eq(0)]
        with m.If(weighed):
            m.d.sync += total.eq(total + look_up.data)

        def scan(state):
            m.d.sync += [scanning.eq(1), total.eq(0), seen.eq(0)]
            m.next = state

        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += taking.eq(1)
                with m.If(self.ended & self.wanted):
                    m.next = "OFFER"
                    with m.If(self.sampled):
                        scan("SUM")

            with m.State("SUM"):
                m.d.sync += [threshold.eq(0), bit.eq(0)]
                with m.If(added):
                    m.d.sync += seen.eq(seen + 1)
                    with m.If(seen == self.tokens - 1):
                        m.next = "MULTIPLY"

            with m.State("MULTIPLY"):
                product = threshold + Mux(self.random.bit_select(bit, 1), total, 0)
                m.d.sync += [threshold.eq(product >> 1), bit.eq(bit + 1)]
                with m.If(bit == RANDOM_BITS - 1):
                    scan("SEARCH")

            with m.State("SEARCH"):
                with m.If(added):
                    m.d.sync += [winner.eq(seen), seen.eq(seen + 1)]
                    with m.If(total > threshold):
                        m.d.sync += [scanning.eq(0), following.eq(0), fetched.eq(0),
                                     weighed.eq(0), added.eq(0)]
                        m.next = "OFFER"

            self._offer(m)
        return m

    def _offer(self, m):
        with m.State("OFFER"):
            m.d.comb += self.o.valid.eq(1)
            with m.If(self.o.ready):
                m.next = "TAKE"
