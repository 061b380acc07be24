"""Parallel line buffer: a whole window of an image in every word."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import beat_layout
from nnef_hw.rtl.windows.linebuffer import window_layout
from nnef_hw.rtl.windows.raster import padded_raster

__all__ = ["ParallelLineBuffer"]


class ParallelLineBuffer(wiring.Component):
    """Give all taps of every window at once, for images whose pixels are one beat.

    Golden model: for every window in raster order, ``window.passes`` times, one word of ``taps *
    lanes`` codes: row, column, lane. Rows above the current one stand in a block RAM, one word per
    column; the window is a shift register.

    Takes a pixel per cycle; a window is given ``passes`` times while the next pixel waits. ``o``
    may stall at any time.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(window_layout))
    """

    def __init__(self, part: parts.ParallelLineBuffer):
        self.part = part
        layout = {"bits": part.bits, "signed": part.signed}
        words = window_layout(**layout, lanes=part.lanes * part.window.taps)
        super().__init__({
            "i": In(stream.Signature(beat_layout(**layout, lanes=part.lanes))),
            "o": Out(stream.Signature(words)),
        })

    def elaborate(self, platform):
        m = Module()
        window = self.part.window
        kernel_height, kernel_width = window.kernel
        pixel_bits = self.part.pixel_bits

        # A pixel is accepted, stands in front of the window for a cycle, then shifts in.
        accept = Signal()
        shift = Signal()
        waiting = Signal()
        raster = padded_raster(m, window, accept)
        row, column, padding = raster.row, raster.column, raster.padding
        fresh = Signal(pixel_bits, reset_less=True)
        fresh_row = Signal.like(row, reset_less=True)
        fresh_column = Signal.like(column, reset_less=True)
        free = Signal()
        pad_pixel = Const(self.part.pad_code, self.part.bits).replicate(self.part.lanes)
        m.d.comb += [
            free.eq(~waiting | shift),
            self.i.ready.eq(free & ~padding),
            accept.eq(free & (padding | self.i.valid)),
        ]
        with m.If(accept):
            m.d.sync += [
                fresh.eq(Mux(padding, pad_pixel, self.i.payload.data.as_value())),
                fresh_row.eq(row),
                fresh_column.eq(column),
            ]
        with m.If(free):
            m.d.sync += waiting.eq(accept)

        above = self._rows_above(m, column, accept, fresh, fresh_column, shift)
        taps = self._shift_register(m, Cat(above, fresh), shift)
        ordered = [taps[x].word_select(y, pixel_bits)
                   for y in range(kernel_height) for x in range(kernel_width)]

        pass_index = Signal(range(window.passes))
        final_pass = Signal()
        end = Signal()
        m.d.comb += [
            self.o.payload.data.eq(Cat(ordered)),
            self.o.payload.last.eq(1),
            final_pass.eq(pass_index == window.passes - 1),
            self.o.payload.end.eq(end & final_pass),
            shift.eq(waiting & (~self.o.valid | (self.o.ready & final_pass))),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += pass_index.eq(Mux(final_pass, 0, pass_index + 1))
            with m.If(final_pass):
                m.d.sync += self.o.valid.eq(0)
        with m.If(shift):
            m.d.sync += [
                self.o.valid.eq(self._is_window(m, fresh_row, fresh_column)),
                end.eq((fresh_row == self._last(0)) & (fresh_column == self._last(1))),
            ]
        return m

    def _rows_above(self, m, column, accept, fresh, fresh_column, shift):
        """Keep the last rows of every column; return those above the fresh pixel, oldest lowest."""
        if self.part.memory is None:
            return Const(0, 0)
        m.submodules.rows = rows = TiledMemory(self.part.memory, writable=True)
        m.d.comb += [
            rows.read_address.eq(column),
            rows.read_enable.eq(accept),
            rows.write_address.eq(fresh_column),
            rows.write_enable.eq(shift),
            rows.write_data.eq(Cat(rows.read_data, fresh) >> self.part.pixel_bits),
        ]
        return rows.read_data

    def _shift_register(self, m, newest, shift):
        """Return the window's columns, left to right."""
        columns = [Signal(len(newest), name=f"column{n}", reset_less=True)
                   for n in range(self.part.window.kernel[1])]
        with m.If(shift):
            m.d.sync += [left.eq(right) for left, right in pairwise(columns)]
            m.d.sync += columns[-1].eq(newest)
        return columns

    def _last(self, axis):
        """Return the padded coordinate of the pixel that completes the last window."""
        window = self.part.window
        positions = (window.out_height, window.out_width)[axis]
        return window.reach[axis] - 1 + (positions - 1) * window.stride[axis]

    def _is_window(self, m, row, column):
        """Whether the pixel at that place completes a window."""
        completes = Const(1)
        for axis, position in enumerate((row, column)):
            reach, stride = self.part.window.reach[axis], self.part.window.stride[axis]
            if stride == 1:
                completes = completes & (position >= reach - 1)
            else:
                hits = range(reach - 1, self._last(axis) + 1, stride)
                hit = Signal(name=f"hit{axis}")
                with m.Switch(position):
                    with m.Case(*hits):
                        m.d.comb += hit.eq(1)
                completes = completes & hit
        return completes
