"""Pooling of windows that do not overlap: reduces pixels as they come, without a line buffer."""

from dataclasses import dataclass
from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.parts.images.runningpool import AHEAD
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.base.memory import SinglePortMemory, TiledMemory
from nnef_hw.rtl.base.primitives import masked_sum
from nnef_hw.rtl.streams.stream import beat_layout, code_streams

__all__ = ["RunningMax", "RunningSum"]



class RunningMax(wiring.Component):
    """Maximum over every window and channel; golden model: ``max`` over the window's pixels.

    Takes a one-code beat per cycle for ever, frame after frame; with ``single_port`` one in three
    cycles. The beats of a window's last pixel bring its results: each is given in the cycle after
    its beat, and waits in the output register, which only such beats wait for. Pixels outside all
    windows are taken and dropped.

    What was found so far stands in a memory, one word per channel and window of a row.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    def __init__(self, part: parts.RunningMax):
        self.reduction = _Reduction(part, Shape(part.result_bits, part.signed))
        super().__init__(code_streams(part))

    def elaborate(self, platform):
        m = Module()
        code = self.i.payload.data[0]
        best, first, following = self.reduction.add(m, self.i, self.o)
        m.d.comb += following.eq(Mux(first | (code > best), code, best))
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.payload.data[0].eq(following)
        return m


class RunningSum(wiring.Component):
    """Sum over every window and channel, for averages; golden model: ``sum`` over its pixels.

    Throughput, stalls and memory as :class:`RunningMax`.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(sum_layout))
    """

    def __init__(self, part: parts.RunningSum):
        self.reduction = _Reduction(part, signed(part.result_bits))
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "o": Out(stream.Signature(sum_layout(part.result_bits))),
        })

    def elaborate(self, platform):
        m = Module()
        total, first, following = self.reduction.add(m, self.i, self.o)
        m.d.comb += following.eq(masked_sum(m, platform, ~first, total, self.i.payload.data[0],
                                            name="added"))
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.payload.acc[0].eq(following)
        return m


@dataclass
class _Beat:
    """Treatment of a beat: the place of its result so far, and its role in its window."""

    slot: Value
    first: Value
    final: Value
    last: Value
    kept: Value

    def __iter__(self):
        yield from (self.slot, self.first, self.final, self.last, self.kept)


class _Axis:
    """Where a beat stands along rows or columns, by counters that ``step`` moves on."""

    def __init__(self, m, step, extent, kernel, *, start, name):
        covered = extent // kernel * kernel
        position = Signal(range(extent), name=name, init=start)
        self.ends = Signal(name=f"{name}_ends")
        m.d.comb += self.ends.eq(position == extent - 1)
        with m.If(step):
            m.d.sync += position.eq(Mux(self.ends, 0, position + 1))
        if kernel == extent:
            inside = position
        elif kernel & (kernel - 1) == 0:
            inside = position[: kernel.bit_length() - 1]
        else:
            inside = Signal(range(kernel), name=f"{name}_inside", init=start % kernel)
            with m.If(step):
                m.d.sync += inside.eq(Mux(self.ends | (inside == kernel - 1), 0, inside + 1))
        self.covered = position < covered if covered < extent else Const(1)
        self.first = inside == 0
        self.final = inside == kernel - 1
        self.last = position == covered - 1


class _Reduction:
    """Base of both reductions: counters, handshake and the results so far."""

    def __init__(self, part, shape):
        self.part = part
        self.window = part.window
        self.shape = shape
        self.channels = part.window.channel_blocks

    def add(self, m, i, o):
        """Return the window's result so far, if there is none yet, and the next one, to be set."""
        accept, free = Signal(), Signal()
        following = Signal(self.shape)
        ahead = 1 if self.part.single_port else AHEAD
        beats = [self._counters(m, accept, ahead)]
        for n in reversed(range(ahead)):
            before = self._beat_at(n)
            beats.append(_Beat(*(
                Signal.like(value, name=f"{field}{n}", init=init)
                for (field, init), value in zip(vars(before).items(), beats[-1], strict=True)
            )))
        with m.If(accept):
            m.d.sync += [later.eq(earlier) for pair in pairwise(beats)
                         for earlier, later in zip(*pair, strict=True)]
        beat = beats[-1]
        m.d.comb += [
            i.ready.eq(free & (~beat.final | ~o.valid | o.ready)),
            accept.eq(i.valid & i.ready),
        ]
        with m.If(o.ready):
            m.d.sync += o.valid.eq(0)
        with m.If(accept & beat.final):
            m.d.sync += [o.valid.eq(1), o.payload.last.eq(beat.last)]
        if self.part.single_port:
            kept = self._share(m, accept, free, beat, following)
        else:
            m.d.comb += free.eq(1)
            kept = self._keep(m, accept, beats[0], beat, following)
        return kept, beat.first, following

    def _counters(self, m, accept, start):
        """Count beats from ``start`` on; return what is to be done with that beat."""
        window, channels = self.window, self.channels
        at = start % window.beats
        pixel, at_channel = divmod(at, channels)
        row, column = divmod(pixel, window.width)
        channel = Signal(range(channels), init=at_channel)
        pixel_ends, row_ends = Signal(), Signal()
        m.d.comb += pixel_ends.eq(channel == channels - 1)
        with m.If(accept):
            m.d.sync += channel.eq(Mux(pixel_ends, 0, channel + 1))
        columns = _Axis(m, accept & pixel_ends, window.width, window.kernel[1], start=column,
                        name="column")
        m.d.comb += row_ends.eq(pixel_ends & columns.ends)
        rows = _Axis(m, accept & row_ends, window.height, window.kernel[0], start=row, name="row")
        kept = columns.covered & rows.covered
        slot = channel
        if self.part.slots > channels:
            slot = Signal(range(self.part.slots), init=self._beat_at(start).slot)
            # A pixel is followed by another one of its window, or by the next window of its row.
            following = Mux(columns.final, slot + 1, slot - (channels - 1))
            with m.If(accept):
                m.d.sync += slot.eq(Mux(row_ends, 0, Mux(pixel_ends, following, slot + 1)))
        return _Beat(
            slot=slot, first=columns.first & rows.first,
            final=columns.final & rows.final & kept,
            last=columns.last & rows.last & pixel_ends, kept=kept,
        )

    def _beat_at(self, n):
        """Return the values of the n-th beat."""
        window = self.window
        pixel, channel = divmod(n % window.beats, self.channels)
        row, column = divmod(pixel, window.width)
        (kernel_rows, kernel_columns) = window.kernel
        kept = row < window.out_height * kernel_rows and column < window.out_width * kernel_columns
        slot = channel
        if self.part.slots > self.channels:
            slot += column // kernel_columns * self.channels
        final = row % kernel_rows == kernel_rows - 1 and column % kernel_columns == (
            kernel_columns - 1)
        return _Beat(
            slot=slot % (1 << (self.part.slots - 1).bit_length()),
            first=int(row % kernel_rows == 0 and column % kernel_columns == 0),
            final=int(final and kept),
            last=int(row == window.out_height * kernel_rows - 1
                     and column == window.out_width * kernel_columns - 1
                     and channel == self.channels - 1),
            kept=int(kept),
        )

    def _keep(self, m, accept, ahead, beat, following):
        """Store results in block RAM, or registers; return that of the current beat."""
        kept = Signal(self.shape, reset_less=True)
        if self.part.memory is None:
            return self._rotate(m, accept, beat, following, kept)
        m.submodules.results = results = TiledMemory(self.part.memory, writable=True)
        m.d.comb += [
            results.write_address.eq(beat.slot),
            results.write_enable.eq(accept & beat.kept),
            results.write_data.eq(following),
            results.read_address.eq(ahead.slot),
            results.read_enable.eq(accept),
        ]
        with m.If(accept):
            m.d.sync += kept.eq(results.read_data)
        return kept

    def _rotate(self, m, accept, beat, following, kept):
        """Keep up to three results in registers by slot; return that of the current beat."""
        results = [Signal(self.shape, name=f"result{n}", reset_less=True)
                   for n in range(self.part.slots)]
        for n, result in enumerate(results):
            with m.If(accept & beat.kept & (beat.slot == n)):
                m.d.sync += result.eq(following)
        return Array(results)[beat.slot]

    def _share(self, m, accept, free, beat, following):
        """Store results in a single-port RAM: written, then the next one is read."""
        m.submodules.results = results = SinglePortMemory(
            self.part.single_port, depth=max(2, self.part.slots), width=self.shape.width
        )
        kept = Signal(self.shape, reset_less=True)
        read, found = Signal(), Signal()
        m.d.sync += [read.eq(accept), found.eq(read)]
        m.d.comb += [
            free.eq(~(read | found)),
            results.address.eq(beat.slot),
            results.write_enable.eq(accept & beat.kept),
            results.write_data.eq(following),
            results.read_enable.eq(read),
        ]
        with m.If(found):
            m.d.sync += kept.eq(results.read_data)
        return kept
