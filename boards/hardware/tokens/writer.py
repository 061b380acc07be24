"""The loop of a language model: texts come in, tokens go out, and the network is in between."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.tokens.chooser import TokenChooser
from nnef_hw.boards.hardware.tokens.feeder import TokenFeeder
from nnef_hw.rtl.base.reset import WithReset
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["TextWriter"]


class TextWriter(wiring.Component):
    """Continue texts by the tokens that a network's scores choose, one after the other.

    Golden model: :class:`nnef_hw.host.tokens.TokenLoop`; see :class:`.TokenFeeder` and
    :class:`.TokenChooser`.

    Parameters
    ----------
    loop : ChipLoop
        The accelerator's streams that it feeds and takes.
    layouts : Mapping[str, data.StructLayout]
        Their payloads.
    is_plain : bool
        As of :class:`.TokenFeeder`.

    Members
    -------
    restart, restarted : In(1)
        The accelerator's input, and its output, begin anew.
    i : In(stream.Signature(beat_layout(bits=8, signed=False, lanes=1)))
        Bytes of texts.
    o_token, o_position : Out
        Beats for the accelerator; the latter only if the network takes positions.
    i_scores : In
        Beats of the accelerator.
    o : Out(stream.Signature(8))
        Bytes of the tokens that are chosen.
    busy : Out(1)
        A text has begun, and not ended.
    fresh, headed, prompted : Out(1)
        See :class:`.TokenFeeder`; only if ``is_plain``.

    Attributes
    ----------
    latency : int
        Cycles from the last of the scores until the greatest one's token is fed.
    """

    latency = TokenChooser.latency + TokenFeeder.latency

    def __init__(self, loop, layouts, *, is_plain=False):
        self.chooser = TokenChooser(layouts[loop.scores], tokens=loop.tokens,
                                    channels=loop.channels, is_choice=loop.is_choice)
        self.feeder = TokenFeeder(
            layouts[loop.token], loop.position and layouts[loop.position],
            tokens=loop.tokens, context=loop.context, weights=self.chooser.weights,
            is_plain=is_plain)
        super().__init__({
            "restart": In(1),
            "restarted": In(1),
            "i": In(stream.Signature(beat_layout(bits=8, signed=False, lanes=1))),
            **{name: Out(stream.Signature(layout)) for name, layout in self.feeder.layouts.items()},
            "i_scores": In(stream.Signature(layouts[loop.scores])),
            "o": Out(stream.Signature(8)),
            "busy": Out(1),
            **({} if not is_plain else dict.fromkeys(TokenFeeder.stages, Out(1))),
        })

    def elaborate(self, platform):
        m = Module()
        chooser, feeder = self.chooser, self.feeder
        m.submodules.chooser = WithReset(chooser, self.restarted)
        m.submodules.feeder = WithReset(feeder, self.restart)
        for port in feeder.layouts:
            wiring.connect(m, getattr(feeder, port), wiring.flipped(getattr(self, port)))
        wiring.connect(m, wiring.flipped(self.i), feeder.i)
        wiring.connect(m, wiring.flipped(self.i_scores), chooser.i)
        wiring.connect(m, chooser.o, feeder.choice)
        wiring.connect(m, feeder.o, wiring.flipped(self.o))
        m.d.comb += [
            feeder.ended.eq(chooser.ended),
            chooser.wanted.eq(feeder.wanted),
            self.busy.eq(feeder.busy),
        ]
        for name in feeder.stages if feeder.is_plain else ():
            m.d.comb += getattr(self, name).eq(getattr(feeder, name))
        for name in ("sampled", "random", "store", "place", "weight") if chooser.weights else ():
            m.d.comb += getattr(chooser, name).eq(getattr(feeder, name))
        return m
