"""Depthwise array: a multiply-accumulate unit per channel of a block."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.arrays.multiplier import ProductPair
from nnef_hw.rtl.base.primitives import masked_sum
from nnef_hw.rtl.windows.linebuffer import window_layout

__all__ = ["DepthwiseArray"]


class DepthwiseArray(wiring.Component):
    """Multiply the windows of every channel by weights of its own.

    Golden model: ``acc[c] = sum(weights[c] * codes[c])`` over the window, modulo ``2**acc_bits``;
    channels come out in order, ``out_lanes`` per beat, pixel after pixel.

    A pass is one window of one block of ``lanes`` channels: T = ``ceil(K / taps)`` words for the K
    positions of the kernel. Pass follows pass by pixel and channel block, the words of a pass by
    (ky, kx): what a line buffer gives whose window is ``by_channel``. A word has ``taps``
    consecutive positions, each of ``lanes`` codes, or of one if they are ``shared``; positions
    beyond K may hold anything. One word per cycle keeps ``lanes * taps`` multipliers busy.

    A word that is inside never stalls: only the last word of a pass waits at the entrance, until
    fewer than ``kept_passes`` passes have sums inside. With ``interval`` cycles between the beats
    that a consumer takes, a pass takes ``max(T, beats * interval, (latency + 1 + (beats - 1) *
    interval) / kept_passes)`` cycles for ``lanes / out_lanes`` beats of sums: every multiplier is
    busy in every cycle if that is T.

    Parameters
    ----------
    weights : list of Component
        One memory with the read port of :class:`.TiledMemory`: its words are the weights of the
        taps, tap 0 lowest, in each those of all lanes. Word ``n * T + t`` is read for word t of
        channel block n.

    Members
    -------
    i : In(stream.Signature(window_layout))
        Windows of ``taps * lanes`` codes; of ``taps`` if they are shared.
    o : Out(stream.Signature(sum_layout))
    """

    def __init__(self, part: parts.DepthwiseArray, *, weights):
        self.part = part
        self.weights = weights
        word = window_layout(bits=part.x_bits, signed=part.x_signed, lanes=part.word_codes)
        super().__init__({
            "i": In(stream.Signature(word)),
            "o": Out(stream.Signature(sum_layout(part.acc_bits, part.out_lanes))),
        })

    def elaborate(self, platform):
        m = Module()
        accept = Signal()
        m.d.comb += accept.eq(self.i.valid & self.i.ready)

        # The weights of the word that comes next are read before it comes.
        depth = self.part.depth
        [weights] = self.weights
        m.submodules.weights = weights
        address = Signal(range(depth))
        codes = Signal.like(self.i.payload.data, reset_less=True)
        next_first = Signal(init=1)
        m.d.comb += [weights.read_address.eq(address), weights.read_enable.eq(1)]
        with m.If(accept):
            m.d.sync += [
                codes.eq(self.i.payload.data),
                next_first.eq(self.i.payload.last),
                address.eq(_next(address, depth)),
            ]

        # What accompanies a word through the stages.
        valid, first, last, end = (
            [Signal(name=f"{name}{n}", reset_less=name in {"first", "end"})
             for n in range(self.part.pass_stage + 1)]
            for name in ("valid", "first", "last", "end")
        )
        m.d.sync += [
            valid[0].eq(accept),
            first[0].eq(next_first),
            last[0].eq(accept & self.i.payload.last),
            end[0].eq(self.i.payload.end),
        ]
        for flags in (valid, first, last, end):
            m.d.sync += [later.eq(earlier) for earlier, later in pairwise(flags)]

        factors = weights.read_data
        for n in range(self.part.weight_delay):
            later_codes = Signal.like(codes, name=f"codes{n}", reset_less=True)
            later_factors = Signal.like(factors, name=f"weights{n}", reset_less=True)
            m.d.sync += [later_codes.eq(codes), later_factors.eq(factors)]
            codes, factors = later_codes, later_factors
        sums = self._products(m, codes, factors)
        if self.part.words > 1:
            for lane, total in enumerate(sums):
                accumulator = Signal(signed(self.part.acc_bits), name=f"acc{lane}", reset_less=True)
                added = masked_sum(m, platform, ~first[self.part.sum_stage], accumulator, total,
                                   name=f"added{lane}")
                with m.If(valid[self.part.sum_stage]):
                    m.d.sync += accumulator.eq(added)
                sums[lane] = accumulator
        self._drain(m, accept, sums, capture=last[-1], end=end[-1])
        return m

    def _products(self, m, codes, weights):
        """Instantiate multipliers and adder trees; return a sum per lane."""
        part = self.part
        readers = part.multipliers // part.word_codes
        operands = [(codes[n // readers], weights.word_select(n, part.w_bits))
                    for n in range(part.multipliers)]
        products = []
        [in_dsp] = part.runs_in_dsp
        for n in range(0, len(operands), 2):
            pair = ProductPair(x_bits=part.x_bits, x_signed=part.x_signed, w_bits=part.w_bits,
                               in_dsp=n < in_dsp)
            m.submodules[f"products{n // 2}"] = pair
            ports = [(pair.x0, pair.w0, pair.p0), (pair.x1, pair.w1, pair.p1)]
            for (x, w, p), (code, weight) in zip(ports, operands[n:n + 2], strict=False):
                m.d.comb += [x.eq(code), w.eq(weight)]
                products.append(p)

        sums = []
        for lane in range(self.part.lanes):
            level = products[lane::self.part.lanes]
            while len(level) > 1:
                registers = []
                for n in range(0, len(level), 2):
                    register = Signal(signed(len(level[0]) + 1), reset_less=True,
                                      name=f"tree{lane}_{len(level)}_{n}")
                    m.d.sync += register.eq(sum(level[n:n + 2]))
                    registers.append(register)
                level = registers
            sums.append(level[0])
        return sums

    def _drain(self, m, accept, sums, *, capture, end):
        """Let the sums of pass after pass leave; hold back a last word until they can be kept."""
        part = self.part
        holding = Signal()
        load = Signal()
        done = Signal()
        entered, drained, full = Signal(), Signal(), Signal()
        kept = _count(m, entered, drained, most=part.kept_passes, name="kept")
        m.d.comb += [
            entered.eq(accept & self.i.payload.last),
            drained.eq(holding & done),
            self.i.ready.eq(~self.i.payload.last | ~full),
        ]
        with m.If(entered != drained):
            m.d.sync += full.eq(entered & (kept == part.kept_passes - 1))
        with m.If(load | done):
            m.d.sync += holding.eq(load)

        results = [Signal(signed(part.acc_bits), name=f"result{n}") for n in range(part.lanes)]
        m.d.comb += [result.eq(total) for result, total in zip(results, sums, strict=True)]
        kept_sums = Cat(*results, end)
        if part.kept_passes > 1:
            kept_sums, waiting = self._queue(m, kept_sums, capture, load)
            m.d.comb += load.eq(waiting & done)
        else:
            m.d.comb += load.eq(capture)

        present = self._present(m, load)
        leaving = [Signal(signed(part.acc_bits), name=f"leaving{n}", reset_less=True)
                   for n in range(part.lanes)]
        leaving_end = Signal(reset_less=True)
        pending = Signal(range(part.lanes // part.out_lanes + 1))
        final = Signal()
        free = Signal()
        m.d.comb += [
            self.o.valid.eq(pending != 0),
            *(acc.eq(register)
              for acc, register in zip(self.o.payload.acc, leaving, strict=False)),
            self.o.payload.last.eq(leaving_end & final),
            final.eq(pending <= 1),
            free.eq(~self.o.valid | self.o.ready),
        ]
        with m.If(load):
            m.d.sync += pending.eq(present)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += pending.eq(pending - 1)
        # The next sum is there early; only whether it moves now depends on ``ready``.
        with m.If(free):
            for n, register in enumerate(leaving):
                total = kept_sums.word_select(n, part.acc_bits)
                behind = n + part.out_lanes
                following = leaving[behind] if behind < part.lanes else total
                m.d.sync += register.eq(Mux(final, total, following))
            with m.If(final):
                m.d.sync += leaving_end.eq(kept_sums[-1])
        m.d.comb += done.eq(final & free)

    def _queue(self, m, item, push, pop):
        """Keep the sums of passes that have to wait; return the oldest ones, and if there are any.

        It never runs over: a pass is admitted only when there is room.
        """
        depth = self.part.kept_passes - 1
        level = _count(m, push, pop, most=depth, name="level")
        if depth == 1:
            slot = Signal(len(item), name="waiting", reset_less=True)
            with m.If(push):
                m.d.sync += slot.eq(item)
            return slot, level != 0

        # Never in block RAM, which is counted.
        style = "distributed" if self.part.lut_ram else "logic"
        m.submodules.waiting = slots = memory.Memory(
            shape=len(item), depth=depth, init=[], attrs={"ram_style": style})
        write, read = slots.write_port(), slots.read_port(domain="comb")
        newest, oldest = Signal(range(depth)), Signal(range(depth))
        m.d.comb += [
            write.addr.eq(newest), write.en.eq(push), write.data.eq(item),
            read.addr.eq(oldest),
        ]
        with m.If(push):
            m.d.sync += newest.eq(_next(newest, depth))
        with m.If(pop):
            m.d.sync += oldest.eq(_next(oldest, depth))
        return read.data, level != 0

    def _present(self, m, load):
        """Return in how many beats the sums of the pass that is loaded leave."""
        full = self.part.lanes // self.part.out_lanes
        rest = self.part.channels % self.part.lanes // self.part.out_lanes
        if not rest:
            return full
        block = Signal(range(self.part.blocks))
        with m.If(load):
            m.d.sync += block.eq(_next(block, self.part.blocks))
        return Mux(block == self.part.blocks - 1, rest, full)


def _next(position, count):
    """Return the position that follows, modulo ``count``."""
    return Mux(position == count - 1, 0, position + 1)


def _count(m, more, less, *, most, name):
    """Return how many have come and not gone."""
    count = Signal(range(most + 1), name=name)
    with m.If(more != less):
        m.d.sync += count.eq(Mux(more, count + 1, count - 1))
    return count
