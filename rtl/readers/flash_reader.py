"""Reader of a linear image in SPI flash."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.parts.readers.flash_reader import ID_BITS, PAD_CYCLES, WORD_BITS
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import Fifo, beat_layout

__all__ = ["FlashReader"]


class FlashReader(wiring.Component):
    """Give the words of an image; golden model: its bytes as little-endian 16-bit words.

    After a reset it wakes the chip, reads its ID and, for four lines, sets the volatile QE bit.
    Each ``start`` then is one read command, from the image's first word to its last; all but the
    first one leave out the words that come once. While the
    queue has no room for a further word, the chip stays selected and its clock pauses.
    :class:`.FlashWords` tells the cycle of every word.

    Between its ports and the pins belong the pads of ``pads.v``, with a register per direction.

    Members
    -------
    start : In(1)
        Begin with the first word; heeded while ``idle``.
    idle : Out(1)
        The chip is known, and no read is going on.
    error : Out(1)
        No chip answered that the part accepts: there will be no words.
    id : Out(24)
        What it answered, while ``error``.
    o : Out(stream.Signature(16))
    cs_n : Out(1)
    sck : Out(2)
        Level of the clock in the first and in the second half of a cycle.
    dq_o, dq_oe : Out(4)
    dq_i : In(4)
        What stood at the pins at the end of a cycle.
    dq_i_mid : In(4)
        The same in the middle of that cycle; only for commands of double rate.
    """

    unproved = "words follow what a chip answers at its pins; tests simulate the chip"

    def __init__(self, part: parts.FlashReader):
        self.part = part
        members = {
            "start": In(1), "idle": Out(1), "error": Out(1), "id": Out(ID_BITS),
            "o": Out(stream.Signature(WORD_BITS)),
            "cs_n": Out(1), "sck": Out(2), "dq_o": Out(4), "dq_oe": Out(4), "dq_i": In(4),
        }
        if part.read.double_rate:
            members["dq_i_mid"] = In(4)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        part = self.part
        states = part.program
        waiting = len(part.startup)
        rounds = [waiting]
        if part.once:
            rounds.append((waiting + len(states)) // 2)
        reading = [place + 1 + len(part.command) for place in rounds]

        step = Signal(range(len(states)))
        known = Signal()
        finished = Signal()
        at_wait = Signal()
        at_words = Signal()
        pulsed = Signal()
        m.d.comb += [
            at_wait.eq(Cat(step == place for place in rounds).any()),
            at_words.eq(Cat(step == place for place in reading).any()),
            self.idle.eq(at_wait & known),
        ]
        with m.If(step == len(states) - 1):
            m.d.sync += step.eq(rounds[-1])
        with m.Elif(Mux(at_wait, known & self.start, ~at_words | finished)):
            m.d.sync += step.eq(step + 1)

        pulse, last = self._words(m, at_wait, at_words, finished, step == rounds[-1])
        m.d.sync += pulsed.eq(pulse)
        keep = self._pins(m, states, step, pulsed)
        shifted = self._shift(m, keep, pulsed)

        # the first byte was shifted in first
        word = Cat(shifted[8:16], shifted[:8])
        complete = last
        for stage in range(PAD_CYCLES + 2):
            later = Signal(name=f"complete{stage}")
            m.d.sync += later.eq(complete)
            complete = later
        self._queue(m, complete, word)

        if part.any_chip:
            found = (shifted != 0) & (shifted != (1 << ID_BITS) - 1)
        else:
            found = Cat(shifted == chip.jedec_id for chip in part.chips).any()
        with m.If(step == waiting - 1):
            m.d.sync += [known.eq(found), self.error.eq(~found)]
        m.d.comb += self.id.eq(shifted)
        return m

    def _queue(self, m, complete, word):
        """Let complete words wait until they are taken."""
        part = self.part
        if part.queue is None:
            m.submodules.queue = queue = Fifo(WORD_BITS, depth=part.depth)
            m.d.comb += [queue.i.valid.eq(complete), queue.i.payload.eq(word)]
            wiring.connect(m, wiring.flipped(self.o), queue.o)
            return
        shape = beat_layout(bits=WORD_BITS, signed=False, lanes=1)
        m.submodules.queue = queue = part.queue.build(shape=shape)
        m.d.comb += [
            queue.i.valid.eq(complete),
            queue.i.payload.data[0].eq(word),
            self.o.valid.eq(queue.o.valid),
            self.o.payload.eq(queue.o.payload.data[0]),
            queue.o.ready.eq(self.o.ready),
        ]

    def _words(self, m, at_wait, at_words, finished, at_last_wait):
        """Begin a word's pulses when the queue has room for it."""
        part = self.part
        room = Signal(range(part.depth + 1), init=part.depth)
        # counts up from 0, since a counter that is loaded takes its carry chain apart on an iCE40
        begun = Signal(range(part.words + 1))
        all_begun = Signal()
        position = Signal(range(part.word_cycles))
        begins = Signal()
        pulse = Signal()
        last = Signal()
        taken = self.o.valid & self.o.ready
        count = Const(part.words)
        if part.once:
            is_again = Signal()
            with m.If(at_last_wait):
                m.d.sync += is_again.eq(1)
            count = Mux(is_again, part.words - part.once, part.words)
        m.d.comb += [
            all_begun.eq(begun == count),
            begins.eq(at_words & (position == 0) & ~all_begun & (room != 0)),
            pulse.eq(begins | (position != 0)),
            last.eq(position == part.word_cycles - 1),
            finished.eq((position == 0) & all_begun),
        ]
        with m.If(begins != taken):
            m.d.sync += room.eq(Mux(taken, room + 1, room - 1))
        with m.If(pulse):
            m.d.sync += position.eq(position + 1)
        with m.If(at_wait):
            m.d.sync += begun.eq(0)
        with m.Elif(begins):
            m.d.sync += begun.eq(begun + 1)
        return pulse, last

    def _pins(self, m, states, step, pulsed):
        """Show the states of the program; return whether the shown pulse brings a bit of the ID."""
        program = [
            state.select | state.sck[0] << 1 | state.sck[1] << 2 | (state.drive & 1) << 3
            | (state.drive >> 1 & 1) << 4 | state.keep << 5 | state.dq << 6
            for state in states
        ]
        m.submodules.program = rom = TiledMemory(self.part.tiling, words=program, style="logic")
        select, first, second, drive, drive_1, keep, dq = (
            rom.read_data[0], rom.read_data[1], rom.read_data[2], rom.read_data[3],
            rom.read_data[4], rom.read_data[5], rom.read_data[6:10])
        m.d.comb += [
            rom.read_address.eq(step),
            rom.read_enable.eq(1),
            self.cs_n.eq(~select),
            self.sck.eq(Cat(first, second | pulsed)),
            self.dq_o.eq(dq),
            self.dq_oe.eq(Cat(drive, drive_1, drive, drive)),
        ]
        return keep

    def _shift(self, m, keep, pulsed):
        """Take the bits that pulses bring; return the register."""
        read = self.part.read
        shifted = Signal(ID_BITS)
        one, several = keep, pulsed
        for stage in range(PAD_CYCLES):
            later_one = Signal(name=f"one{stage}")
            later_several = Signal(name=f"several{stage}")
            m.d.sync += [later_one.eq(one), later_several.eq(several)]
            one, several = later_one, later_several
        if read.double_rate:
            brought = Cat(self.dq_i, self.dq_i_mid)
        else:
            brought = self.dq_i if read.lines == 4 else self.dq_i[1]
        with m.If(one):
            m.d.sync += shifted.eq(Cat(self.dq_i[1], shifted))
        with m.If(several):
            m.d.sync += shifted.eq(Cat(brought, shifted))
        return shifted
