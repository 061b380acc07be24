"""Argmax: index of the largest or the smallest code of a pixel."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.parts.functions.argmax import TREE_LEVELS
from nnef_hw.rtl.streams.stream import beat_layout, elastic_stages

__all__ = ["Argmax"]


class Argmax(wiring.Component):
    """Replace the codes of a pixel by the index of their maximum or minimum.

    Golden models: :func:`nnef_hw.arithmetic.numerics.argmax_codes`,
    :func:`~nnef_hw.arithmetic.numerics.argmin_codes`; the lowest index of several. Takes a beat per
    cycle; only the last beat of a pixel waits for the output register. A tree with a register
    behind every second level finds the extremum of a beat of several codes.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))
        One unsigned index per pixel.
    """

    def __init__(self, part: parts.Argmax):
        self.part = part
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "o": Out(stream.Signature(beat_layout(bits=part.index_bits, signed=False, lanes=1))),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        i, place = self._of_beats(m)
        code = i.payload.data[0]
        best = Signal.like(code, reset_less=True)
        best_index = Signal(part.index_bits, reset_less=True)
        index = Signal(part.index_bits)
        final = Signal()
        accept = Signal()
        better = Signal(name="greater" if part.greatest else "less")
        found = index if part.lanes == 1 else (index + place)[:part.index_bits]

        m.d.comb += [
            final.eq(index == part.channels - part.lanes),
            i.ready.eq(~final | ~self.o.valid | self.o.ready),
            accept.eq(i.valid & i.ready),
            better.eq((index == 0) | self._is_better(code, best)),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(accept):
            m.d.sync += index.eq(Mux(final, 0, index + part.lanes))
            with m.If(better):
                m.d.sync += [best.eq(code), best_index.eq(found)]
            with m.If(final):
                m.d.sync += [
                    self.o.valid.eq(1),
                    self.o.payload.data[0].eq(Mux(better, found, best_index)),
                    self.o.payload.last.eq(i.payload.last),
                ]
        return m

    def _is_better(self, code, best):
        """Return whether a code that comes later takes the place of another one."""
        return code > best if self.part.greatest else code < best

    def _of_beats(self, m):
        """Return a stream of the extremum of every beat, and its place there."""
        part, stages = self.part, self.part.tree_stages
        if not stages:
            return self.i, None
        place = Signal(range(part.lanes), reset_less=True)
        layout = beat_layout(bits=part.bits, signed=part.signed, lanes=1)
        o = stream.Signature(layout).create(path=("beats",))
        enables, _ = elastic_stages(m, self.i.valid, o, stages=stages)
        m.d.comb += self.i.ready.eq(enables[0])
        candidates = [(self.i.payload.data[n], Const(n, place.shape())) for n in range(part.lanes)]
        last = self.i.payload.last
        for stage, enable in enumerate(enables):
            for _ in range(TREE_LEVELS):
                pairs = [candidates[n:n + 2] for n in range(0, len(candidates), 2)]
                candidates = [self._better_of(*pair) for pair in pairs]
            if stage == stages - 1:
                registers, last_register = [(o.payload.data[0], place)], o.payload.last
            else:
                registers = [
                    (Signal.like(code, name=f"best{stage}_{n}", reset_less=True),
                     Signal.like(place, name=f"place{stage}_{n}"))
                    for n, (code, _) in enumerate(candidates)
                ]
                last_register = Signal(name=f"last{stage}", reset_less=True)
            with m.If(enable):
                for held, found in zip(registers, candidates, strict=True):
                    m.d.sync += [held[0].eq(found[0]), held[1].eq(found[1])]
                m.d.sync += last_register.eq(last)
            candidates, last = registers, last_register
        return o, place

    def _better_of(self, first, *others):
        """Return code and place of the extremum of neighbours; the first of equal ones."""
        for code, place in others:
            is_better = self._is_better(code, first[0])
            first = Mux(is_better, code, first[0]), Mux(is_better, place, first[1])
        return first
