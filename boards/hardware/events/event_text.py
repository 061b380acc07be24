"""A line of text for every event: when it was, what it was, and its score."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.events.best_mean import BestMean
from nnef_hw.boards.hardware.uart import UartTransmitter
from nnef_hw.boards.interfaces.uart_text import FRACTION_BITS, HUNDREDTHS, NUMBER_DIGITS

__all__ = ["EventText"]

LAST = 0x80
"""Set in the last character of a text."""
POINT = NUMBER_DIGITS - HUNDREDTHS


class EventText(wiring.Component):
    """Send a line of text by a UART for every step in which the best class has a mean high enough.

    Golden model: :meth:`nnef_hw.boards.interfaces.uart_text.UartText.occurrences`. A line has the
    seconds since the reset, the class's name and its mean score, both with two decimal places that
    are cut: ``17.36 s marvin 0.98``. The score's hundredths are counted, a cycle each. While a line
    is sent further steps are taken, up to one that is an event, too: it waits.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's output stream.
    classes, channels, mean : int
        See :class:`.BestMean`.
    names : Sequence[str]
        Names of the classes; those without one are no events.
    quiet : int
        Steps after an event without a further one.
    cutoff : int
        The least sum that is an event.
    zero : int
        The sum of a mean of 0.0.
    hundredth : int
        What a sum has to be greater for 0.01 more, in steps of ``2**-16``.
    score_digits : int
        Digits of the greatest score, those behind the point among them.
    ticks, cycles : int
        So many hundredths of a second are so many clock cycles.
    divider : int
        Clock cycles per bit of the line.

    Members
    -------
    i : In(stream.Signature(layout))
        Beats of the accelerator.
    text : Out(1)
        The line: eight data bits, one stop bit, high while nothing is sent.
    """

    def __init__(self, layout, *, classes, channels, mean, names, quiet, cutoff, zero, hundredth,
                 score_digits, ticks, cycles, divider):
        if len(names) != classes or not any(names):
            raise ValueError(f"{list(names)} are no names of {classes} classes")
        self.best = BestMean(layout, classes=classes, channels=channels, mean=mean)
        self.names, self.quiet, self.cutoff = names, quiet, cutoff
        self.zero, self.hundredth, self.score_digits = zero, hundredth, score_digits
        self.ticks, self.cycles, self.divider = ticks, cycles, divider
        super().__init__({"i": In(stream.Signature(layout)), "text": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.best = best = self.best
        m.submodules.transmitter = line = UartTransmitter(self.divider)
        wiring.connect(m, wiring.flipped(self.i), best.i)
        m.d.comb += self.text.eq(line.tx)

        time = self._clock(m)
        left = Signal(range(self.quiet + 1))
        is_idle, is_event, taken = Signal(), Signal(), Signal()
        named = Signal()
        found = best.o.payload
        with m.Switch(found.number):
            with m.Case(*(n for n, name in enumerate(self.names) if name)):
                m.d.comb += named.eq(1)
        m.d.comb += [
            is_event.eq(found.complete & named & (found.total >= self.cutoff) & (left == 0)),
            best.o.ready.eq(is_idle | ~is_event),
            taken.eq(best.o.valid & best.o.ready),
        ]
        with m.If(taken):
            with m.If(is_event):
                m.d.sync += left.eq(self.quiet)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)

        texts, first = bytearray(), {}
        for number, name in enumerate(self.names):
            if name:
                first[number] = len(texts)
                text = f" s {name} ".encode("ascii")
                texts += text[:-1] + bytes([text[-1] | LAST])
        # the sum beyond 0.0, less the hundredths that are counted
        rest = Signal(range((1 << found.total.shape().width) + abs(self.zero) << FRACTION_BITS))
        score, digits = _Decimal("score", self.score_digits), Signal(4 * NUMBER_DIGITS)
        place, is_begun, is_score = Signal(range(NUMBER_DIGITS + 1)), Signal(), Signal()
        letter = Signal(range(len(texts)))
        character = Signal(8)
        with m.Switch(letter):
            for n, one in enumerate(texts):
                with m.Case(n):
                    m.d.comb += character.eq(one)
        sent = Signal()
        m.d.comb += sent.eq(line.i.valid & line.i.ready)

        def send(byte):
            m.d.comb += [line.i.valid.eq(1), line.i.payload.eq(byte)]

        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += is_idle.eq(1)
                with m.If(taken & is_event):
                    m.d.sync += [
                        digits.eq(time.value), rest.eq((found.total - self.zero) << FRACTION_BITS),
                        place.eq(0), is_begun.eq(0), is_score.eq(0),
                    ]
                    score.clear(m)
                    with m.Switch(found.number):
                        for number, at in first.items():
                            with m.Case(number):
                                m.d.sync += letter.eq(at)
                    m.next = "COUNT"
            with m.State("COUNT"):
                m.next = "NUMBER"
                with m.If(rest >= self.hundredth):
                    m.d.sync += rest.eq(rest - self.hundredth)
                    score.count(m)
                    m.next = "COUNT"
            with m.State("NUMBER"):
                digit = digits[-4:]
                is_point = place == POINT
                is_skipped = ~is_begun & (digit == 0) & (place < POINT - 1)
                with m.If(~is_skipped):
                    send(Mux(is_point, ord("."), Cat(digit, C(3, 4))))
                with m.If(sent | is_skipped):
                    m.d.sync += place.eq(place + 1)
                    with m.If(~is_skipped):
                        m.d.sync += is_begun.eq(1)
                    with m.If(~is_point):
                        m.d.sync += digits.eq(digits << 4)
                    with m.If(place == NUMBER_DIGITS):
                        m.next = "NAME"
                        with m.If(is_score):
                            m.next = "END"
            with m.State("NAME"):
                send(character[:7])
                with m.If(sent):
                    m.d.sync += letter.eq(letter + 1)
                    with m.If(character[7]):
                        m.d.sync += [
                            digits.eq(score.value), place.eq(0), is_begun.eq(0), is_score.eq(1),
                        ]
                        m.next = "NUMBER"
            with m.State("END"):
                send(ord("\n"))
                with m.If(sent):
                    m.next = "WAIT"
        return m

    def _clock(self, m):
        """Return the hundredths of a second since the reset."""
        timer = Signal(range(self.cycles))
        following = Signal(signed(len(timer) + 2))
        time = _Decimal("time", NUMBER_DIGITS)
        m.d.comb += following.eq(timer + self.ticks - self.cycles)
        m.d.sync += timer.eq(timer + self.ticks)
        with m.If(following >= 0):
            m.d.sync += timer.eq(following)
            time.count(m)
        return time


class _Decimal:
    """A number of decimal digits in four bits each, the lowest one first; it wraps."""

    def __init__(self, name, digits):
        self.digits = digits
        self.value = Signal(4 * digits, name=name)

    def clear(self, m):
        m.d.sync += self.value.eq(0)

    def count(self, m):
        """Add one in the cycle that is described."""
        carry = C(1)
        for n in range(self.digits):
            digit = self.value[4 * n : 4 * n + 4]
            with m.If(carry):
                m.d.sync += digit.eq(Mux(digit == 9, 0, digit + 1))
            carry &= digit == 9
