"""Banked line buffer: a memory per tap, so that a whole window leaves in every cycle."""

from collections import Counter

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.blockram import Tiling, tile_memory
from nnef_hw.rtl.bankaxis import BankAxis
from nnef_hw.rtl.linebuffer import window_layout
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.primitives import own_register
from nnef_hw.rtl.stream import beat_layout, elastic_stages

__all__ = ["BankedLineBuffer"]


class BankedLineBuffer(wiring.Component):
    """Give all taps of a channel block of a window at once, one word per cycle.

    Golden model: :func:`nnef_hw.reference.windows` order, i.e. for every window in raster order,
    for every pass, for every channel block, one word of ``taps * lanes`` codes (ky, kx, lane); with
    ``window.by_channel`` the words of a pass are the one of channel block n.

    Only pixels are stored, no padding, and no row or frame begins with extra cycles: a frame takes
    ``max(window.beats, words)`` cycles, if ``lines`` is at least the window's reach plus its stride
    in rows, plus ``-height % kernel`` if rows are split, and plus one where a row is one beat or an
    image is lower than the window. The last windows of a frame need no beat of the next one.

    Every tap has a memory of its own. Along each axis it either holds all positions (``split`` is
    false), or only those that are congruent modulo the kernel; then every window has each residue
    once, and multiplexers of up to 4 inputs rotate what is read into the order of the taps. That
    takes the least memory and suits LUT RAM; copies suit block RAM.

    Beats are taken while their row has room: row v, counted over all frames, in the cycle after row
    ``v - lines`` was read for the last time, i.e. its windows' last word was. The word of a window
    is read two cycles or more after its last tap's beat was taken, one per cycle, and moves through
    ``stages`` registers, each of which waits only if the next one does. Taps beyond the right or
    lower border stand behind the row's last beat, in the order of the padded image. Where rows are
    split, a frame counts as a multiple of the kernel's rows.

    Parameters
    ----------
    window : Window
        Geometry; the first window has a pixel.
    bits, signed, lanes : int, bool, int
        Format of an input beat.
    pad_code : int
        What stands for taps outside the image.
    lines : int
        Rows kept: a power of two, times the kernel's rows if they are split.
    split : tuple[bool, bool]
        Of rows and columns; kernel and dilation then have no common divisor.
    ram : BlockRam
        The device's block RAM.
    style : str
        ``"block"`` or ``"distributed"``, for LUT RAM.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(window_layout))
        Of ``taps * lanes`` codes.

    Attributes
    ----------
    tiling : Tiling
        One of the ``window.taps`` memories.
    stages : int
        Registers from a memory's address to ``o``.
    latency : int
        Cycles from the accepted beat that completes a word to its ``o.valid``.
    """

    def __init__(self, *, window, bits, signed, lanes, pad_code, lines, ram, split=(False, False),
                 style="block"):
        if window.starts_in_padding:
            raise ValueError("BankedLineBuffer needs a first window with a pixel")
        self.rows, self.columns = (
            BankAxis(extent, kernel, stride, dilation, before, positions, split=is_split)
            for extent, kernel, stride, dilation, (before, _), positions, is_split in zip(
                (window.height, window.width), window.kernel, window.stride, window.dilation,
                window.padding, (window.out_height, window.out_width), split, strict=True)
        )
        kept, rest = divmod(lines, self.rows.modulus)
        if rest or kept < 1 or kept & (kept - 1):
            raise ValueError(f"BankedLineBuffer lines must be a power of two times "
                             f"{self.rows.modulus}, not {lines!r}")
        if lines < window.reach[0]:
            raise ValueError(f"BankedLineBuffer lines must be at least {window.reach[0]}, "
                             f"not {lines!r}")
        self.window = window
        self.bits = bits
        self.lanes = lanes
        self.pad_code = pad_code
        self.lines = lines
        self.kept = kept
        self.style = style
        depth = self.columns.stored * window.channel_blocks * kept
        self.tiling = (tile_memory(ram, depth, bits * lanes) if style == "block"
                       else Tiling(depth, bits * lanes, depth, bits * lanes))
        rotations = len(self.rows.rotations) + len(self.columns.rotations)
        self.stages = 1 + max(1, rotations)
        self.latency = 2 + self.stages
        layout = {"bits": bits, "signed": signed}
        super().__init__({
            "i": In(stream.Signature(beat_layout(**layout, lanes=lanes))),
            "o": Out(stream.Signature(window_layout(**layout, lanes=lanes * window.taps))),
        })

    def elaborate(self, platform):
        m = Module()
        window = self.window
        memories = [[TiledMemory(self.tiling, writable=True, style=self.style)
                     for _ in range(self.columns.kernel)] for _ in range(self.rows.kernel)]
        for i, row in enumerate(memories):
            for j, memory in enumerate(row):
                m.submodules[f"bank_{i}_{j}"] = memory

        # Words of the padded image that are stored, less those that the next word to be read needs.
        blocks = window.channel_blocks
        (top, _), (left, _) = window.padding
        before = (top * window.padded_width + left) * blocks
        steps = (window.column_step, window.row_step, window.frame_step)
        border = (self.lines // window.height + 1) * (window.padded_height - window.height)
        most = (self.lines + border + 1) * window.padded_width * blocks
        lead = Signal(range(-window.span - max(steps), most),
                      init=before + blocks - 1 - window.span)
        came, arrived, consumed = (Signal(lead.shape(), name=name)
                                   for name in ("came", "arrived", "consumed"))
        m.d.sync += [arrived.eq(came), lead.eq(lead + arrived - consumed)]
        # Rows that may be written besides the current one; negative if not even that.
        frame_rows = self.rows.stored * self.rows.modulus
        room = Signal(range(-frame_rows, self.lines + frame_rows), init=self.lines - 1)
        begun, released = (Signal(range(frame_rows + 1), name=name)
                           for name in ("begun", "released"))
        m.d.sync += room.eq(room + released - begun)

        self._write(m, platform, memories, room >= 0, came, begun)
        self._read(m, memories, lead >= 0, consumed, released)
        return m

    def _write(self, m, platform, memories, room, came, begun):
        """Store beats in the memories that hold their row and column."""
        window = self.window
        blocks = window.channel_blocks
        accept, last_block, row_end, frame_end = (
            Signal(name=f"write_{name}") for name in ("accept", "last_block", "row_end",
                                                      "frame_end"))
        block = Signal(range(blocks), name="write_block")
        row = Signal(range(window.height), name="write_row")
        row_phase = Signal(range(self.rows.modulus), name="write_row_phase")
        column_phase = Signal(range(self.columns.modulus), name="write_column_phase")
        offset = Signal(range(self.columns.stored * blocks), name="write_offset")
        slot = Signal(range(self.kept), name="write_slot")
        final_phase = (window.width - 1) % self.columns.modulus
        m.d.comb += [
            self.i.ready.eq(room),
            accept.eq(self.i.valid & self.i.ready),
            last_block.eq(block == blocks - 1),
            row_end.eq((offset == self.columns.stored * blocks - 1)
                       & (column_phase == final_phase)),
            frame_end.eq(row_end & (row == window.height - 1)),
        ]
        side = (window.padded_width - window.width) * blocks
        turn = window.words - window.beats - (window.height - 1) * side
        skipped = -window.height % self.rows.modulus
        with m.If(accept):
            m.d.comb += [
                came.eq(1 + Mux(frame_end, turn, Mux(row_end, side, 0))),
                begun.eq(Mux(frame_end, 1 + skipped, row_end)),
            ]
            m.d.sync += [
                block.eq(Mux(last_block, 0, block + 1)),
                offset.eq(offset + 1),
            ]
            with m.If(last_block):
                m.d.sync += column_phase.eq(_next(column_phase, self.columns.modulus))
                with m.If(column_phase != self.columns.modulus - 1):
                    m.d.sync += offset.eq(offset - (blocks - 1))
            with m.If(row_end):
                m.d.sync += [
                    offset.eq(0),
                    column_phase.eq(0),
                    row.eq(Mux(frame_end, 0, row + 1)),
                    row_phase.eq(Mux(frame_end, 0, _next(row_phase, self.rows.modulus))),
                ]
                with m.If(frame_end | (row_phase == self.rows.modulus - 1)):
                    m.d.sync += slot.eq(slot + 1)

        # Beats go to all memories of the chip in two cycles: by a register for every row of them.
        address = self._address(offset, slot)
        for i, line in enumerate(memories):
            row_here = row_phase == i % self.rows.modulus
            here = [accept & row_here & (column_phase == n) for n in range(self.columns.modulus)]
            write = data.StructLayout({
                "here": len(here), "address": len(address), "data": self.bits * self.lanes,
            })  # fmt: skip
            beat = Cat(*here, address, self.i.payload.data)
            sent = data.View(write, own_register(m, platform, beat, name=f"written{i}"))
            for j, memory in enumerate(line):
                m.d.comb += [
                    memory.write_address.eq(sent.address),
                    memory.write_enable.eq(sent.here[j % len(here)]),
                    memory.write_data.eq(sent.data),
                ]

    def _address(self, offset, slot):
        return offset if self.kept == 1 else Cat(slot, offset)

    def _read(self, m, memories, stored, consumed, released):
        """Read a word of all memories per cycle and bring its taps into order."""
        window = self.window
        blocks = window.channel_blocks
        passes = 1 if window.by_channel else window.passes
        block = Signal(range(blocks))
        pass_index = Signal(range(passes))
        column = Signal(range(window.out_width))
        row = Signal(range(window.out_height))
        issue, last_block, window_end, row_end, frame_end = (
            Signal(name=f"read_{name}")
            for name in ("issue", "last_block", "window_end", "row_end", "frame_end"))
        enables, _ = elastic_stages(m, stored, self.o, stages=self.stages)
        m.d.comb += [
            issue.eq(stored & enables[0]),
            last_block.eq(block == blocks - 1),
            window_end.eq(last_block & (pass_index == passes - 1)),
            row_end.eq(window_end & (column == window.out_width - 1)),
            frame_end.eq(row_end & (row == window.out_height - 1)),
        ]
        with m.If(issue):
            m.d.comb += consumed.eq(
                1 + Mux(frame_end, window.frame_step - blocks,
                        Mux(row_end, window.row_step - blocks,
                            Mux(window_end, window.column_step - blocks,
                                Mux(last_block, -blocks, 0)))))
            m.d.sync += block.eq(Mux(last_block, 0, block + 1))
            with m.If(last_block):
                m.d.sync += pass_index.eq(Mux(window_end, 0, pass_index + 1))
            with m.If(window_end):
                m.d.sync += column.eq(Mux(row_end, 0, column + 1))
            with m.If(row_end):
                m.d.comb += released.eq(_lookup(m, row, self._released_rows(), name="row_release"))
                m.d.sync += row.eq(Mux(frame_end, 0, row + 1))

        offsets, column_phase = self._column_offsets(m, issue, last_block, window_end, row_end)
        slots, row_phase = self._row_slots(m, issue & row_end, frame_end)
        for line, slot in zip(memories, slots, strict=True):
            for memory, offset in zip(line, offsets, strict=True):
                m.d.comb += [
                    memory.read_address.eq(self._address(offset, slot)),
                    memory.read_enable.eq(issue),
                ]

        tags = {
            "last": Const(1) if window.by_channel else last_block,
            "end": frame_end,
        }
        for name, axis, position, phase in (("row", self.rows, row, row_phase),
                                            ("column", self.columns, column, column_phase)):
            for k in range(axis.kernel):
                tags[f"{name}{k}_outside"] = _lookup(m, position, axis.outside(k),
                                                     name=f"{name}{k}_outside")
            for n, rotation in enumerate(axis.rotations):
                select = f"{name}_rotation{n}"
                tags[select] = _lookup(m, phase, rotation.selects, name=select)
        self._restore(m, enables, memories, tags)

    def _released_rows(self):
        """Return by how many rows the first one needed moves on after every row of windows."""
        rows = self.rows
        first = [min(max(o * rows.stride - rows.before, 0), rows.extent)
                 for o in range(rows.positions)]
        return [later - earlier for earlier, later
                in zip(first, [*first[1:], rows.stored * rows.modulus], strict=True)]

    def _column_offsets(self, m, issue, last_block, window_end, row_end):
        """Return where in a row every memory is read, and the phase of the window's column."""
        axis, blocks = self.columns, self.window.channel_blocks
        phase = _phase(m, axis, issue & window_end, row_end, name="column_phase")
        offsets = []
        for port in range(axis.kernel):
            start = axis.quotient(port, -axis.before) * blocks
            width = (axis.stored * blocks - 1).bit_length()
            offset = Signal(width, init=start % (1 << width), name=f"offset{port}")
            steps = [advance * blocks - (blocks - 1) for advance in axis.advances(port)]
            step = _lookup(m, phase, steps, name=f"offset{port}_step")
            with m.If(issue):
                with m.If(row_end):
                    m.d.sync += offset.eq(offset.init)
                with m.Else():
                    m.d.sync += offset.eq(offset + Mux(window_end, step,
                                                       Mux(last_block, 1 - blocks, 1)))
            offsets.append(offset)
        return offsets, phase

    def _row_slots(self, m, row_end, frame_end):
        """Return which of its rows every memory is read in, and the phase of the window's row."""
        axis = self.rows
        phase = _phase(m, axis, row_end, frame_end, name="row_phase")
        first = Signal(range(self.kept), name="frame_slot")
        following = Signal.like(first)
        m.d.comb += following.eq(first + axis.stored)
        with m.If(row_end & frame_end):
            m.d.sync += first.eq(following)
        slots = []
        for port in range(axis.kernel):
            start = axis.quotient(port, -axis.before)
            slot = Signal(range(self.kept), init=start % self.kept, name=f"slot{port}")
            step = _lookup(m, phase, axis.advances(port), name=f"slot{port}_step")
            with m.If(row_end):
                m.d.sync += slot.eq(Mux(frame_end, following + start % self.kept, slot + step))
            slots.append(slot)
        return slots, phase

    def _restore(self, m, enables, memories, tags):
        """Rotate what the memories give into the order of the taps and put in the padding."""
        rows, columns = self.rows, self.columns
        words = [[memories[i][j].read_data for j in columns.port_order] for i in rows.port_order]
        rotations = [
            (f"{name}_rotation{n}", rotation.amounts, name == "row")
            for name, axis in (("column", columns), ("row", rows))
            for n, rotation in enumerate(axis.rotations)
        ]
        tags = _registered(m, enables[0], tags, stage=0)
        for stage, (select, amounts, by_row) in enumerate(rotations, 1):
            words = _rotate(m, words, amounts, tags[select], by_row=by_row, stage=stage)
            if stage < len(rotations):
                words = [list(_registered(m, enables[stage], dict(enumerate(line)),
                                          stage=f"{stage}_{y}").values())
                         for y, line in enumerate(words)]
                tags = _registered(m, enables[stage], tags, stage=stage)
        pad = Const(self.pad_code, self.bits).replicate(self.lanes)
        taps = [
            Mux(tags[f"row{y}_outside"] | tags[f"column{x}_outside"], pad, word)
            for y, line in enumerate(words) for x, word in enumerate(line)
        ]
        with m.If(enables[-1]):
            m.d.sync += [
                self.o.payload.data.eq(Cat(taps)),
                self.o.payload.last.eq(tags["last"]),
                self.o.payload.end.eq(tags["end"]),
            ]


def _phase(m, axis, advance, restart, *, name):
    """Count the phases of the windows along an axis."""
    first = -axis.before % axis.modulus
    if axis.stride % axis.modulus == 0:
        return Const(first, range(axis.modulus))
    phase = Signal(range(axis.modulus), init=first, name=name)
    following = [(n + axis.stride) % axis.modulus for n in range(axis.modulus)]
    with m.If(advance):
        m.d.sync += phase.eq(Mux(restart, first,
                                 _lookup(m, phase, following, name=f"{name}_following")))
    return phase


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


def _rotate(m, words, amounts, select, *, by_row, stage):
    """Rotate rows or columns of words by one of several amounts."""
    height, width = len(words), len(words[0])
    result = [[Signal.like(word, name=f"rotated{stage}_{y}_{x}") for x, word in enumerate(line)]
              for y, line in enumerate(words)]
    with m.Switch(select):
        for n, amount in enumerate(amounts):
            with m.Case(n) if n < len(amounts) - 1 else m.Default():
                down, right = (amount, 0) if by_row else (0, amount)
                m.d.comb += [
                    result[y][x].eq(words[(y + down) % height][(x + right) % width])
                    for y in range(height) for x in range(width)
                ]
    return result


def _registered(m, enable, values, *, stage):
    """Return registers of named values that take them while ``enable`` is set."""
    registers = {
        name: value if isinstance(value, Const)
        else Signal.like(value, name=f"stage{stage}_{name}", init=0, reset_less=True)
        for name, value in values.items()
    }
    with m.If(enable):
        m.d.sync += [register.eq(values[name]) for name, register in registers.items()
                     if not isinstance(register, Const)]
    return registers


def _next(position, count):
    """Return the position that follows, modulo ``count``."""
    return Mux(position == count - 1, 0, position + 1)
