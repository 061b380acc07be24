"""A passage sends a tensor through a unit of a shared engine: words to codes, and back."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.rtl.base.primitives import delayed
from nnef_hw.rtl.engine.sequencer import parameter_layout

__all__ = ["EnginePassage"]


class _Walk:
    """Places of a tensor's words: of as many pixels as there are ways in turn, word by word.

    Parameters
    ----------
    m : Module
    ways : int
    parameters : View
        ``pixels + 1`` of ``blocks + 1`` words.
    begins, step : Value
        It begins; the next place follows in the next cycle.
    first : Value
        First place.
    """

    def __init__(self, m, ways, parameters, name, *, begins, first, step):
        self.address = Signal.like(first, name=f"{name}_address", reset_less=True)
        self.way = Signal(range(ways), name=f"{name}_way")
        self.is_final = Signal(name=f"{name}_is_final")
        block = Signal.like(parameters.blocks, name=f"{name}_block")
        # Pixels from the first one of the ways on, less one.
        left = Signal.like(parameters.pixels, name=f"{name}_left")
        last_way, last_block = Signal(name=f"{name}_last_way"), Signal(name=f"{name}_last_block")
        bits = (ways - 1).bit_length()
        is_last_group = Signal(name=f"{name}_last_group")
        m.d.comb += [
            last_way.eq((self.way == ways - 1) | (is_last_group & (self.way == left[:bits]))),
            last_block.eq(block == parameters.blocks),
            self.is_final.eq(last_way & last_block & is_last_group),
        ]
        following = Signal.like(self.address, name=f"{name}_following")
        with m.If(begins):
            m.d.sync += [
                self.address.eq(first), block.eq(0), left.eq(parameters.pixels),
                is_last_group.eq(parameters.pixels[bits:] == 0),
            ]  # fmt: skip
        with m.Elif(step):
            m.d.sync += self.address.eq(following)
            with m.If(last_way):
                m.d.sync += block.eq(Mux(last_block, 0, block + 1))
                with m.If(last_block):
                    m.d.sync += [left.eq(left - ways), is_last_group.eq(left[bits:] == 1)]
        if ways == 1:
            m.d.comb += following.eq(self.address + 1)
            return
        # The word of the first way: behind the last one of a pixel's, that of the next pixels.
        column = Signal.like(self.address, name=f"{name}_column", reset_less=True)
        m.d.comb += following.eq(
            Mux(last_way & ~last_block, column, self.address)
            + Mux(last_way, 0, parameters.blocks) + 1
        )
        with m.If(begins):
            m.d.sync += [column.eq(first), self.way.eq(0)]
        with m.Elif(step):
            m.d.sync += self.way.eq(Mux(last_way, 0, self.way + 1))
            with m.If(last_way):
                m.d.sync += column.eq(following)


class _Lanes:
    """Counts the codes of a pixel's words: ``lane`` is the next one, ``is_last`` of its word."""

    def __init__(self, m, lanes, parameters, name, *, step):
        self.lane = Signal(range(lanes), name=f"{name}_lane")
        self.is_last = Signal(name=f"{name}_is_last")
        block = Signal.like(parameters.blocks, name=f"{name}_block")
        last_block = block == parameters.blocks
        m.d.comb += self.is_last.eq(
            self.lane == Mux(last_block, parameters.last_lanes, lanes - 1)
        )
        with m.If(step):
            m.d.sync += self.lane.eq(Mux(self.is_last, 0, self.lane + 1))
            with m.If(self.is_last):
                m.d.sync += block.eq(Mux(last_block, 0, block + 1))


