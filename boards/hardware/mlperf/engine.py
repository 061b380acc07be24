"""The registers that the protocol's program works on: numbers, an input, runs, a result."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.mlperf.calculator import Calculator
from nnef_hw.boards.hardware.mlperf.frames import FrameStore, ResultStore
from nnef_hw.boards.hardware.mlperf.microseconds import Microseconds, one_less
from nnef_hw.boards.hardware.mlperf.program import (
    NUMBER_DIGITS,
    TIME_DIGITS,
    Action,
    Condition,
    Letter,
)
from nnef_hw.boards.hardware.mlperf.sequencer import CONDITIONS

__all__ = ["RunEngine"]


class RunEngine(wiring.Component):
    """Do the actions of a program, and tell it the facts that its conditions are about.

    Numbers have six decimal digits. Results are looked up: four digits for every code.

    Parameters
    ----------
    in_layout, out_layout : data.StructLayout
        Payloads of the accelerator's streams.
    facts : RunnerFacts
        What codes and digits are, see :mod:`nnef_hw.boards.interfaces.mlperf`.
    in_beats, out_beats : int
        Beats of a frame.

    Members
    -------
    action, nibble, sent : In
        Of the :class:`.Sequencer`.
    facts : Out(32)
        For it, and so are ``digit`` and ``time_digit``.
    memory_error : In(1)
        The accelerator's memory does not answer.
    o, i : stream.Signature
        Beats for the accelerator, and its results.

    Attributes
    ----------
    latency : int
        Cycles from the end of an inference until the next one's first beat.
    """

    latency = 2 + FrameStore.latency

    def __init__(self, in_layout, out_layout, facts, *, in_beats, out_beats):
        self.known = facts
        self.store = FrameStore(in_layout, beats=in_beats, channels=facts.channels)
        self.result = ResultStore(out_layout, beats=out_beats, codes=facts.results)
        formats = facts.formats
        self.calculator = None if formats.distance is None else Calculator(
            formats.reading, formats.distance, count=facts.results, digits=NUMBER_DIGITS)
        self.clock = Microseconds(digits=TIME_DIGITS, ticks=facts.ticks, cycles=facts.cycles)
        super().__init__({
            "action": In(range(max(Action) + 1)),
            "nibble": In(4),
            "sent": In(len(Letter)),
            "facts": Out(CONDITIONS),
            "digit": Out(4),
            "time_digit": Out(4),
            "memory_error": In(1),
            "o": self.store.signature.members["o"],
            "i": self.result.signature.members["i"],
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = self.store
        m.submodules.result = result = self.result
        m.submodules.clock = clock = self.clock
        wiring.connect(m, store.o, wiring.flipped(self.o))
        wiring.connect(m, wiring.flipped(self.i), result.i)
        action = self.action

        byte = Signal(8)
        loading, inferred, frozen = Signal(), Signal(), Signal()
        running, over, following = Signal(), Signal(), Signal()
        number = Signal(4 * NUMBER_DIGITS)
        top = number[-4:]
        is_final = number == 1
        with m.If((action == Action.DIGIT) | (action == Action.ONE) | (action == Action.TURN)
                  | self.sent[Letter.DIGIT]):
            digit = Mux(action == Action.DIGIT, self.nibble, Mux(action == Action.ONE, 1, top))
            m.d.sync += number.eq(Cat(digit[:4], number))
        with m.If(following):
            m.d.sync += number.eq(one_less(number))
        with m.Switch(action):
            with m.Case(Action.CLEAR):
                m.d.sync += number.eq(0)
            with m.Case(Action.FREEZE):
                m.d.sync += frozen.eq(1)
            with m.Case(Action.THAW):
                m.d.sync += frozen.eq(0)
            with m.Case(Action.NIBBLE):
                m.d.sync += byte.eq(Cat(self.nibble, byte[:4]))
            with m.Case(Action.BEGIN):
                m.d.sync += loading.eq(1)
            with m.Case(Action.CANCEL):
                m.d.sync += [loading.eq(0), inferred.eq(0)]
            with m.Case(Action.RUN):
                m.d.sync += [running.eq(1), frozen.eq(0)]

        # one inference after the other
        m.d.comb += [
            following.eq(over & store.idle),
            store.start.eq((action == Action.RUN) | following & ~is_final),
        ]
        with m.If(result.ended):
            m.d.sync += over.eq(1)
        with m.If(following):
            m.d.sync += over.eq(0)
            with m.If(is_final):
                m.d.sync += [running.eq(0), frozen.eq(1), inferred.eq(1)]

        m.d.comb += [
            store.clear.eq(action == Action.CANCEL),
            clock.frozen.eq(frozen),
            clock.turn.eq((action == Action.TURN_TIME) | self.sent[Letter.TIME]),
            self.digit.eq(top),
            self.time_digit.eq(clock.top),
        ]
        is_busy, beyond = C(0), C(0)
        if self.calculator is None:
            self._look_up(m, action, byte, number)
        else:
            m.submodules.calculator = self.calculator
            is_busy, beyond = self.calculator.busy, self.calculator.beyond
            self._calculate(m, action, byte, number)
        size = int(str(self.known.formats.size), 16)
        facts = {
            Condition.DIGIT: top != 0, Condition.TIME: clock.top != 0,
            Condition.ZERO: number == 0, Condition.SIZE: number == size,
            Condition.LOADING: loading & ~store.complete, Condition.LOADED: store.complete,
            Condition.RUNNING: running, Condition.LAST: result.is_last,
            Condition.INFERRED: inferred, Condition.BUSY: store.busy | is_busy,
            Condition.BEYOND: beyond,
            Condition.MEMORY: self.memory_error,
        }
        for fact, value in facts.items():
            m.d.comb += self.facts[fact].eq(value)
        return m

    def _look_up(self, m, action, byte, number):
        """Store the code of a byte, and look up digits of the result, code by code."""
        store, result = self.store, self.result
        # the memory of codes has had a cycle
        m.d.comb += [store.code.eq(self._code(m, byte)), store.store.eq(action == Action.BYTE),
                     result.first.eq(action == Action.FIRST_RESULT),
                     result.following.eq(action == Action.NEXT_RESULT)]
        digits = self._digits(m, result.code)
        with m.If(action == Action.RESULT):
            m.d.sync += number[-len(digits):].eq(digits)

    def _calculate(self, m, action, byte, number):
        """Store the code of a number that a byte ends, and take the distance's digits."""
        store, result, calculator = self.store, self.result, self.calculator
        m.d.comb += [
            calculator.clear.eq(action == Action.CANCEL),
            calculator.store.eq(action == Action.BYTE), calculator.byte.eq(byte),
            store.code.eq(calculator.code), store.store.eq(calculator.done),
            calculator.start.eq(action == Action.MEASURE),
            calculator.rewind.eq(calculator.clear | calculator.start),
            calculator.result.eq(result.code), calculator.is_last.eq(result.is_last),
            result.first.eq(calculator.start), result.following.eq(calculator.following),
        ]
        with m.If(calculator.push):
            m.d.sync += number.eq(Cat(calculator.digit, number))

    def _code(self, m, byte):
        """Return the code of a byte: by a gate or none, or from a memory in the next cycle."""
        bits = self.store.bits
        table = [code & (1 << bits) - 1 for code in self.known.formats.table]
        for flipped in (0, 0x80):
            if bits == 8 and table == [n ^ flipped for n in range(len(table))]:
                return byte ^ flipped
        m.submodules.codes = codes = memory.Memory(shape=bits, depth=len(table), init=table)
        read = codes.read_port()
        m.d.comb += read.addr.eq(byte)
        return read.data

    def _digits(self, m, code):
        """Return the digits of a code of the result, a cycle later."""
        m.submodules.digits = digits = memory.Memory(
            shape=16, depth=1 << len(code), init=self.known.formats.digits)
        read = digits.read_port()
        m.d.comb += read.addr.eq(code)
        return read.data
