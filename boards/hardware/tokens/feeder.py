"""Feeding of a language model with the tokens of a text, and with those that it chooses."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.tokens.chooser import RANDOM_BITS, WEIGHT_BITS
from nnef_hw.host.protocol import LINE_LAST, NO_STOP, TEXT
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["TokenFeeder"]

TOKEN_BITS = 16


class TokenFeeder(wiring.Component):
    """Feed the tokens of a prompt, then each token that is chosen, until a text ends.

    Golden model: :class:`nnef_hw.host.tokens.TokenLoop`. A text comes as bytes (docs/protocol.md,
    section 8): how it is to end, the state of the random numbers, the weights of choices unless
    that is 0, and the prompt. Tokens of the prompt are fed as they come; scores behind all but
    the last one are dropped. A text that ends too early is dropped, too.

    Parameters
    ----------
    token, position : data.StructLayout
        Payloads of the accelerator's streams of tokens and of their places; the latter is None if
        the network counts by itself.
    tokens, context : int
        How many tokens there are; and places, or 0 if there is no position.
    weights : int
        Weights that come with a text whose tokens are chosen at random; 0 if none are.
    is_plain : bool
        The bytes are those of docs/protocol.md, section 9: the highest bit of its last token ends a
        prompt, and each of its tokens is sent back as it is fed.

    Members
    -------
    i : In(stream.Signature(beat_layout(bits=8, signed=False, lanes=1)))
        Bytes of texts; ``last`` ends a prompt.
    o_token, o_position : Out
        Beats for the accelerator.
    ended : In(1)
        The accelerator's scores of a frame are over.
    wanted : Out(1)
        They are those that the next token is chosen by.
    choice : In(stream.Signature(range(tokens)))
        The token that they choose.
    sampled, random, store, place, weight : Out
        See :class:`.TokenChooser`; missing without ``weights``.
    o : Out(stream.Signature(8))
        Bytes of the tokens that are chosen, two of each, the lower one first.
    busy : Out(1)
        Some of a text has come, and it has not ended.
    fresh, headed, prompted : Out(1)
        Nothing of a text has come; all in front of its prompt has, in this cycle; the prompt is
        next. Only if ``is_plain``.

    Attributes
    ----------
    latency : int
        Cycles from a token that is chosen until it is fed.
    """

    latency = 1
    stages = "fresh", "headed", "prompted"

    def __init__(self, token, position, *, tokens, context, weights, is_plain=False):
        self.layouts = {"o_token": token} | ({} if position is None else {"o_position": position})
        for layout in self.layouts.values():
            if layout["data"].shape.length != 1:
                raise ValueError(f"a token and its place are one code each, not {layout!r}")
        if is_plain and tokens > LINE_LAST:
            raise ValueError(f"a line has numbers for {LINE_LAST} tokens, not {tokens}")
        self.tokens, self.context, self.weights = tokens, context, weights
        self.is_plain = is_plain
        sampling = {} if not weights else {
            "sampled": Out(1), "random": Out(RANDOM_BITS),
            "store": Out(1), "place": Out(range(weights)), "weight": Out(WEIGHT_BITS),
        }
        super().__init__({
            "i": In(stream.Signature(beat_layout(bits=8, signed=False, lanes=1))),
            **{name: Out(stream.Signature(layout)) for name, layout in self.layouts.items()},
            "ended": In(1),
            "wanted": Out(1),
            "choice": In(stream.Signature(range(tokens))),
            **sampling,
            "o": Out(stream.Signature(8)),
            "busy": Out(1),
            **({} if not is_plain else dict.fromkeys(self.stages, Out(1))),
        })

    def elaborate(self, platform):
        m = Module()
        head = Signal(8 * TEXT.size, reset_less=True)
        left, stop, state = head[:16], head[16:32], head[32:]
        index = Signal(range(TEXT.size))
        byte, low = self.i.p.data[0], Signal(8, reset_less=True)
        word, is_high = Cat(low, byte), Signal()
        token, position = Signal(range(self.tokens)), Signal(range(max(2, self.context)))
        is_final = Signal()
        inside = Signal(range(self.context + 2) if self.context else TOKEN_BITS)
        fed = {name: Signal(name=f"{name}_fed") for name in self.layouts}
        # bytes of the token that wait for the host
        waiting = Signal(range(3))
        feeding = Signal()
        m.d.comb += [
            self.wanted.eq(is_final & (inside == 1)),
            self.o.payload.eq(token.word_select(waiting == 1, 8)),
            self.o.valid.eq(waiting != 0),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += waiting.eq(waiting - 1)
        m.d.sync += inside.eq(inside + feeding - self.ended)
        values = {"o_token": token, "o_position": position}
        for name in self.layouts:
            port = getattr(self, name)
            m.d.comb += [port.p.data[0].eq(values[name]), port.p.last.eq(1)]
        arrived = self.i.valid & self.i.ready
        with m.If(arrived):
            m.d.sync += low.eq(byte)

        def begin():
            m.d.sync += [index.eq(0), is_high.eq(0), position.eq(0), is_final.eq(0)]
            if self.weights:
                m.d.sync += self.place.eq(0)
            m.next = "HEAD"

        def end_head():
            if self.is_plain:
                m.d.comb += self.headed.eq(1)
            m.next = "PROMPT"

        def feed(value):
            m.d.comb += feeding.eq(1)
            m.d.sync += [token.eq(value), *(x.eq(0) for x in fed.values())]
            m.next = "FEED"

        if self.weights:
            m.d.comb += [
                self.sampled.eq(state != 0), self.random.eq(state), self.weight.eq(word),
            ]
            with m.If(self.ended & self.wanted & self.sampled):
                m.d.sync += state.eq(_following(state))

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(
                ~fsm.ongoing("HEAD") | (index != 0) | self.o.valid | (inside != 0))
            if self.is_plain:
                m.d.comb += [
                    self.fresh.eq(fsm.ongoing("HEAD") & (index == 0)),
                    self.prompted.eq(fsm.ongoing("PROMPT")),
                ]

            with m.State("HEAD"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(arrived):
                    m.d.sync += [head.eq(Cat(head[8:], byte)), index.eq(index + 1)]
                    with m.If(index == TEXT.size - 1):
                        end_head()
                        if self.weights:
                            with m.If(Cat(state[8:], byte) != 0):
                                if self.is_plain:
                                    m.d.comb += self.headed.eq(0)
                                m.next = "WEIGHTS"
                    if not self.is_plain:
                        with m.If(self.i.p.last):
                            begin()

            if self.weights:
                with m.State("WEIGHTS"):
                    m.d.comb += [self.i.ready.eq(1), self.store.eq(arrived & is_high)]
                    with m.If(arrived):
                        m.d.sync += is_high.eq(~is_high)
                        with m.If(is_high):
                            m.d.sync += self.place.eq(self.place + 1)
                            with m.If(self.place == self.weights - 1):
                                m.d.sync += self.place.eq(0)
                                end_head()
                        if not self.is_plain:
                            with m.If(self.i.p.last):
                                begin()

            with m.State("PROMPT"):
                m.d.comb += self.i.ready.eq(waiting == 0)
                with m.If(arrived):
                    m.d.sync += is_high.eq(~is_high)
                    if self.is_plain:
                        with m.If(is_high):
                            m.d.sync += [is_final.eq(byte[-1]), waiting.eq(2)]
                            feed(word[:-1])
                    else:
                        with m.If(is_high):
                            m.d.sync += is_final.eq(self.i.p.last)
                            feed(word)
                        with m.Elif(self.i.p.last):
                            begin()

            with m.State("FEED"):
                done = []
                for name, is_fed in fed.items():
                    port = getattr(self, name)
                    m.d.comb += port.valid.eq(~is_fed)
                    done.append(is_fed | port.ready)
                    with m.If(port.ready):
                        m.d.sync += is_fed.eq(1)
                with m.If(Cat(done).all()):
                    if self.context:
                        with m.If(position != self.context - 1):
                            m.d.sync += position.eq(position + 1)
                    m.next = "PROMPT"
                    with m.If(is_final):
                        m.next = "WAIT"

            with m.State("WAIT"):
                m.d.comb += self.choice.ready.eq(waiting == 0)
                with m.If(self.choice.valid & self.choice.ready):
                    chosen = self.choice.payload
                    m.d.sync += [waiting.eq(2), left.eq(left - 1)]
                    feed(chosen)
                    with m.If((left == 1) | ((stop == chosen) & (stop != NO_STOP))):
                        m.d.comb += feeding.eq(0)
                        begin()
        return m


def _following(x):
    """Return the number of Marsaglia's generator that follows another one."""
    x = (x ^ (x << 13))[:RANDOM_BITS]
    x = x ^ (x >> 17)
    return (x ^ (x << 5))[:RANDOM_BITS]