class EnginePassage(wiring.Component):
    """Send the pixels of a tensor through as many ways at once, and write what comes back.

    Pixel p goes the way p modulo ``ways``, a code per cycle, or a word if units take these. Words
    of all ways are read in turn, one per cycle at most, none of a way for which enough wait; and
    written in the same order. Each way takes and gives codes, or words, at its own pace.

    Golden model: the identity, of what the ways are.

    Members
    -------
    begin : In(1)
    parameters : In(parameter_layout)
        ``pixels + 1`` of ``blocks + 1`` words, of which the last one has ``last_lanes + 1`` codes.
    is_active : Out(1)
        A word is read.
    address : Out(read bits)
    word : In(lanes * 8)
        That word, ``word_cycles`` of the units later.
    write_address, write_data, write_enable : Out
        A word is written.
    done : Out(1)
        In the cycle in which the last one is.
    codes0, ... : Out(stream.Signature(unit lanes * 8))
    results0, ... : In(stream.Signature(unit lanes * 8))
        What enters each way and leaves it, as the engine has codes.
    """

    unproved = "its ports follow an instruction of a program; tests/engine simulates it"

    def __init__(self, part: Engine):
        self.part = part
        self.takes_words = part.units.lanes > 1
        code = stream.Signature(part.units.lanes * CODE_BITS)
        ways = range(part.units.ways)
        super().__init__({
            "begin": In(1),
            "parameters": In(parameter_layout(part)),
            "is_active": Out(1),
            "address": Out(part.layout.widths["read"] - part.fine_bits("read")),
            "word": In(part.array.word_bits),
            "write_address": Out(part.layout.widths["write"]),
            "write_data": Out(part.array.word_bits),
            "write_enable": Out(1),
            "done": Out(1),
            **{f"codes{n}": Out(code) for n in ways},
            **{f"results{n}": In(code) for n in ways},
        })

    def elaborate(self, platform):
        m = Module()
        part, ways, parameters = self.part, self.part.units.ways, self.parameters
        # A cycle of these is that from the begin to the first word.
        waits = part.pipeline.before_passage - part.pipeline.border_cycles - 1
        begins = self.begin & (parameters.kind == Kind.STREAM)
        begins = delayed(m, begins, waits, name="begins", is_flag=True)
        issue = Signal()
        first = parameters.read[part.fine_bits("read") :]
        reads = _Walk(m, ways, parameters, "read", begins=begins, first=first, step=issue)
        reading = Signal()
        with m.If(begins):
            m.d.sync += reading.eq(1)
        with m.Elif(issue & reads.is_final):
            m.d.sync += reading.eq(0)
        cycles = part.pipeline.word_cycles
        arrives = delayed(m, issue, cycles, name="arrives", is_flag=True)
        arrival = delayed(m, reads.way, cycles, name="arrival")
        has_room = []
        give = self._whole_words if self.takes_words else self._words
        for n in range(ways):
            full = give(m, n, issue & (reads.way == n), arrives & (arrival == n))
            has_room.append(~full)
        m.d.comb += [
            issue.eq(reading & Cat(has_room).bit_select(reads.way, 1)),
            self.is_active.eq(reading),
            self.address.eq(reads.address),
        ]

        grants = Signal()
        writes = _Walk(
            m, ways, parameters, "write", begins=begins, first=parameters.write, step=grants
        )
        collected = [self._collect(m, n, writes.way == n) for n in range(ways)]
        complete, words = zip(*collected, strict=True)
        m.d.comb += grants.eq(Cat(complete).bit_select(writes.way, 1))
        m.d.sync += [
            self.write_enable.eq(grants),
            self.write_address.eq(writes.address),
            self.done.eq(grants & writes.is_final),
        ]
        if ways > 1:
            m.d.sync += self.write_data.eq(Array(words)[writes.way])
        elif self.takes_words:
            m.d.sync += self.write_data.eq(words[0])
        else:
            # As it is written, only the first code of the next word may be there.
            first = Signal(CODE_BITS, name="first_code", reset_less=True)
            m.d.sync += first.eq(words[0][:CODE_BITS])
            m.d.comb += self.write_data.eq(Cat(first, words[0][CODE_BITS:]))
        return m

    def _words(self, m, n, issued, arrives):
        """Give the codes of the words of a way, of which two may wait; return if they do."""
        part = self.part
        codes = getattr(self, f"codes{n}")
        front, back = (
            Signal.like(self.word, name=f"{name}{n}", reset_less=True) for name in ("front", "back")
        )
        has_front, has_back = Signal(name=f"has_front{n}"), Signal(name=f"has_back{n}")
        takes, frees = Signal(name=f"takes{n}"), Signal(name=f"frees{n}")
        place = _Lanes(m, part.array.lanes, self.parameters, f"sent{n}", step=takes)
        m.d.comb += [
            takes.eq(has_front & (~codes.valid | codes.ready)),
            frees.eq(takes & place.is_last),
        ]
        with m.If(takes):
            m.d.sync += [
                codes.payload.eq(front.word_select(place.lane, CODE_BITS)),
                codes.valid.eq(1),
            ]
        with m.Elif(codes.ready):
            m.d.sync += codes.valid.eq(0)
        with m.If(frees | ~has_front):
            m.d.sync += [
                front.eq(Mux(has_back, back, self.word)),
                has_front.eq(has_back | arrives),
                has_back.eq(has_back & arrives),
            ]
        with m.Elif(arrives):
            m.d.sync += has_back.eq(1)
        with m.If(arrives):
            m.d.sync += back.eq(self.word)
        # Those on their way, too.
        held = Signal(range(3), name=f"held{n}")
        m.d.sync += held.eq(held + issued - frees)
        return held[1]

    def _whole_words(self, m, n, issued, arrives):
        """Give the words of a way; return whether no further one may be read."""
        codes = getattr(self, f"codes{n}")
        most = self.part.units.waiting(self.part.pipeline.word_cycles)
        waiting = [Signal.like(self.word, name=f"waiting{n}_{place}", reset_less=True)
                   for place in range(most)]
        count, held = (Signal(range(most + 1), name=f"{name}{n}") for name in ("waiting", "held"))
        frees, behind = Signal(name=f"frees{n}"), Signal.like(count, name=f"behind{n}")
        m.d.comb += [
            codes.valid.eq(count != 0),
            codes.payload.eq(waiting[0]),
            frees.eq(codes.valid & codes.ready),
            behind.eq(count - frees),
        ]
        m.d.sync += [count.eq(behind + arrives), held.eq(held + issued - frees)]
        for place, (word, following) in enumerate(zip(waiting, [*waiting[1:], self.word],
                                                      strict=True)):
            with m.If(arrives & (behind == place)):
                m.d.sync += word.eq(self.word)
            with m.Elif(frees):
                m.d.sync += word.eq(following)
        return held == most

    def _collect(self, m, n, is_next):
        """Take the results of a way; return whether a word is complete, and that word."""
        part = self.part
        results = getattr(self, f"results{n}")
        word = Signal(part.array.word_bits, name=f"word{n}", reset_less=True)
        complete, takes = Signal(name=f"complete{n}"), Signal(name=f"stores{n}")
        if self.takes_words:
            stored, is_last = word, Const(1)
        else:
            place = _Lanes(m, part.array.lanes, self.parameters, f"stored{n}", step=takes)
            stored, is_last = word.word_select(place.lane, CODE_BITS), place.is_last
        m.d.comb += [
            results.ready.eq(~complete | is_next),
            takes.eq(results.valid & results.ready),
        ]
        with m.If(takes):
            m.d.sync += stored.eq(results.payload)
        with m.If(results.ready):
            m.d.sync += complete.eq(takes & is_last)
        return complete, word
