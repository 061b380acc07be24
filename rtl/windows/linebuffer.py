"""Line buffer: turns an activation stream into a stream of sliding-window words."""

from typing import NamedTuple

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import own_lut
from nnef_hw.rtl.streams.stream import beat_layout, code_shape, elastic_stages
from nnef_hw.rtl.windows.raster import padded_raster

__all__ = ["LineBuffer", "window_layout"]


def window_layout(*, bits, signed, lanes):
    """Payload of a window stream: one word of a window.

    ``last`` closes a pass over a window (design: T words), ``end`` the last pass of a frame.
    """
    return data.StructLayout({
        "data": data.ArrayLayout(code_shape(bits, signed), lanes),
        "last": 1,
        "end": 1,
    })


class _Read(NamedTuple):
    """Signals of reading a window: its begin, the release of its words, and its place."""

    begun: Signal
    released: Signal
    row_end: Signal
    frame_end: Signal

    def step(self, window):
        """Return the words from this window to the next one."""
        return Mux(self.frame_end, window.frame_step,
                   Mux(self.row_end, window.row_step, window.column_step))


class LineBuffer(wiring.Component):
    """Store padded rows in a circular block RAM and replay every window word by word.

    Golden model: :func:`nnef_hw.reference.running.windows` order, i.e. for every window in raster
    order, for every pass, the words (ky, kx, channel block); with ``window.by_channel`` pass n
    gives the words (ky, kx) of channel block n.

    One word is written and one read per cycle. A window is read as soon as all of it is stored; its
    first word leaves memory for good when the next window begins. ``o`` may stall at any time.
    Padding is written ahead of its frame's beats, but never so that a window leaves ahead of them.
    Of an image without an end (``window.goes_on``) frames are parts, whose windows read the rows of
    frames before; after reset these are rows of the padding's code, which are written once.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(window_layout))
    """

    def __init__(self, part: parts.LineBuffer):
        self.part = part
        layout = {"bits": part.bits, "signed": part.signed, "lanes": part.lanes}
        super().__init__({
            "i": In(stream.Signature(beat_layout(**layout))),
            "o": Out(stream.Signature(window_layout(**layout))),
        })

    def elaborate(self, platform):
        m = Module()
        window, depth = self.part.window, self.part.depth
        m.submodules.storage = storage = TiledMemory(
            self.part.memory, writable=True, registered=self.part.stages > 1)

        # Words stored beyond the current window, and free words besides the next one: the signs of
        # both tell who may go on, straight from registers. Rows that no window reads are released
        # before they are written. Early: a window's step counts as soon as it has begun if it has
        # another word, and its words are free a cycle after its last one.
        lead = Signal(range(-window.overdraft - window.span, depth - window.span + 1),
                      init=-window.span)
        room = Signal(range(-1, depth + window.overdraft), init=depth - 1)
        written = Signal()
        read = _Read(*(Signal(name=name) for name in _Read._fields))
        freed_words = passed_words = Mux(read.released, read.step(window), 0)
        if self.part.decides_early:
            # Reading is far from writing: what crosses is registers of single bits.
            before = _Read(*(_registered(m, flag, name=f"was_{name}")
                             for name, flag in zip(read._fields, read, strict=True)))
            if window.pass_words * window.passes > 1:
                passed_words = Mux(before.begun, before.step(window), 0)
            freed_words = Mux(before.released, before.step(window), 0)
        next_room, next_lead = Signal.like(room), Signal.like(lead)
        m.d.sync += [lead.eq(next_lead), room.eq(next_room)]
        if self.part.decides_early:
            # Whether a word is written is known late: both sums wait for it.
            rest, gain = Signal.like(room), Signal.like(lead)
            m.d.comb += [
                rest.eq(room + freed_words),
                gain.eq(lead - passed_words),
                next_room.eq(Mux(written, rest - 1, rest)),
                next_lead.eq(Mux(written, gain + 1, gain)),
            ]
            rooms = rest >= 0, rest > 0
        else:
            m.d.comb += [
                next_room.eq(room - written + freed_words),
                next_lead.eq(lead + written - passed_words),
            ]
            rooms = None

        self._write(m, platform, storage, room >= 0, rooms, written)
        self._read(m, storage, lead >= 0, read)
        return m

    def _write(self, m, platform, storage, room, rooms, written):
        """Write the padded image in raster order, padding without an input beat.

        ``rooms``, to decide early: whether there will be room if no word is written, and if one is.
        """
        window = self.part.window
        address = Signal(range(self.part.depth))
        # Whether rows above the first frame are still to be written.
        past = Signal(init=1) if window.past_words else Const(0)
        raster = padded_raster(m, window, written & ~past)
        passed = raster.passed_first, raster.passed_padding, Const(0)
        if window.past_words:
            position = Signal(range(window.past_words))
            stays_past = past & (position != window.past_words - 1)
            with m.If(written):
                m.d.sync += past.eq(stays_past)
            with m.If(written & past):
                m.d.sync += position.eq(position + 1)
            passed = (Mux(past, raster.first, passed[0]), Mux(past, raster.padding, passed[1]),
                      stays_past)

        def choose(has_room, first, padding, past):
            """Return whether a beat is taken, padding written, or written once a beat is there."""
            padding = padding | past
            # The first word of a frame, if it is padding, waits for a beat without taking it.
            waits = first & ~past if window.starts_in_padding else Const(0)
            return has_room & ~padding, has_room & padding & ~waits, has_room & padding & waits

        if rooms is not None:
            starts_padded = any(before for before, _ in window.padding) or window.past_words > 0
            starts_waiting = window.starts_in_padding and not window.past_words
            takes = Signal(init=not starts_padded)
            pads = Signal(init=starts_padded and not starts_waiting)
            begins = Signal(init=starts_waiting)
            alike = choose(rooms[0], raster.first, raster.padding, past)
            after = choose(rooms[1], *passed)
            m.d.sync += [flag.eq(Mux(written, *values)) for flag, *values in
                         zip((takes, pads, begins), after, alike, strict=True)]
            is_beat = takes
            m.d.comb += written.eq(own_lut(m, platform, _is_written, takes, pads, begins,
                                           self.i.valid, name="writes"))
        else:
            takes, pads, begins = choose(room, raster.first, raster.padding, past)
            is_beat = ~(raster.padding | past)
            m.d.comb += written.eq(_is_written(takes, pads, begins, self.i.valid))
        pad_word = Const(self.part.pad_code, self.part.bits).replicate(self.part.lanes)
        m.d.comb += [
            self.i.ready.eq(takes),
            storage.write_address.eq(address),
            storage.write_enable.eq(written),
            storage.write_data.eq(Mux(is_beat, self.i.payload.data.as_value(), pad_word)),
        ]
        m.d.sync += address.eq(address + written)

    def _read(self, m, storage, stored, read):
        """Read the words of every window, pass after pass."""
        window = self.part.window
        kernel_height, kernel_width = window.kernel
        inner_words = 1 if window.by_channel else window.channel_blocks
        inner = Signal(range(inner_words))
        tap_column = Signal(range(kernel_width))
        tap_row = Signal(range(kernel_height))
        pass_index = Signal(range(window.passes))
        column = Signal(range(window.out_width))
        row = Signal(range(window.out_height))
        base = Signal(range(self.part.depth))
        address = Signal(range(self.part.depth))

        running = Signal()
        issue = Signal()
        enables, _ = elastic_stages(m, running | stored, self.o, stages=self.part.stages)
        m.d.comb += [
            issue.eq(enables[0] & (running | stored)),
            storage.read_address.eq(address),
            # What is read without being issued is not taken for a word. Where block RAMs are far,
            # what decides is short.
            storage.read_enable.eq(enables[0] if self.part.stages > 1 else issue),
            *(storage.register_enable.eq(enable) for enable in enables[1:]),
            self.o.payload.data.eq(storage.read_data),
        ]

        last_inner = inner == inner_words - 1
        last_column = last_inner & (tap_column == kernel_width - 1)
        last_word = Signal()
        last_pass = Signal()
        last_window = Signal()
        row_end = column == window.out_width - 1
        m.d.comb += [
            last_word.eq(last_column & (tap_row == kernel_height - 1)),
            last_pass.eq(pass_index == window.passes - 1),
            last_window.eq(row_end & (row == window.out_height - 1)),
            read.begun.eq(issue & ~running),
            read.released.eq(issue & last_word & last_pass),
            read.row_end.eq(row_end),
            read.frame_end.eq(last_window),
        ]
        last, end = last_word, last_word & last_pass & last_window
        for enable in enables[:-1]:
            with m.If(enable):
                read_last, read_end = Signal(name="read_last"), Signal(name="read_end")
                m.d.sync += [read_last.eq(last), read_end.eq(end)]
            last, end = read_last, read_end
        with m.If(enables[-1]):
            m.d.sync += [self.o.payload.last.eq(last), self.o.payload.end.eq(end)]

        # Steps between consecutive words of a pass.
        blocks = window.channel_blocks
        tap_step = window.dilation[1] * blocks - (inner_words - 1)
        line_step = (window.dilation[0] * window.padded_width
                     - (kernel_width - 1) * window.dilation[1]) * blocks - (inner_words - 1)
        next_base = (base + read.step(window))[:len(base)]
        with m.If(issue):
            m.d.sync += running.eq(~(last_word & last_pass))
            with m.If(~last_inner):
                m.d.sync += [inner.eq(inner + 1), address.eq(address + 1)]
            with m.Elif(~last_column):
                m.d.sync += [inner.eq(0), tap_column.eq(tap_column + 1),
                             address.eq(address + tap_step)]
            with m.Elif(~last_word):
                m.d.sync += [inner.eq(0), tap_column.eq(0), tap_row.eq(tap_row + 1),
                             address.eq(address + line_step)]
            with m.Else():
                m.d.sync += [inner.eq(0), tap_column.eq(0), tap_row.eq(0)]
                with m.If(~last_pass):
                    m.d.sync += pass_index.eq(pass_index + 1)
                    if window.by_channel:
                        m.d.sync += address.eq(base + pass_index + 1)
                    else:
                        m.d.sync += address.eq(base)
                with m.Else():
                    m.d.sync += [
                        pass_index.eq(0),
                        base.eq(next_base),
                        address.eq(next_base),
                        column.eq(Mux(row_end, 0, column + 1)),
                    ]
                    with m.If(row_end):
                        m.d.sync += row.eq(Mux(last_window, 0, row + 1))


def _is_written(takes, pads, begins, valid):
    return pads | ((takes | begins) & valid)


def _registered(m, value, *, name):
    """Return a register of a value."""
    register = Signal.like(value, name=name)
    m.d.sync += register.eq(value)
    return register
