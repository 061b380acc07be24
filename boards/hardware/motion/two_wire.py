"""Writes and reads registers over two wires, as I2C has them."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.cameras.open_drain import quarters

__all__ = ["RegisterReader"]


@dataclass(frozen=True)
class _Byte:
    """A byte on the wires: what stands before and behind it, who says it, and if that is known."""

    value: int = 0
    starts: bool = False
    ends: bool = False
    is_read: bool = False
    is_known: bool = False

    @property
    def bits(self):
        """Number by which the hardware knows it."""
        return self.value | (
            self.starts << 8 | self.ends << 9 | self.is_read << 10 | self.is_known << 11)


class RegisterReader(wiring.Component):
    """Write registers after the reset, then read some that follow each other, again and again.

    Before, it reads one that tells what the chip is. A write is a start, the address, the register,
    the value and a stop. A reading is a start, the address, the first register, another start, the
    address to read from, and all bytes, of which all but the last are acknowledged. If nobody
    acknowledges a byte, or the chip is another one, everything begins anew.

    Parameters
    ----------
    address : int
        Of seven bits.
    identity : tuple[int, int]
        Register that tells what the chip is, and what it holds.
    writes : Sequence[tuple[int, int]]
        Registers of eight bits, and their values.
    register : int
        The first register that is read.
    count : int
        How many are read.
    quarter : int
        Cycles of a quarter of a bit, at least 8: the level of a wire comes a few cycles later.
    wait : int
        Quarters of a bit before the first byte, and after a failure: a power of two.

    Members
    -------
    begin : In(1)
        Read as soon as all is written, and all is read that was wanted before.
    scl : Out(1)
        Clock, high between two transfers.
    sda_low : Out(1)
        Pull the data wire low.
    sda_level : In(1)
        Its level.
    byte : Out(8)
        A byte that was read.
    taken : Out(1)
        It is there in this cycle.
    ended : Out(1)
        With ``taken``: it is the last one of a reading.
    failed : Out(1)
        Nobody has acknowledged a byte, or the chip is another one, since the last reading.

    Attributes
    ----------
    cycles : int
        Cycles from ``begin`` to the end of a reading, at most, if nothing was wanted before.
    """

    def __init__(self, *, address, identity, writes, register, count, quarter, wait):
        if quarter < 8 or count < 1 or wait.bit_count() != 1:
            raise ValueError(f"RegisterReader needs 8 cycles, not {quarter}, a byte, not {count}, "
                             f"and a power of two, not {wait}")
        self.writes = tuple(writes)
        self.count, self.quarter, self.wait = count, quarter, wait
        number, value = identity
        before = [
            *_reading(address, number), _Byte(value, ends=True, is_read=True, is_known=True),
            *(byte for number, value in self.writes for byte in (
                _Byte(address << 1, starts=True), _Byte(number), _Byte(value, ends=True))),
        ]
        self.first_read = len(before)
        self.bytes = [
            *before, *_reading(address, register),
            *(_Byte(ends=n == count - 1, is_read=True) for n in range(count)),
        ]
        # three bytes, two starts and a stop, a state between two bytes, and a tick until it is seen
        self.cycles = quarter * (4 * (9 * (3 + count) + 3) + (3 + count) + 2)
        super().__init__({
            "begin": In(1), "scl": Out(1, init=1), "sda_low": Out(1), "sda_level": In(1),
            "byte": Out(8), "taken": Out(1), "ended": Out(1), "failed": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        first_read = self.first_read
        index = Signal(range(len(self.bytes)))
        value, starts, ends, is_read, is_known = Signal(8), *(Signal() for _ in range(4))
        with m.Switch(index):
            for n, byte in enumerate(self.bytes):
                with m.Case(n):
                    m.d.comb += Cat(value, starts, ends, is_read, is_known).eq(byte.bits)
        timer = Signal(range(self.quarter))
        ticks = timer == self.quarter - 1
        m.d.sync += timer.eq(Mux(ticks, 0, timer + 1))
        phase, bit = Signal(2), Signal(range(9))
        is_ninth = bit == 8
        bad, wanted = Signal(), Signal()
        # quarters of a bit to wait: until the highest bit is 1
        rest = Signal(range(self.wait + 1))
        m.d.sync += self.taken.eq(0)
        with m.If(ticks):
            with m.FSM():
                with m.State("WAIT"):
                    m.d.sync += rest.eq(rest + 1)
                    with m.If(rest[-1]):
                        m.d.sync += rest.eq(0)
                        m.next = "NEXT"
                with m.State("NEXT"):
                    m.d.sync += [phase.eq(0), bit.eq(0), bad.eq(0)]
                    with m.If((index != first_read) | wanted):
                        with m.If(index == first_read):
                            m.d.sync += wanted.eq(0)
                        with m.If(starts):
                            m.next = "START"
                        with m.Else():
                            m.next = "BITS"
                with m.State("START"), quarters(
                    m, phase, self.sda_low.eq(0), self.scl.eq(1), self.sda_low.eq(1)
                ):
                    m.d.sync += self.scl.eq(0)
                    m.next = "BITS"
                with m.State("BITS"):
                    m.d.sync += phase.eq(phase + 1)
                    with m.Switch(phase):
                        with m.Case(0):
                            # released for the other side: its bits, or its acknowledgement
                            low = Mux(is_ninth, is_read & ~ends,
                                      ~is_read & ~value.bit_select(~bit[:3], 1))
                            m.d.sync += self.sda_low.eq(low)
                        with m.Case(1):
                            m.d.sync += self.scl.eq(1)
                        with m.Case(2):
                            with m.If(~is_ninth):
                                m.d.sync += self.byte.eq(Cat(self.sda_level, self.byte[:-1]))
                            with m.Else():
                                m.d.sync += bad.eq(Mux(
                                    is_read, is_known & (self.byte != value), self.sda_level))
                        with m.Case(3):
                            m.d.sync += [self.scl.eq(0), bit.eq(bit + 1)]
                            with m.If(is_ninth):
                                m.d.sync += [
                                    self.taken.eq(is_read & ~is_known), self.ended.eq(ends),
                                ]
                                with m.If(bad | ends):
                                    m.next = "STOP"
                                with m.Else():
                                    m.d.sync += index.eq(index + 1)
                                    m.next = "NEXT"
                with m.State("STOP"), quarters(
                    m, phase, self.sda_low.eq(1), self.scl.eq(1), self.sda_low.eq(0)
                ):
                    m.next = "NEXT"
                    with m.If(bad):
                        m.d.sync += [self.failed.eq(1), index.eq(0)]
                        m.next = "WAIT"
                    with m.Elif(is_read & ~is_known):
                        m.d.sync += [self.failed.eq(0), index.eq(first_read)]
                    with m.Else():
                        m.d.sync += index.eq(index + 1)
        with m.If(self.begin):
            m.d.sync += wanted.eq(1)
        return m


def _reading(address, register):
    """Bytes ahead of those that are read from a register on."""
    return (_Byte(address << 1, starts=True), _Byte(register),
            _Byte(address << 1 | 1, starts=True))
