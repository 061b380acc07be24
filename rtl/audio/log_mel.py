"""Log-mel features of audio, computed by one multiplier in turn."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.audio.logarithm import LOG_BITS
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.parts.audio.log_mel import TOP_BIT
from nnef_hw.rtl.audio.log_mel_datapath import address, multiply, take_root, write
from nnef_hw.rtl.audio.log_mel_passes import run_passes
from nnef_hw.rtl.audio.log_mel_signals import LOW_BITS, LogMelSignals
from nnef_hw.rtl.base.primitives import delayed
from nnef_hw.rtl.streams.stream import beat_layout, check_limits

__all__ = ["LogMel"]


class LogMel(wiring.Component):
    """Log-mel features of samples of audio.

    Golden model: :meth:`nnef_hw.arithmetic.audio.log_mel.LogMelRequant.apply`. It takes a sample
    per cycle, until a hop is complete; then it takes none until the frame's bands have left. One
    multiplier and one sum make everything of numbers that lie in one memory, in passes over them:
    window, stages of the transform, power, bands. A product is read, multiplied, added and written
    back in five steps; a number is read and written per step. A step takes a cycle whatever the
    numbers are; one that reads and writes single-port RAM takes two.

    Parameters
    ----------
    requant : LogMelRequant
        The front end.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Samples; ``last`` ends an inference.
    o : Out(stream.Signature(beat_layout))
        Bands of a frame, frame by frame.

    Raises
    ------
    ValueError
        If the requantizer is not that of its part.
    """

    unproved = "the solver would have to multiply; tests simulate it under stalls"

    def __init__(self, part: parts.LogMel, *, requant):
        check_limits(part, requant)
        part.check(requant)
        self.part = part
        self.requant = requant
        samples = beat_layout(bits=16, signed=True, lanes=1)
        results = beat_layout(bits=part.out_bits, signed=part.out_signed, lanes=1)
        super().__init__({"i": In(stream.Signature(samples)), "o": Out(stream.Signature(results))})

    def elaborate(self, platform):
        w = LogMelSignals(self.part, self.requant)
        if not self.part.single_port:
            m = self._steps(w)
            m.d.comb += w.moves.eq(1)
        else:
            m = Module()
            m.submodules.steps = EnableInserter(w.moves)(self._steps(w))
            # neither as it takes samples nor as it gives: there it reads nothing
            m.d.comb += w.moves.eq(~w.data.waits)
        m.d.comb += w.data.read_enable.eq(w.reads)
        m.submodules.data, m.submodules.words = w.data, w.words
        m.submodules.multiplier = w.multiplier
        m.d.comb += [w.words.read_enable.eq(w.moves), w.multiplier.enable.eq(w.moves)]
        return m

    def _steps(self, w):
        """Return the logic of all steps, without memories and the multiplier."""
        m = Module()
        self._count(m, w)
        multiply(m, w)
        write(m, w)
        if self.part.magnitudes:
            take_root(m, w)
        self._take(m, w)
        address(m, w)
        run_passes(m, w, self.o.ready)
        self._give(m, w)
        return m

    def _count(self, m, w):
        """Let an element follow another: bits of a stage's digit are left out.

        Of four counts the last one is left out where three do; the first four are, where a stage's
        first number stays as it is.
        """
        following = Signal(w.places + 1)
        m.d.comb += [
            following.eq((w.base | w.skip) + 1),
            w.following.eq(following[: w.places] & ~w.skip),
            w.wraps.eq(following[w.places]),
        ]
        with m.If(w.steps):
            last = w.in_three & w.count[1]
            begin = Cat(C(0, 2), w.in_turn)
            m.d.sync += w.count.eq(Mux(w.inner_end, begin, (w.count | last) + 1))
            with m.If(w.inner_end):
                m.d.sync += w.base.eq(w.following)

    def _take(self, m, w):
        """Take samples, less their part of the one before, into a ring."""
        part, requant = w.part, w.requant
        sample = self.i.p.data[0]
        place = w.place
        takes, missing = w.takes, w.missing
        p, e = requant.emphasis
        emphasized = Signal(signed(17 + e))
        if p:
            previous = Signal(signed(16))
            m.d.comb += emphasized.eq(((sample - previous) << e) + ((1 << e) - p) * previous)
            with m.If(takes):
                m.d.sync += previous.eq(Mux(self.i.p.last, 0, sample) if part.frames else sample)
        else:
            m.d.comb += emphasized.eq(sample)
        arrived = Signal()
        m.d.sync += arrived.eq(takes)
        m.d.comb += [
            w.sample.eq(emphasized << LOW_BITS - requant.input_shift),
            self.i.ready.eq(w.is_idle & ~w.clears),
            takes.eq(self.i.valid & self.i.ready),
        ]
        stored = delayed(m, Cat(w.to_piece, w.to_element), 4, name="to")
        stores = delayed(m, w.is_written, 4, name="stores", is_flag=True)
        into_ring = arrived | w.clears
        m.d.comb += [
            w.data.write_enable.eq(stores | into_ring),
            w.data.write_data.eq(w.result),
            w.data.write_address.eq(Mux(into_ring, part.points | place, stored)),
        ]
        with m.If(into_ring):
            m.d.sync += place.eq(place + 1)
        with m.If(w.clears & (place == part.kept - 1)):
            m.d.sync += w.clears.eq(0)
        with m.If(takes):
            m.d.sync += [missing.eq(missing - 1), w.ends.eq(self.i.p.last)]

    def _give(self, m, w):
        """Give the code of the sum, within its limits."""
        requant = w.requant
        # what no logarithm reaches needs no bits
        highest = ((TOP_BIT + 1) << LOG_BITS) * requant.mult + w.bias
        bits = signed_bits(min(w.bias, highest), max(w.bias, highest)) - requant.shift
        code = Signal(signed(max(bits, 1)))
        m.d.comb += code.eq(w.sum >> requant.shift)
        limited = Mux(code < requant.lo, requant.lo, Mux(code > requant.hi, requant.hi, code))
        m.d.comb += [
            self.o.valid.eq(w.gives),
            self.o.p.data[0].eq(limited),
            self.o.p.last.eq(w.ends & w.band_end),
        ]
