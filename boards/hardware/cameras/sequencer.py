"""Writes registers over two wires, as I2C and SCCB have them."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.cameras.open_drain import quarters
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
    wait : int
        Quarters of a bit of a pause, and after a byte that nobody acknowledged: a power of two.

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

    def __init__(self, *, address, register_bytes, writes, quarter, wait):
        if quarter < 8 or not writes or wait.bit_count() != 1:
            raise ValueError(f"RegisterSequencer needs registers and 8 cycles, not {quarter}, and "
                             f"a power of two, not {wait}")
        self.address, self.register_bytes, self.writes = address, register_bytes, tuple(writes)
        self.quarter, self.wait = quarter, wait
        super().__init__({
            "scl": Out(1, init=1), "sda_low": Out(1), "sda_level": In(1),
            "done": Out(1), "failed": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        count = 2 + self.register_bytes
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
        # the last bits first: behind each byte a released wire
        data = [word.word_select(n, 8) for n in range(count - 1)] + [C(self.address << 1, 8)]
        whole = Cat(*(Cat(C(1, 1), byte) for byte in data))

        timer = Signal(range(self.quarter))
        ticks = timer == self.quarter - 1
        m.d.sync += timer.eq(Mux(ticks, 0, timer + 1))
        phase = Signal(2)
        left = Signal(range(9 * count))
        ninth = Signal(range(9))
        bad = Signal()
        is_last = index == len(self.writes) - 1
        following = Signal.like(index)
        m.d.comb += following.eq(index + 1)
        # quarters of a bit to wait: until the highest bit is 1
        rest = Signal(range(self.wait + 1))
        with m.If(ticks):
            with m.FSM():
                with m.State("NEXT"):
                    m.d.sync += [left.eq(9 * count - 1), ninth.eq(0), bad.eq(0), phase.eq(0),
                                 rest.eq(0)]
                    with m.If(is_pause):
                        m.d.sync += index.eq(following)
                        m.next = "WAIT"
                    with m.Elif(~self.done):
                        m.d.sync += self.sda_low.eq(1)
                        m.next = "START"
                with m.State("WAIT"):
                    m.d.sync += rest.eq(rest + 1)
                    with m.If(rest[-1]):
                        m.next = "NEXT"
                with m.State("START"):
                    m.d.sync += self.scl.eq(0)
                    m.next = "BITS"
                with m.State("BITS"):
                    m.d.sync += phase.eq(phase + 1)
                    with m.Switch(phase):
                        with m.Case(0):
                            m.d.sync += self.sda_low.eq(~whole.bit_select(left, 1))
                        with m.Case(1):
                            m.d.sync += self.scl.eq(1)
                        with m.Case(2):
                            with m.If(ninth == 8):
                                m.d.sync += bad.eq(bad | self.sda_level)
                        with m.Case(3):
                            m.d.sync += [self.scl.eq(0), left.eq(left - 1), ninth.eq(ninth + 1)]
                            with m.If(ninth == 8):
                                m.d.sync += ninth.eq(0)
                                with m.If(bad | (left == 0)):
                                    m.next = "STOP"
                with m.State("STOP"), quarters(
                    m, phase, self.sda_low.eq(1), self.scl.eq(1), self.sda_low.eq(0)
                ):
                    m.next = "NEXT"
                    with m.If(bad):
                        m.d.sync += [self.failed.eq(1), index.eq(0)]
                        m.next = "WAIT"
                    with m.Elif(is_last):
                        m.d.sync += [self.done.eq(1), self.failed.eq(0)]
                    with m.Else():
                        m.d.sync += index.eq(following)
        return m
