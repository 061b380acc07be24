"""The sequencer of the protocol's program: it hears commands, and sends lines of text."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.mlperf.program import Action, Condition, Letter, Operation

__all__ = ["CONDITIONS", "Sequencer"]

COMMAND_BYTES = 128
END = ord("%")
SPACE = ord(" ")
CONDITIONS = 1 << 5
"""Conditions that an instruction has a number for."""


class Sequencer(wiring.Component):
    """Run a program: a command of up to 127 characters is kept, and then read by the program.

    A word takes two cycles, or more if the transmitter lets it wait. Control characters are not
    heard, and nothing is while a command is answered.

    Parameters
    ----------
    program : Program

    Members
    -------
    i_rx, o_tx : In, Out(stream.Signature(8))
        Bytes from and to the UART; ``i_rx`` is always ready.
    digit, time_digit : In(4)
        The digits that are to be sent.
    facts : In(32)
        By number of a condition, whether it holds; of those that are not the sequencer's own.
    nibble : Out(4)
        The character of the command as a digit, decimal or hexadecimal.
    action : Out(5)
        What is to be done, for one cycle; otherwise ``WAIT``.
    sent : Out(3)
        By number of a kind of letter: one was sent.

    Attributes
    ----------
    latency : int
        Cycles of a word.
    """

    latency = 2

    def __init__(self, program):
        self.program = program
        super().__init__({
            "i_rx": In(stream.Signature(8)),
            "o_tx": Out(stream.Signature(8)),
            "digit": In(4),
            "time_digit": In(4),
            "facts": In(CONDITIONS),
            "nibble": Out(4),
            "action": Out(range(max(Action) + 1)),
            "sent": Out(len(Letter)),
        })

    def elaborate(self, platform):
        m = Module()
        program = self.program
        m.submodules.rom = rom = memory.Memory(
            shape=2 + program.argument_bits, depth=1 << program.address_bits,
            init=program.encoded())
        place = Signal(program.address_bits)
        back = Signal.like(place)
        fetch = rom.read_port()
        executing, done = Signal(), Signal()
        operation, argument = fetch.data[:2], fetch.data[2:]
        condition, target = argument[:6], argument[6:][: program.address_bits]
        m.d.comb += [fetch.addr.eq(place), fetch.en.eq(~executing)]
        letter = self._hear(m)

        is_letter = letter[6]
        is_decimal = (letter >= ord("0")) & (letter <= ord("9"))
        low = letter & 0x5F
        is_hex = is_decimal | (low >= ord("A")) & (low <= ord("F"))
        matched = Signal()
        facts = Signal(CONDITIONS)
        own = {
            Condition.ALWAYS: C(1), Condition.CALL: C(1), Condition.MATCHED: matched,
            Condition.END: (letter == END) | (letter == SPACE), Condition.DECIMAL: is_decimal,
            Condition.HEX: is_hex, Condition.HEARD: self.heard,
        }
        m.d.comb += facts.eq(self.facts)
        for number, fact in own.items():
            m.d.comb += facts[number].eq(fact)
        m.d.comb += self.nibble.eq(letter[:4] + Mux(is_letter, 9, 0))

        m.d.sync += executing.eq(~executing | ~done)
        m.d.comb += done.eq(1)
        with m.If(executing & done):
            m.d.sync += place.eq(place + 1)
        with m.If(self.o_tx.ready):
            m.d.sync += self.o_tx.valid.eq(0)
        with m.If(executing):
            with m.Switch(operation):
                with m.Case(Operation.SEND):
                    m.d.comb += done.eq(~self.o_tx.valid)
                    with m.If(done):
                        m.d.sync += self.o_tx.valid.eq(1)
                        m.d.comb += self.sent.bit_select(argument[:2], 1).eq(1)
                        with m.Switch(argument[:2]):
                            with m.Case(Letter.GIVEN):
                                m.d.sync += self.o_tx.payload.eq(argument[2:9])
                            with m.Case(Letter.DIGIT):
                                m.d.sync += self.o_tx.payload.eq(Cat(self.digit, C(3, 4)))
                            with m.Case(Letter.TIME):
                                m.d.sync += self.o_tx.payload.eq(Cat(self.time_digit, C(3, 4)))
                            with m.Case(Letter.HEARD):
                                m.d.sync += self.o_tx.payload.eq(letter)
                with m.Case(Operation.MATCH):
                    m.d.comb += self.matches.eq(letter == argument[2:9])
                    m.d.sync += matched.eq(self.matches)
                with m.Case(Operation.JUMP):
                    with m.If(facts.bit_select(condition[:5], 1) ^ condition[5]):
                        m.d.sync += place.eq(target)
                        with m.If(condition == Condition.CALL):
                            m.d.sync += back.eq(place + 1)
                with m.Case(Operation.DO):
                    m.d.comb += self.action.eq(argument)
                    with m.If(self.action == Action.RETURN):
                        m.d.sync += place.eq(back)
        return m

    def _hear(self, m):
        """Keep commands; return the character of one that is looked at."""
        m.submodules.command = command = memory.Memory(shape=7, depth=COMMAND_BYTES, init=[])
        write, read = command.write_port(), command.read_port()
        end, here = Signal(range(COMMAND_BYTES)), Signal(range(COMMAND_BYTES))
        listening = Signal()
        self.heard, self.matches = Signal(), Signal()
        byte = self.i_rx.payload
        m.d.comb += [
            self.i_rx.ready.eq(1),
            write.addr.eq(end), write.data.eq(byte),
            # no control characters; and none of eight bits
            write.en.eq(self.i_rx.valid & listening & ~byte[7] & byte[5:7].any()),
            read.addr.eq(here), read.en.eq(~write.en),
        ]
        with m.If(write.en):
            with m.If(end != COMMAND_BYTES - 1):
                m.d.sync += end.eq(end + 1)
            with m.If(byte == END):
                m.d.sync += [listening.eq(0), self.heard.eq(1)]
        with m.If((self.action == Action.NEXT) | self.matches | (self.action == Action.DIGIT)
                  | (self.action == Action.NIBBLE)):
            m.d.sync += here.eq(here + 1)
        with m.If(self.action == Action.FIRST):
            m.d.sync += here.eq(0)
        with m.If(self.action == Action.LISTEN):
            m.d.sync += [listening.eq(1), self.heard.eq(0), end.eq(0)]
        return read.data
