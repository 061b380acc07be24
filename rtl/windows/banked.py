"""Banked line buffer: a memory per tap, so that a whole window leaves in every cycle."""

from collections import Counter
from operator import and_
from typing import NamedTuple

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import own_lut, own_register
from nnef_hw.rtl.streams.stream import beat_layout, elastic_stages
from nnef_hw.rtl.windows.linebuffer import window_layout

__all__ = ["BankedLineBuffer"]


class Axis(NamedTuple):
    """Rows or columns: positions of the image, and how windows step along them."""

    extent: int
    kernel: int
    stride: int
    dilation: int
    padding: tuple[int, int]
    windows: int

    def place(self, tap):
        """Return the position of a tap of the first window."""
        return self.dilation * tap - self.padding[0]

    def outside(self, tap):
        """Tell for every window whether a tap lies outside the image."""
        places = (self.place(tap) + n * self.stride for n in range(self.windows))
        return [not 0 <= place < self.extent for place in places]


class BankedLineBuffer(wiring.Component):
    """Give all taps of a channel block of a window at once, one word per cycle.

    Golden model: :func:`nnef_hw.reference.running.windows` order, i.e. for every window in raster
    order, for every pass, for every channel block, one word of ``taps * lanes`` codes (ky, kx,
    lane); with ``window.by_channel`` the words of a pass are the one of channel block n.

    Only pixels are stored, no padding, and no row or frame begins with extra cycles: a frame takes
    ``max(window.beats, words)`` cycles, if ``lines`` is at least the window's reach plus its stride
    in rows, plus one where a row is one beat or an image is lower than the window. The last windows
    of a frame need no beat of the next one.

    Every tap has a memory of its own, with all beats of the rows that are kept.

    Beats are taken while their row has room: row v, counted over all frames, in the cycle after row
    ``v - lines`` was read for the last time, i.e. its windows' last word was. The word of a window
    is read two cycles or more after its last tap's beat was taken, one per cycle, and moves through
    registers, each of which waits only if the next one does. Taps beyond the right or lower border
    stand behind the row's last beat, in the order of the padded image.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(window_layout))
        Windows of ``taps * lanes`` codes.
    """

    def __init__(self, part: parts.BankedLineBuffer):
        self.part = part
        self.window = window = part.window
        self.rows, self.columns = map(Axis, (window.height, window.width), window.kernel,
                                      window.stride, window.dilation, window.padding,
                                      (window.out_height, window.out_width))
        layout = {"bits": part.bits, "signed": part.signed}
        words = window_layout(**layout, lanes=part.lanes * window.taps)
        super().__init__({
            "i": In(stream.Signature(beat_layout(**layout, lanes=part.lanes))),
            "o": Out(stream.Signature(words)),
        })

    def elaborate(self, platform):
        m = Module()
        window, lines = self.window, self.part.lines
        memories = [[TiledMemory(self.part.memory, writable=True, registered=self.part.stages > 2)
                     for _ in range(self.columns.kernel)] for _ in range(self.rows.kernel)]
        for i, row in enumerate(memories):
            for j, memory in enumerate(row):
                m.submodules[f"bank_{i}_{j}"] = memory

        # Words of the padded image that are stored, less those that the next word to be read needs.
        blocks = window.channel_blocks
        (top, _), (left, _) = window.padding
        before = (top * window.padded_width + left) * blocks
        steps = (window.column_step, window.row_step, window.frame_step)
        border = (lines // window.height + 1) * (window.padded_height - window.height)
        most = (lines + border + 1) * window.padded_width * blocks
        lead = Signal(range(-window.span - max(steps), most),
                      init=before + blocks - 1 - window.span)
        written, readable, consumed, gain = (
            Signal(lead.shape(), name=name) for name in ("written", "readable", "consumed", "gain"))
        issue = Signal()
        m.d.comb += gain.eq(lead + readable)
        m.d.sync += [
            readable.eq(written),
            lead.eq(Mux(issue, gain - consumed, gain) if self.part.long_wires
                    else lead + readable - Mux(issue, consumed, 0)),
        ]
        # Rows that may be written besides the current one; negative if not even that.
        room = Signal(range(-window.height, lines + window.height), init=lines - 1)
        begun, released = (Signal(range(window.height + 1), name=name)
                           for name in ("begun", "released"))
        m.d.sync += room.eq(room + released - begun)

        self._write(m, platform, memories, room >= 0, written, begun)
        self._read(m, memories, lead >= 0, issue, consumed, released)
        return m

    def _write(self, m, platform, memories, room, written, begun):
        """Store beats in all memories."""
        window = self.window
        row_beats = window.width * window.channel_blocks
        accept, row_end, frame_end = (
            Signal(name=f"write_{name}") for name in ("accept", "row_end", "frame_end"))
        row = Signal(range(window.height), name="write_row")
        offset = Signal(range(row_beats), name="write_offset")
        slot = Signal(range(self.part.lines), name="write_slot")
        m.d.comb += [
            self.i.ready.eq(room),
            accept.eq(own_lut(m, platform, and_, self.i.valid, room, name="accepts")
                      if self.part.long_wires else self.i.valid & room),
            row_end.eq(offset == row_beats - 1),
            frame_end.eq(row_end & (row == window.height - 1)),
        ]
        side = (window.padded_width - window.width) * window.channel_blocks
        turn = window.words - window.beats - (window.height - 1) * side
        with m.If(accept):
            m.d.comb += [
                written.eq(1 + Mux(frame_end, turn, Mux(row_end, side, 0))),
                begun.eq(row_end),
            ]
            m.d.sync += offset.eq(Mux(row_end, 0, offset + 1))
            with m.If(row_end):
                m.d.sync += [row.eq(Mux(frame_end, 0, row + 1)), slot.eq(slot + 1)]

        # Beats go to all memories of the chip in two cycles: by a register for every row of them.
        address = Cat(slot, offset)
        write = data.StructLayout({
            "enable": 1, "address": len(address), "data": self.part.beat_bits,
        })  # fmt: skip
        for i, line in enumerate(memories):
            beat = Cat(accept, address, self.i.payload.data)
            sent = data.View(write, own_register(m, platform, beat, name=f"sent{i}"))
            for memory in line:
                m.d.comb += [
                    memory.write_address.eq(sent.address),
                    memory.write_enable.eq(sent.enable),
                    memory.write_data.eq(sent.data),
                ]

    def _read(self, m, memories, stored, issue, consumed, released):
        """Read a word of all memories per cycle and put in the padding."""
        window = self.window
        blocks = window.channel_blocks
        passes = 1 if window.by_channel else window.passes
        block = Signal(range(blocks))
        pass_index = Signal(range(passes))
        column = Signal(range(window.out_width))
        row = Signal(range(window.out_height))
        last_block, window_end, row_end, frame_end = (
            Signal(name=f"read_{name}")
            for name in ("last_block", "window_end", "row_end", "frame_end"))
        (enable, *further, enable_output), _ = elastic_stages(m, stored, self.o,
                                                              stages=self.part.stages)
        m.d.comb += [
            issue.eq(stored & enable),
            last_block.eq(block == blocks - 1),
            window_end.eq(last_block & (pass_index == passes - 1)),
            row_end.eq(window_end & (column == window.out_width - 1)),
            frame_end.eq(row_end & (row == window.out_height - 1)),
        ]
        m.d.comb += consumed.eq(
            1 + Mux(frame_end, window.frame_step - blocks,
                    Mux(row_end, window.row_step - blocks,
                        Mux(window_end, window.column_step - blocks,
                            Mux(last_block, -blocks, 0)))))
        with m.If(issue):
            m.d.sync += block.eq(Mux(last_block, 0, block + 1))
            with m.If(last_block):
                m.d.sync += pass_index.eq(Mux(window_end, 0, pass_index + 1))
            with m.If(window_end):
                m.d.sync += column.eq(Mux(row_end, 0, column + 1))
            with m.If(row_end):
                m.d.comb += released.eq(_lookup(m, row, self._released_rows(), name="row_release"))
                m.d.sync += row.eq(Mux(frame_end, 0, row + 1))

        offsets = self._column_offsets(m, issue, last_block, window_end, row_end)
        slots = self._row_slots(m, issue & row_end, frame_end)
        for line, slot in zip(memories, slots, strict=True):
            for memory, offset in zip(line, offsets, strict=True):
                m.d.comb += [
                    memory.read_address.eq(Cat(slot, offset)),
                    memory.read_enable.eq(enable if further else issue),
                    *(memory.register_enable.eq(register) for register in further),
                ]

        tags = {"last": Const(1) if window.by_channel else last_block, "end": frame_end}
        for name, axis, position in (("row", self.rows, row), ("column", self.columns, column)):
            for tap in range(axis.kernel):
                outside = f"{name}{tap}_outside"
                tags[outside] = _lookup(m, position, axis.outside(tap), name=outside)
        for stage, stage_enable in enumerate([enable, *further]):
            tags = _registered(m, stage_enable, tags, stage)
        pad = Const(self.part.pad_code, self.part.bits).replicate(self.part.lanes)
        taps = [
            Mux(tags[f"row{y}_outside"] | tags[f"column{x}_outside"], pad, memory.read_data)
            for y, line in enumerate(memories) for x, memory in enumerate(line)
        ]
        with m.If(enable_output):
            m.d.sync += [
                self.o.payload.data.eq(Cat(taps)),
                self.o.payload.last.eq(tags["last"]),
                self.o.payload.end.eq(tags["end"]),
            ]

    def _released_rows(self):
        """Return by how many rows the first one needed moves on after every row of windows."""
        rows = self.rows
        first = [min(max(rows.place(0) + n * rows.stride, 0), rows.extent)
                 for n in range(rows.windows)]
        return [later - earlier for earlier, later
                in zip(first, [*first[1:], rows.extent], strict=True)]

    def _column_offsets(self, m, issue, last_block, window_end, row_end):
        """Return where in a row the memories of every column of taps are read."""
        axis, blocks = self.columns, self.window.channel_blocks
        width = (axis.extent * blocks - 1).bit_length()
        step = axis.stride * blocks - (blocks - 1)
        offsets = []
        for tap in range(axis.kernel):
            init = axis.place(tap) * blocks % (1 << width)
            offset = Signal(width, init=init, name=f"offset{tap}")
            with m.If(issue):
                with m.If(row_end):
                    m.d.sync += offset.eq(offset.init)
                with m.Else():
                    m.d.sync += offset.eq(offset + Mux(window_end, step,
                                                       Mux(last_block, 1 - blocks, 1)))
            offsets.append(offset)
        return offsets

    def _row_slots(self, m, row_end, frame_end):
        """Return which of the kept rows the memories of every row of taps are read in."""
        axis, lines = self.rows, self.part.lines
        first = Signal(range(lines), name="frame_slot")
        following = Signal.like(first)
        m.d.comb += following.eq(first + axis.extent)
        with m.If(row_end & frame_end):
            m.d.sync += first.eq(following)
        slots = []
        for tap in range(axis.kernel):
            start = axis.place(tap) % lines
            slot = Signal(range(lines), init=start, name=f"slot{tap}")
            with m.If(row_end):
                m.d.sync += slot.eq(Mux(frame_end, following + start, slot + axis.stride))
            slots.append(slot)
        return slots


def _lookup(m, index, values, *, name):
    """Return ``values[index]``; the most frequent one needs no logic of its own."""
    values = [int(value) for value in values]
    common, count = Counter(values).most_common(1)[0]
    if count == len(values):
        return Const(common)
    result = Signal(range(min(values), max(values) + 1), name=name)
    m.d.comb += result.eq(common)
    with m.Switch(index):
        for value in set(values) - {common}:
            with m.Case(*(n for n, other in enumerate(values) if other == value)):
                m.d.comb += result.eq(value)
    return result


def _registered(m, enable, values, stage):
    """Return registers of named values that take them while ``enable`` is set."""
    registers = {
        name: value if isinstance(value, Const)
        else Signal.like(value, name=f"read{stage}_{name}", init=0, reset_less=True)
        for name, value in values.items()
    }
    with m.If(enable):
        m.d.sync += [register.eq(values[name]) for name, register in registers.items()
                     if not isinstance(register, Const)]
    return registers
