"""Depthwise array: a multiply-accumulate unit per channel of a block."""

from functools import reduce
from itertools import pairwise
from operator import and_

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.blockram import tile_memory
from nnef_hw.rtl.array import sum_layout
from nnef_hw.rtl.linebuffer import window_layout
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.multiplier import ProductPair, weight_code
from nnef_hw.rtl.primitives import masked_sum

__all__ = ["DepthwiseArray"]


class DepthwiseArray(wiring.Component):
    """Multiply the windows of every channel by weights of its own.

    Golden model: ``acc[c] = sum(weights[c] * codes[c])`` over the window, modulo ``2**acc_bits``;
    channels come out in order, pixel after pixel.

    A pass is one window of one block of ``lanes`` channels: T = ``ceil(K / taps)`` words for the K
    positions of the kernel. Pass follows pass by pixel and channel block, the words of a pass by
    (ky, kx): what a line buffer gives whose window is ``by_channel``. A word has ``taps``
    consecutive positions, each of ``lanes`` codes; positions beyond K may hold anything. One word
    per cycle keeps ``lanes * taps`` multipliers busy.

    A word that is inside never stalls: only the last word of a pass waits at the entrance, until
    fewer than ``kept_passes`` passes have sums inside. With ``interval`` cycles between the sums
    that a consumer takes and n = ``lanes / drains``, a pass takes ``max(T, n * interval, (latency +
    1 + (n - 1) * interval) / kept_passes)`` cycles: every multiplier is busy in every cycle if that
    is T.

    Parameters
    ----------
    weights : ndarray of int, shape [channels, K]
        Weights, positions in window order.
    lanes, taps : int
        Channels and window positions per word.
    drains : int
        Streams that the sums leave by; divides ``lanes``. With several, drain d gives lanes ``d *
        n`` to ``(d + 1) * n - 1`` of every block, and ``lanes`` divides the channels.
    kept_passes : int
        Passes whose sums may be in the array, at least 1.
    x_bits, x_signed, w_bits, acc_bits : int
        Formats of codes, weights and sums.
    in_dsp : bool
        Multipliers in DSP blocks, else in LUTs.
    ram : BlockRam
        The device's block RAM, for the weights.
    lut_ram : bool
        The device's LUTs can be memory: sums wait in them, else in registers.
    weight_style : str
        ``"block"`` or ``"logic"``.
    weight_delay : int
        Registers between the weight memory and the multipliers.

    Members
    -------
    i : In(stream.Signature(window_layout))
        Of ``taps * lanes`` codes.
    o0, o1, ... : Out(stream.Signature(sum_layout))
        One per drain; ``last`` is the drain's own last sum of a frame.

    Attributes
    ----------
    latency : int
        Cycles from the accepted last word of a pass to the first sums' ``valid``.
    """

    def __init__(self, *, weights, lanes, x_bits, x_signed, w_bits, acc_bits, in_dsp, ram,
                 lut_ram, taps=1, drains=1, kept_passes=2, weight_style="block",
                 weight_delay=0):
        channels, positions = weights.shape
        if not 1 <= lanes <= channels:
            raise ValueError(f"DepthwiseArray lanes must be in 1..{channels}, not {lanes!r}")
        if not 1 <= taps <= positions:
            raise ValueError(f"DepthwiseArray taps must be in 1..{positions}, not {taps!r}")
        if drains < 1 or lanes % drains:
            raise ValueError(f"DepthwiseArray drains must divide {lanes} lanes, not {drains!r}")
        if drains > 1 and channels % lanes:
            raise ValueError(f"DepthwiseArray with {drains} drains needs lanes that divide "
                             f"{channels} channels, not {lanes!r}")
        if kept_passes < 1:
            raise ValueError(f"DepthwiseArray kept_passes must be at least 1, not {kept_passes!r}")
        self.weights = weights
        self.channels = channels
        self.lanes = lanes
        self.taps = taps
        self.drains = drains
        self.kept_passes = kept_passes
        self.x_bits = x_bits
        self.x_signed = x_signed
        self.w_bits = w_bits
        self.acc_bits = acc_bits
        self.in_dsp = in_dsp
        self.ram = ram
        self.lut_ram = lut_ram
        self.weight_style = weight_style
        self.weight_delay = weight_delay
        self.blocks = -(-channels // lanes)
        self.words = -(-positions // taps)
        # Registers between the accepted word and its products' sum, then its pass' sum.
        self.sum_stage = 2 + weight_delay + (taps - 1).bit_length()
        self.pass_stage = self.sum_stage + (self.words > 1)
        self.latency = 2 + self.pass_stage + (kept_passes > 1)
        word = window_layout(bits=x_bits, signed=x_signed, lanes=taps * lanes)
        super().__init__({
            "i": In(stream.Signature(word)),
            **{f"o{n}": Out(stream.Signature(sum_layout(acc_bits))) for n in range(drains)},
        })

    def _memory_words(self):
        """Weights as memory words: [block, word] -> taps x lanes, lane 0 lowest."""
        words = []
        for block in range(self.blocks):
            channels = self.weights[block * self.lanes:(block + 1) * self.lanes]
            for word in range(self.words):
                value = 0
                for lane, channel in enumerate(channels):
                    for tap, weight in enumerate(channel[word * self.taps:(word + 1) * self.taps]):
                        position = tap * self.lanes + lane
                        value |= weight_code(int(weight), self.w_bits) << position * self.w_bits
                words.append(value)
        return words

    def elaborate(self, platform):
        m = Module()
        accept = Signal()
        m.d.comb += accept.eq(self.i.valid & self.i.ready)

        # The weights of the word that comes next are read before it comes.
        words = self._memory_words()
        tiling = tile_memory(self.ram, len(words), self.taps * self.lanes * self.w_bits)
        m.submodules.weights = weights = TiledMemory(tiling, words=words, style=self.weight_style)
        address = Signal(range(len(words)))
        codes = Signal.like(self.i.payload.data, reset_less=True)
        next_first = Signal(init=1)
        m.d.comb += [weights.read_address.eq(address), weights.read_enable.eq(1)]
        with m.If(accept):
            m.d.sync += [
                codes.eq(self.i.payload.data),
                next_first.eq(self.i.payload.last),
                address.eq(_next(address, len(words))),
            ]

        # What accompanies a word through the stages.
        taken, first, last, end = (
            [Signal(name=f"{name}{n}", reset_less=name in {"first", "end"})
             for n in range(self.pass_stage + 1)]
            for name in ("taken", "first", "last", "end")
        )
        m.d.sync += [
            taken[0].eq(accept),
            first[0].eq(next_first),
            last[0].eq(accept & self.i.payload.last),
            end[0].eq(self.i.payload.end),
        ]
        for flags in (taken, first, last, end):
            m.d.sync += [later.eq(earlier) for earlier, later in pairwise(flags)]

        factors = weights.read_data
        for n in range(self.weight_delay):
            later_codes = Signal.like(codes, name=f"codes{n}", reset_less=True)
            later_factors = Signal.like(factors, name=f"weights{n}", reset_less=True)
            m.d.sync += [later_codes.eq(codes), later_factors.eq(factors)]
            codes, factors = later_codes, later_factors
        sums = self._products(m, codes, factors)
        if self.words > 1:
            for lane, total in enumerate(sums):
                accumulator = Signal(signed(self.acc_bits), name=f"acc{lane}", reset_less=True)
                added = masked_sum(m, platform, ~first[self.sum_stage], accumulator, total,
                                   name=f"added{lane}")
                with m.If(taken[self.sum_stage]):
                    m.d.sync += accumulator.eq(added)
                sums[lane] = accumulator
        self._drain(m, accept, sums, capture=last[-1], end=end[-1])
        return m

    def _products(self, m, codes, weights):
        """Instantiate multipliers and adder trees; return a sum per lane."""
        operands = [(codes[n], weights.word_select(n, self.w_bits))
                    for n in range(self.taps * self.lanes)]
        products = []
        for n in range(0, len(operands), 2):
            pair = ProductPair(x_bits=self.x_bits, x_signed=self.x_signed, w_bits=self.w_bits,
                               in_dsp=self.in_dsp)
            m.submodules[f"products{n // 2}"] = pair
            ports = [(pair.x0, pair.w0, pair.p0), (pair.x1, pair.w1, pair.p1)]
            for (x, w, p), (code, weight) in zip(ports, operands[n:n + 2], strict=False):
                m.d.comb += [x.eq(code), w.eq(weight)]
                products.append(p)

        sums = []
        for lane in range(self.lanes):
            level = products[lane::self.lanes]
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
        per_drain = self.lanes // self.drains
        holding = Signal()
        load = Signal()
        done = Signal()
        entered, left, full = Signal(), Signal(), Signal()
        kept = _count(m, entered, left, most=self.kept_passes, name="kept")
        m.d.comb += [
            entered.eq(accept & self.i.payload.last),
            left.eq(holding & done),
            self.i.ready.eq(~self.i.payload.last | ~full),
        ]
        with m.If(entered != left):
            m.d.sync += full.eq(entered & (kept == self.kept_passes - 1))
        with m.If(load | done):
            m.d.sync += holding.eq(load)

        results = [Signal(signed(self.acc_bits), name=f"result{n}") for n in range(self.lanes)]
        m.d.comb += [result.eq(total) for result, total in zip(results, sums, strict=True)]
        kept_sums = Cat(*results, end)
        if self.kept_passes > 1:
            kept_sums, waiting = self._queue(m, kept_sums, capture, load)
            m.d.comb += load.eq(waiting & done)
        else:
            m.d.comb += load.eq(capture)

        present = self._present(m, load, per_drain)
        emptied = []
        for drain in range(self.drains):
            port = getattr(self, f"o{drain}")
            leaving = [Signal(signed(self.acc_bits), name=f"leaving{drain}_{n}", reset_less=True)
                       for n in range(per_drain)]
            leaving_end = Signal(name=f"leaving_end{drain}", reset_less=True)
            pending = Signal(range(per_drain + 1), name=f"pending{drain}")
            final = Signal(name=f"final{drain}")
            free = Signal(name=f"free{drain}")
            m.d.comb += [
                port.valid.eq(pending != 0),
                port.payload.acc.eq(leaving[0]),
                port.payload.last.eq(leaving_end & final),
                final.eq(pending <= 1),
                free.eq(~port.valid | port.ready),
            ]
            emptied.append(final & free)
            with m.If(load):
                m.d.sync += pending.eq(present)
            with m.Elif(port.valid & port.ready):
                m.d.sync += pending.eq(pending - 1)
            # What comes next is known early; only whether it comes now depends on ``ready``.
            with m.If(free):
                for n, register in enumerate(leaving):
                    total = kept_sums.word_select(drain * per_drain + n, self.acc_bits)
                    following = leaving[n + 1] if n + 1 < per_drain else total
                    m.d.sync += register.eq(Mux(final, total, following))
                with m.If(final):
                    m.d.sync += leaving_end.eq(kept_sums[-1])
        m.d.comb += done.eq(reduce(and_, emptied))

    def _queue(self, m, item, push, pop):
        """Keep the sums of passes that have to wait; return the oldest ones, and if there are any.

        It never runs over: a pass is admitted only when there is room.
        """
        depth = self.kept_passes - 1
        level = _count(m, push, pop, most=depth, name="level")
        if depth == 1:
            slot = Signal(len(item), name="waiting", reset_less=True)
            with m.If(push):
                m.d.sync += slot.eq(item)
            return slot, level != 0

        # Never in block RAM, which is counted.
        style = "distributed" if self.lut_ram else "logic"
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

    def _present(self, m, load, per_drain):
        """Return how many sums of the pass that is loaded leave by a drain."""
        rest = self.channels % self.lanes
        if not rest:
            return per_drain
        block = Signal(range(self.blocks))
        with m.If(load):
            m.d.sync += block.eq(_next(block, self.blocks))
        return Mux(block == self.blocks - 1, rest, per_drain)


def _next(position, count):
    """Return the position that follows, modulo ``count``."""
    return Mux(position == count - 1, 0, position + 1)


def _count(m, more, less, *, most, name):
    """Return how many have come and not gone."""
    count = Signal(range(most + 1), name=name)
    with m.If(more != less):
        m.d.sync += count.eq(Mux(more, count + 1, count - 1))
    return count
