"""Receiver of a camera with a parallel port, to which it gives its clock and its registers."""

from amaranth import *
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.cameras.open_drain import OpenDrainPads
from nnef_hw.boards.hardware.cameras.queues import LineQueue, PictureQueue
from nnef_hw.boards.hardware.cameras.sequencer import RegisterSequencer
from nnef_hw.host.protocol import LOST_BITS
from nnef_hw.rtl.streams.stream import Fifo

__all__ = ["DvpReceiver"]

BITS = 8


class DvpReceiver(wiring.Component):
    """Bytes of the middle of a camera's pictures, as codes of a network's frames.

    The lowest byte is the lowest code. The pixel clock is sampled: data and HREF count as it rises.
    As the first row that is taken begins, a picture is taken or lost. It is taken once the camera's
    registers are written, and if the one before is complete and, with ``alone``, has left the
    accelerator. With ``waiting`` that one may still be computed: the next one waits in block RAM.
    Lost pictures are counted. So are those with too few bytes, or whose bytes the accelerator has
    not taken in time; what is missing is filled with zeros, so that every frame has all its codes.

    Parameters
    ----------
    layout : StructLayout
        Beats of the input: one code of 8 bits or those of a pixel, and ``last``.
    rows, columns, channels : int
        What is taken of a picture, and how many of a pixel's bytes.
    step : int
        Bytes of a pixel.
    top, left : int
        Where the part begins that is taken.
    alone : bool
        A frame waits until the accelerator is empty.
    waiting : bool
        A whole picture may wait for that; the accelerator takes it with a beat per cycle.
    lines : int
        Data lines: 8, or 4 on which the upper half of a byte comes first.
    clock_divider : int
        Cycles of the camera's clock, an even number.
    vsync_in_frame : bool
        Level of VSYNC while a picture is sent.
    address, register_bytes, writes, quarter, wait
        The same as in :class:`.RegisterSequencer`.

    Members
    -------
    cam_xclk : Out(1)
        Clock of the camera.
    cam_pclk, cam_vsync, cam_href : In(1)
    cam_data : In(lines)
        Wires of the port, asynchronous.
    cam_scl : Out(1)
    cam_sda_low : Out(1)
    cam_sda_level : In(1)
        Wires of the registers.
    cam_error : Out(1)
        The camera does not acknowledge its registers; it is asked again and again.
    inside : In(1)
        A frame is inside the accelerator.
    o : Out(stream.Signature(layout))
    lost : Out(16)
        Pictures that were lost since the reset; it stays at its greatest value.
    """

    def __init__(self, layout, *, rows, columns, channels, step, top, left, alone, waiting,
                 lines, clock_divider, vsync_in_frame, address, register_bytes, writes, quarter,
                 wait):
        data = layout["data"].shape
        self.code, self.lanes = Shape.cast(data.elem_shape), data.length
        if self.code.width != BITS or self.lanes not in {1, channels}:
            raise ValueError(f"DvpReceiver gives bytes, one or a pixel's per beat, not {layout!r}")
        if clock_divider % 2 or lines not in {4, 8} or not 1 <= channels <= step:
            raise ValueError(f"DvpReceiver cannot have {lines} lines, {channels} of {step} bytes, "
                             f"and {clock_divider} cycles")
        self.layout, self.rows, self.columns, self.channels = layout, rows, columns, channels
        self.step, self.top, self.left = step, top, left
        self.alone, self.waiting = alone, waiting
        self.lines, self.clock_divider = lines, clock_divider
        self.vsync_in_frame = vsync_in_frame
        self.sequencer = RegisterSequencer(
            address=address, register_bytes=register_bytes, writes=writes, quarter=quarter,
            wait=wait)
        self.beats = rows * columns * channels // self.lanes
        if waiting:
            self.queue = PictureQueue(layout, self.beats)
        else:
            self.queue = Fifo(layout) if alone else LineQueue(
                layout, columns * channels // self.lanes)
        self.pads = (OpenDrainPads("cam_sda"),)
        super().__init__({
            "cam_xclk": Out(1), "cam_pclk": In(1), "cam_vsync": In(1), "cam_href": In(1),
            "cam_data": In(lines), "cam_scl": Out(1, init=1), "cam_sda_low": Out(1),
            "cam_sda_level": In(1), "cam_error": Out(1), "inside": In(1),
            "o": Out(stream.Signature(layout)), "lost": Out(LOST_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.sequencer = sequencer = self.sequencer
        m.d.comb += [
            self.cam_scl.eq(sequencer.scl), self.cam_sda_low.eq(sequencer.sda_low),
            sequencer.sda_level.eq(self.cam_sda_level), self.cam_error.eq(sequencer.failed),
        ]
        half = self.clock_divider // 2
        timer = Signal(range(half))
        with m.If(timer == half - 1):
            m.d.sync += [timer.eq(0), self.cam_xclk.eq(~self.cam_xclk)]
        with m.Else():
            m.d.sync += timer.eq(timer + 1)

        valid, byte = self._bytes(m)
        wanted = self._in_window(m, valid)
        self._frames(m, wanted, byte)
        return m

    def _bytes(self, m):
        """Return when a byte of a line is there, and it."""
        wires = Cat(self.cam_pclk, self.cam_vsync ^ (not self.vsync_in_frame), self.cam_href,
                    self.cam_data)
        levels = Signal(len(wires))
        m.submodules.synchronizer = cdc.FFSynchronizer(wires, levels)
        before = Signal(3)
        m.d.sync += before.eq(levels[:3])
        _, in_frame, href = levels[:3]
        rises = levels[0] & ~before[0] & href
        self.begins, self.ends = Signal(), Signal()
        self.line_ends = Signal()
        m.d.comb += [
            self.begins.eq(in_frame & ~before[1]),
            self.ends.eq(~in_frame & before[1]),
            self.line_ends.eq(~href & before[2]),
        ]
        data = levels[3:]
        if self.lines == BITS:
            return rises, data
        upper, is_lower = Signal(4), Signal()
        with m.If(rises):
            m.d.sync += [upper.eq(data), is_lower.eq(~is_lower)]
        with m.If(self.line_ends):
            m.d.sync += is_lower.eq(0)
        return rises & is_lower, Cat(data, upper)

    def _in_window(self, m, valid):
        """Return when a byte is one of those that are taken of a whole picture."""
        part = Signal(range(self.step))
        ends = valid & (part == self.step - 1)
        with m.If(valid):
            m.d.sync += part.eq(Mux(part == self.step - 1, 0, part + 1))
        starts = self.line_ends | self.begins
        with m.If(starts):
            m.d.sync += part.eq(0)
        in_row = self._along(m, "column", ends, starts, self.left, self.columns)
        self.in_rows = self._along(m, "row", self.line_ends, self.begins, self.top, self.rows)
        wanted = valid & in_row & self.in_rows
        return wanted & (part < self.channels) if self.channels < self.step else wanted

    @staticmethod
    def _along(m, name, steps, starts, skipped, count):
        """Return whether a place along an axis is one of those that are taken."""
        place = Signal(range(max(skipped, count)), name=name)
        inside = Signal(name=f"{name}_inside")
        past = Signal(name=f"{name}_past")
        with m.If(starts):
            m.d.sync += [place.eq(0), inside.eq(not skipped), past.eq(0)]
        with m.Elif(steps & ~past):
            final = Mux(inside, place == count - 1, place == skipped - 1) if skipped else (
                place == count - 1)
            m.d.sync += place.eq(place + 1)
            with m.If(final):
                m.d.sync += [place.eq(0), inside.eq(~inside), past.eq(inside)]
        return inside

    def _frames(self, m, wanted, byte):
        """Put bytes together to frames with all their codes, which wait in a queue."""
        m.submodules.queue = queue = self.queue
        taking, filling, loses = Signal(), Signal(), Signal()
        count = Signal(range(self.beats))
        pushes = Signal()
        payload = Signal(self.layout)
        is_last = count == self.beats - 1
        # the lowest byte is the lowest code
        code = (byte ^ (1 << BITS - 1 if self.code.signed else 0))[:BITS]
        complete = C(1)
        kept = []
        if self.lanes > 1:
            lane = Signal(range(self.lanes))
            kept = [Signal(BITS, name=f"kept{n}") for n in range(self.lanes - 1)]
            with m.If(wanted & taking):
                m.d.sync += lane.eq(Mux(lane == self.lanes - 1, 0, lane + 1))
                m.d.sync += [x.eq(y) for x, y in zip(kept, [*kept[1:], code], strict=True)]
            with m.If(self.begins):
                m.d.sync += lane.eq(0)
            complete = lane == self.lanes - 1
        zero = (1 << BITS - 1) if self.code.signed else 0
        m.d.comb += [
            pushes.eq(queue.i.ready & (filling | (taking & wanted & complete))),
            payload.last.eq(is_last),
            *(payload.data[n].eq(Mux(filling, zero, x)) for n, x in enumerate([*kept, code])),
            queue.i.payload.eq(payload),
            queue.i.valid.eq(pushes),
        ]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        with m.If(pushes):
            m.d.sync += count.eq(Mux(is_last, 0, count + 1))
            with m.If(is_last):
                m.d.sync += [taking.eq(0), filling.eq(0)]
        # no room: the picture is short of a code, and is filled at its end
        with m.If(self.ends & taking & ~(pushes & is_last)):
            m.d.sync += [taking.eq(0), filling.eq(1)]
            m.d.comb += loses.eq(1)
        # a picture that ends before its first row is none that could be taken
        expected = Signal()
        with m.If(self.begins):
            m.d.sync += expected.eq(self.sequencer.done)
        with m.If(self.ends):
            m.d.sync += expected.eq(0)
            with m.If(expected):
                m.d.comb += loses.eq(1)
        with m.Elif(expected & self.in_rows):
            m.d.sync += expected.eq(0)
            waits = taking | filling | (count != 0)
            if self.waiting:
                waits |= ~queue.empty
            elif self.alone:
                waits |= self.inside | self.o.valid
            with m.If(waits):
                m.d.comb += loses.eq(1)
            with m.Else():
                m.d.sync += taking.eq(1)
        with m.If(loses & ~self.lost.all()):
            m.d.sync += self.lost.eq(self.lost + 1)
