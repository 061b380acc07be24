"""Writes registers over two wires, as I2C and SCCB have them."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.interfaces.cameras.camera import PAUSE

__all__ = ["RegisterSequencer"]


class RegisterSequencer(wiring.Component):
    """Write a list of registers after the reset; begin anew if nobody acknowledges.

    A write is a start, the address, the register, the value and a stop; each byte is acknowledged.

    Parameters
    ----------
    address : int
        Of seven bits.
    register_bytes : int
        Bytes of a register's number.
    writes : Sequence[tuple[int, int]]
        Registers and values; a ``PAUSE`` waits.
    quarter : int
        Cycles of a quarter of a bit, at least 8: the level of a wire comes a few cycles later.
    pause, retry : int
        Cycles of a pause, and after a byte that nobody acknowledged.

    Members
    -------
    scl : Out(1)
        Clock, high between two writes.
    sda_low : Out(1)
        Pull the data wire low.
    sda_level : In(1)
        Its level.
    done : Out(1)
        All is written, and was acknowledged.
    failed : Out(1)
        Nobody has acknowledged a byte since the reset, or since everything was written.
    """

    def __init__(self, *, address, register_bytes, writes, quarter, pause, retry):
        if quarter < 8 or not writes:
            raise ValueError(f"RegisterSequencer needs registers and 8 cycles, not {quarter}")
        self.address, self.register_bytes, self.writes = address, register_bytes, tuple(writes)
        self.quarter, self.pause, self.retry = quarter, pause, retry
        super().__init__({
            "scl": Out(1, init=1), "sda_low": Out(1), "sda_level": In(1),
            "done": Out(1), "failed": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        count = 2 + self.register_bytes
        bits = 9 * count
        index = Signal(range(len(self.writes)))
        word = Signal(8 * (count - 1))
        is_pause = Signal()
        with m.Switch(index):
            for n, write in enumerate(self.writes):
                with m.Case(n):
                    if write == PAUSE:
                        m.d.comb += is_pause.eq(1)
                    else:
                        m.d.comb += word.eq(write[0] << 8 | write[1])
        # high bits first, a released wire behind each byte
        data = [word.word_select(n, 8) for n in range(count - 1)] + [C(self.address << 1, 8)]
        whole = Cat(*(Cat(C(1, 1), byte) for byte in data))

        timer = Signal(range(max(self.quarter, self.pause, self.retry)))
        phase = Signal(2)
        place = Signal(range(9))
        byte = Signal(range(count))
        shift = Signal(bits)
        bad = Signal()
        is_last = index == len(self.writes) - 1
        following = Signal.like(index)
        m.d.comb += following.eq(index + 1)
        with m.If(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            with m.FSM():
                with m.State("NEXT"):
                    with m.If(is_pause):
                        m.d.sync += [timer.eq(self.pause - 1), index.eq(following)]
                    with m.Elif(~self.done):
                        m.d.sync += [shift.eq(whole), bad.eq(0), byte.eq(0), place.eq(0),
                                     self.sda_low.eq(1), timer.eq(self.quarter - 1)]
                        m.next = "START"
                with m.State("START"):
                    m.d.sync += [self.scl.eq(0), phase.eq(0), timer.eq(self.quarter - 1)]
                    m.next = "BITS"
                with m.State("BITS"):
                    m.d.sync += [phase.eq(phase + 1), timer.eq(self.quarter - 1)]
                    with m.Switch(phase):
                        with m.Case(0):
                            m.d.sync += self.sda_low.eq(~shift[-1])
                        with m.Case(1):
                            m.d.sync += self.scl.eq(1)
                        with m.Case(2):
                            with m.If(place == 8):
                                m.d.sync += bad.eq(bad | self.sda_level)
                        with m.Case(3):
                            m.d.sync += [self.scl.eq(0), shift.eq(shift << 1),
                                         place.eq(place + 1)]
                            with m.If(place == 8):
                                m.d.sync += [place.eq(0), byte.eq(byte + 1)]
                                with m.If(bad | (byte == count - 1)):
                                    m.next = "STOP"
                with m.State("STOP"):
                    m.d.sync += [phase.eq(phase + 1), timer.eq(self.quarter - 1)]
                    with m.Switch(phase):
                        with m.Case(0):
                            m.d.sync += self.sda_low.eq(1)
                        with m.Case(1):
                            m.d.sync += self.scl.eq(1)
                        with m.Case(2):
                            m.d.sync += self.sda_low.eq(0)
                        with m.Case(3):
                            m.next = "NEXT"
                            with m.If(bad):
                                m.d.sync += [self.failed.eq(1), index.eq(0),
                                             timer.eq(self.retry - 1)]
                            with m.Elif(is_last):
                                m.d.sync += [self.done.eq(1), self.failed.eq(0)]
                            with m.Else():
                                m.d.sync += index.eq(following)
        return m
