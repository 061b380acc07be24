"""A calculator of bytes: codes of float32 numbers, and the mean distance of a result to them."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.mlperf.assembly import Compute, Event, Source
from nnef_hw.boards.hardware.mlperf.routines import calculator_program

__all__ = ["Calculator"]


class Calculator(wiring.Component):
    """Run routines on bytes with one adder of eight bits: what takes long does not matter here.

    Golden models: :class:`nnef_hw.host.floats.FloatReading` and ``DistanceBenchmark.results`` of
    :mod:`nnef_hw.host.benchmarks`. A word of the program takes two cycles: it is fetched, and what
    it computes is there when the next one has been fetched.

    Parameters
    ----------
    reading : FloatReading
        How float32 numbers are read.
    distance : DistanceFormat
        What a distance is counted in.
    count : int
        Codes of a result, and numbers of an input.
    digits : int
        Decimal digits of a distance.

    Members
    -------
    clear : In(1)
        Forget bytes, and that a number was out of range.
    store : In(1)
        Take ``byte``; only while not ``busy``, lowest byte of a number first.
    byte : In(8)
    start : In(1)
        Measure the distance of a result, whose first code is wanted.
    rewind : In(1)
        The next number is the first one, of those that are read or of those that are measured.
    busy : Out(1)
        A routine runs.
    done : Out(1)
        ``code`` is that of a number, for one cycle.
    code : Out(bits)
    beyond : Out(1)
        A number, or the mean, was out of range since ``clear``.
    following : Out(1)
        The next code of the result is wanted.
    result : In(code)
        Code of the result, two cycles later.
    is_last : In(1)
        It is the last one.
    digit : Out(4)
    push : Out(1)
        ``digit`` is the next one, highest first, for one cycle.

    Attributes
    ----------
    latency : int
        Cycles of the longest routine, at most.
    """

    def __init__(self, reading, distance, *, count, digits):
        self.numbers, self.count = list(distance.numbers), count
        self.routines = calculator_program(reading, distance, count=count, digits=digits)
        self.latency = 2 * self.routines.longest + 2
        super().__init__({
            "clear": In(1),
            "store": In(1),
            "byte": In(8),
            "start": In(1),
            "rewind": In(1),
            "busy": Out(1),
            "done": Out(1),
            "code": Out(reading.bits),
            "beyond": Out(1),
            "following": Out(1),
            "result": In((len(self.numbers) - 1).bit_length()),
            "is_last": In(1),
            "digit": Out(4),
            "push": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        routines = self.routines
        m.submodules.rom = rom = memory.Memory(
            shape=routines.width, depth=1 << routines.address_bits, init=routines.encoded())
        fetch = rom.read_port()
        place, executing = Signal(routines.address_bits), Signal()
        word, accumulator, carry = fetch.data, Signal(8), Signal()
        m.d.comb += [fetch.addr.eq(place), fetch.en.eq(self.busy & ~executing),
                     self.digit.eq(accumulator)]
        m.d.sync += executing.eq(self.busy & ~executing)

        is_other, is_jump = word[0], word[1]
        condition, target = word[2:4], word[4:][: routines.address_bits]
        events = Signal(len(Event))
        with m.If(executing):
            m.d.sync += place.eq(place + 1)
            with m.If(is_other & is_jump & Array([1, carry, ~carry, self.is_last])[condition]):
                m.d.sync += place.eq(target)
            with m.If(is_other & ~is_jump):
                m.d.comb += events.eq(word[2:])
        for event, signal in (
            (Event.DONE, self.done), (Event.NEXT, self.following), (Event.PUSH, self.push),
        ):
            m.d.comb += signal.eq(events[event.bit_length() - 1])
        with m.If(events[Event.END.bit_length() - 1]):
            m.d.sync += self.busy.eq(0)
        with m.If(events[Event.BEYOND.bit_length() - 1]):
            m.d.sync += self.beyond.eq(1)
        with m.If(self.clear | self.store | self.start):
            m.d.sync += [self.busy.eq(1), place.eq(Cat(self.clear, self.start))]
        with m.If(self.clear):
            m.d.sync += self.beyond.eq(0)

        self._compute(m, word, ~executing & ~is_other, accumulator, carry)
        if len(self.code) <= 8:
            m.d.comb += self.code.eq(accumulator)
        else:
            before = Signal(8)
            with m.If(~executing & ~is_other):
                m.d.sync += before.eq(accumulator)
            m.d.comb += self.code.eq(Cat(before, accumulator))
        return m

    def _compute(self, m, word, computes, accumulator, carry):
        """Read a byte while a word is executed, and work on it in the next cycle."""
        routines = self.routines
        operation, writes = word[1:3], word[3]
        carries, source = word[4:6], word[6:8]
        address = word[8:][: routines.scratch_bits]
        biased = [(number + 0x8000) >> shift & 0xFF for number in self.numbers for shift in (0, 8)]
        index = Signal(range(self.count))
        with m.If(self.following):
            m.d.sync += index.eq(index + 1)
        with m.If(self.rewind):
            m.d.sync += index.eq(0)

        result = Signal(8)
        read = {}
        for kind, depth, init, place in (
            (Source.SCRATCH, len(routines.scratch), routines.scratch, address),
            (Source.REAL, 2 * self.count, [], Cat(address[0], index)),
            (Source.TABLE, len(biased), biased, Cat(address[0], self.result)),
        ):
            name = kind.name.lower()
            m.submodules[name] = held = memory.Memory(shape=8, depth=depth, init=init)
            port = held.read_port()
            m.d.comb += [port.addr.eq(place), port.en.eq(~computes)]
            read[kind] = port.data
            if kind != Source.TABLE:
                write = held.write_port()
                m.d.comb += [write.addr.eq(place), write.data.eq(result),
                             write.en.eq(computes & writes & (source == kind))]
        read[Source.BYTE] = self.byte
        other = Signal(8)
        m.d.comb += other.eq(Array([read[kind] for kind in Source])[source])
        subtracts = operation == Compute.SUBTRACT
        total = Signal(9)
        m.d.comb += total.eq(
            accumulator + (other ^ subtracts.replicate(8))
            + Mux(carries[1], carries[0], carry))
        with m.Switch(operation):
            with m.Case(Compute.LOAD):
                m.d.comb += result.eq(other)
            with m.Case(Compute.KEEP):
                m.d.comb += result.eq(accumulator)
            with m.Default():
                m.d.comb += result.eq(total)
        with m.If(computes):
            m.d.sync += accumulator.eq(result)
            with m.If(operation[0] ^ operation[1]):
                m.d.sync += carry.eq(total[8])
