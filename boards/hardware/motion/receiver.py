"""Receiver of a sensor of motion, whose registers it writes and reads over two wires."""

from fractions import Fraction

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.boards.hardware.cameras.open_drain import OpenDrainPads
from nnef_hw.boards.hardware.microphones.bit_clock import BitClock
from nnef_hw.boards.hardware.microphones.sample_queue import SAMPLE_BITS, SampleQueue
from nnef_hw.boards.hardware.motion.two_wire import RegisterReader
from nnef_hw.boards.interfaces.motion.sensor import FACTOR_BITS
from nnef_hw.host.protocol import LOST_BITS
from nnef_hw.rtl.streams.stream import beat_layout
from nnef_hw.rtl.streams.width import Pack

__all__ = ["MotionReceiver"]

WORD_BYTES = SAMPLE_BITS // 8


class MotionReceiver(wiring.Component):
    """Numbers of a sensor of motion as codes of a network, in its frames.

    The sensor is read at a rate of the board's. A number has 16 bits, the upper ones first, and all
    of an instant follow each other. A code is the nearest whole number to ``factor / 2**shift``
    times a number, the greater one of two, and the zero point, within the limits of its format. The
    codes of an instant enter the :class:`.SampleQueue` once all numbers are there, or none does.

    Parameters
    ----------
    layout : StructLayout
        Beats of the input: one code or several, and ``last``.
    frame : int
        Codes of a frame.
    pixel : int
        Codes that whole beats are made of; the last one of them is filled up with 0.
    address, identity, writes, register, quarter, wait
        Those of a :class:`.RegisterReader`.
    words : int
        Numbers that are read, from that register on.
    kept : Sequence[int]
        Which of them are codes.
    factor, shift, zero_point : int
        How numbers become codes.
    edges, cycles : int
        Twice as many readings in so many cycles (:class:`.BitClock`).

    Members
    -------
    imu_scl : Out(1)
    imu_sda_low : Out(1)
    imu_sda_level : In(1)
        Wires of the registers.
    imu_error : Out(1)
        The sensor does not acknowledge, or is another one; it is asked again and again.
    o : Out(stream.Signature(layout))
    lost : Out(16)
        Instants that were lost since the reset; it stays at its greatest value.
    """

    def __init__(self, layout, *, frame, pixel, address, identity, writes, register, words, kept,
                 factor, shift, zero_point, edges, cycles, quarter, wait):
        data = layout["data"].shape
        self.code = Shape.cast(data.elem_shape)
        if self.code.width > SAMPLE_BITS:
            raise ValueError(f"a sensor gives codes of at most 16 bits, not {layout!r}")
        if frame < 1 or frame % len(kept):
            raise ValueError(f"a frame has whole instants of {len(kept)} numbers, not {frame}")
        if not 0 < factor < 1 << FACTOR_BITS or shift < 1:
            raise ValueError(f"numbers cannot become codes by {factor} / 2**{shift}")
        self.codes = {"bits": self.code.width, "signed": self.code.signed}
        self.frame, self.pixel, self.lanes, self.kept = frame, pixel, data.length, tuple(kept)
        self.factor, self.shift, self.zero_point = factor, shift, zero_point
        self.edges, self.cycles = edges, cycles
        self.reader = RegisterReader(
            address=address, identity=identity, writes=writes, register=register,
            count=WORD_BYTES * words, quarter=quarter, wait=wait)
        if 2 * Fraction(cycles, edges) < self.reader.cycles:
            raise ValueError(f"a reading takes {self.reader.cycles} cycles, and {cycles} cycles "
                             f"have {edges} halves of one")
        self.pads = (OpenDrainPads("imu_sda"),)
        super().__init__({
            "imu_scl": Out(1, init=1), "imu_sda_low": Out(1), "imu_sda_level": In(1),
            "imu_error": Out(1), "o": Out(stream.Signature(layout)), "lost": Out(LOST_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = self.reader
        m.submodules.clock = clock = BitClock(edges=self.edges, cycles=self.cycles)
        m.submodules.queue = queue = SampleQueue(
            beat_layout(**self.codes, lanes=1), frame=self.frame, channels=len(self.kept))
        m.d.comb += [
            self.imu_scl.eq(reader.scl), self.imu_sda_low.eq(reader.sda_low),
            reader.sda_level.eq(self.imu_sda_level), self.imu_error.eq(reader.failed),
            reader.begin.eq(clock.falls), self.lost.eq(queue.lost),
        ]
        given = queue.o
        if self.lanes > 1:
            m.submodules.pack = pack = Pack(parts.Pack(
                **self.codes, lanes=self.lanes, in_lanes=1, channels=self.pixel))
            wiring.connect(m, given, pack.i)
            given = pack.o
        wiring.connect(m, given, wiring.flipped(self.o))

        # The bytes of an instant, the last one lowest.
        instant = Signal(8 * WORD_BYTES * len(self.kept))
        place, complete = Signal(range(reader.count)), Signal()
        is_kept = Cat(n // WORD_BYTES in self.kept for n in range(reader.count))
        with m.If(reader.taken):
            m.d.sync += place.eq(Mux(reader.ended, 0, place + 1))
            with m.If(is_kept.bit_select(place, 1)):
                m.d.sync += instant.eq(Cat(reader.byte, instant))
        with m.If(reader.failed):
            m.d.sync += place.eq(0)
        m.d.sync += complete.eq(reader.taken & reader.ended)
        self._codes(m, instant, complete, queue)
        return m

    def _codes(self, m, instant, complete, queue):
        """Make a code of each number, a bit of the factor per cycle."""
        word = Signal(signed(SAMPLE_BITS))
        upper = Signal(signed(SAMPLE_BITS + 2))
        lower = Signal(FACTOR_BITS)
        left, step = Signal(range(len(self.kept) + 1)), Signal(range(FACTOR_BITS + 1))
        m.d.comb += word.eq(instant[-SAMPLE_BITS:])
        factor = Const(self.factor, FACTOR_BITS)
        is_set = factor.bit_select(step[: (FACTOR_BITS - 1).bit_length()], 1)
        added = Mux(is_set, upper + word, upper)
        multiplies = step != FACTOR_BITS
        product = Cat(lower, upper).as_signed()
        rounded = (product + (1 << self.shift - 1) >> self.shift) + self.zero_point
        lowest = -(1 << self.code.width - 1) if self.code.signed else 0
        highest = lowest + (1 << self.code.width) - 1
        limited = Mux(rounded > highest, highest, rounded)
        m.d.comb += [
            queue.sample.eq(Mux(rounded < lowest, lowest, limited)),
            queue.taken.eq((left != 0) & ~multiplies),
        ]
        with m.If(complete):
            m.d.sync += [left.eq(len(self.kept)), step.eq(0), upper.eq(0)]
        with m.Elif(left != 0):
            with m.If(multiplies):
                m.d.sync += [step.eq(step + 1), Cat(lower, upper).eq(Cat(lower[1:], added))]
            with m.Else():
                m.d.sync += [
                    left.eq(left - 1), step.eq(0), upper.eq(0),
                    instant.eq(instant << SAMPLE_BITS),
                ]
