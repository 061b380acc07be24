"""The shared engine's program as it passes: packets of a stream, in circular memories."""

from contextlib import nullcontext

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import BEAT_BITS, FILL_FLAG, TABLES_FLAG
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import delayed

__all__ = ["EngineFeed"]


class EngineFeed(wiring.Component):
    """Hold the next instructions of a stream with their constants and weights, until they end.

    An instruction's packet is two beats, the numbers of its constants (with the beats of a word of
    its weights, less one, above ``part.count_bits``) and of its words of weights, then its rows,
    the constants and the words, each of as many beats as it needs, the highest bits first. There
    are no weights without constants. What words of fewer beats leave out above is not defined. A
    beat is taken per cycle as long as there is room for the row, constant or word that it belongs
    to, and written ``write_cycles`` later. All of it is freed when the instruction ends, one
    cycle late: by then the word that was read last has been. Results still need its constants; so
    not all of their memory is filled ahead.

    With :data:`.TABLES_FLAG` in its second beat, a packet is that of all tables, whose beats
    follow: they are written when it comes for the first time.

    Where packets may stay in the memory of codes, a packet ends with the beat that tells where the
    next one is; and with :data:`.FILL_FLAG` in its second beat, that beat follows at once, and then
    so many words, of ``part.code_beats`` beats each, that are written there; none as long as
    more than one instruction that came has not ended.

    Golden model: :func:`nnef_hw.engine.program.image.frame_beats`.

    Members
    -------
    i : In(stream.Signature(16))
    row_address, constant_address, weight_address : In
    row, constant, weight : Out
        What is there, a cycle later; of a row ``read_stage``.
    has_rows, has_all : Out(1)
        The rows of the oldest instruction are there; all of its packet is.
    end : In(1)
        The oldest instruction ends.
    constants, weights : In
        How many of each are freed then; in the cycle of ``end`` and in the next one.
    retires : In(1)
        A word of weights is freed before, one cycle late, too: the oldest one.
    table_address, table_data, table_enable : Out
        A beat of tables is written; only if there are any.
    link_enable, fill_enable : Out(1)
        The beat that is taken tells where a packet is, or belongs to a word that is written; only
        if packets may stay in the memory of codes.
    """

    unproved = "its room follows the lengths in packets; tests/engine simulates it"

    def __init__(self, part: Engine):
        self.part = part
        tables = {
            "table_address": Out(range(part.table_beats)), "table_data": Out(BEAT_BITS),
            "table_enable": Out(1),
        } if part.table_beats else {}  # fmt: skip
        links = {"link_enable": Out(1), "fill_enable": Out(1)} if part.has(Residents) else {}
        super().__init__({
            **tables,
            **links,
            "i": In(stream.Signature(BEAT_BITS)),
            "row_address": In(range(part.slots * part.layout.stride)),
            "constant_address": In(range(part.supply.constants)),
            "weight_address": In(range(part.ring.words)),
            "row": Out(BEAT_BITS * part.layout.row_beats),
            "constant": Out(BEAT_BITS * part.constant_beats),
            "weight": Out(BEAT_BITS * part.weight_beats(part.array.rows)),
            "has_rows": Out(1),
            "has_all": Out(1),
            "end": In(1),
            "constants": In(part.layout.widths["constants"]),
            "weights": In(part.layout.widths["weights"]),
            "retires": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        header = Signal(init=1, name="takes_constants"), Signal(name="takes_weights")
        constants, weights = Signal.like(self.constants), Signal.like(self.weights)
        accept, has_room = Signal(), Signal()
        word_beats = part.layout.row_beats, part.constant_beats, part.weight_beats(part.array.rows)
        # Beats that follow in the word, and words in the section; what is last is known before.
        column, ends_word = Signal(range(max(word_beats))), Signal(init=1)
        names = "row", "constant", "weight"
        rows, constant, weight = sections = [*map(_Section, names, word_beats)]
        weight.last = Signal.like(column, name="last_beat")
        weight.is_beat = Signal(name="weight_is_beat")
        data = delayed(m, self.i.payload, 1, name="late_data")
        table = self._tables(m, data)
        self._write(m, sections, accept, column, data)
        link, fill = (), ()
        if part.has(Residents):
            link = (Signal(name="takes_link"),)
            fill = (_Section("fill", part.code_beats),)
        sections = rows, constant, weight, *table, *fill
        packet_ends, ended = Signal(), Signal()
        reading = part.pipeline.read_stage - 1
        m.d.sync += ended.eq(delayed(m, self.end, reading, name="end", is_flag=True))
        # What an instruction frees is known while it runs: far away it may come late.
        late = part.pipeline.write_cycles - 1
        counts = {"constants_freed": self.constants, "weights_freed": self.weights}
        freed = [
            Mux(ended, delayed(m, count, late, name=name), 0) for name, count in counts.items()
        ]
        self._count(m, "has_rows", rows.ends)
        is_last = self._count(m, "has_all", packet_ends)
        # There is always room for what is in no section, and for tables.
        waits = (
            rows.active & self._full(m, rows, rows.ends, part.slots, ended),
            constant.active
            & self._full(m, constant, constant.complete, part.pipeline.constants_ahead, freed[0]),
            weight.active
            & self._full(m, weight, weight.complete, part.ring.words, freed[1] | self.retires),
            *(section.active & ~is_last for section in fill),
        )
        m.d.comb += [
            has_room.eq(~Cat(waits).any()),
            self.i.ready.eq(has_room),
            accept.eq(self.i.valid & has_room),
        ]

        beats = part.table_beats
        left = Signal(range(max(part.ring.words, part.supply.constants, beats)))
        ends_section = Signal()
        stages = (*header, *link, *(section.active for section in sections))

        def go_on(stage, section=None, count=0):
            """Return the assignments that begin a stage: a section of words, or the header."""
            begun = [other.eq(stage is other) for other in stages]
            if section is None:
                return begun
            return [*begun, left.eq(count - 1), ends_section.eq(count == 1), *begin_word(section)]

        def begin_word(section):
            return [column.eq(section.last), ends_word.eq(section.is_beat)]

        for section in sections:
            m.d.sync += [
                section.writes.eq(section.active & accept),
                section.completed.eq(section.complete),
                section.ended.eq(section.ends),
            ]
            m.d.comb += [
                section.in_last_beat.eq(section.active & ends_word),
                section.is_last.eq(section.in_last_beat & ends_section),
                section.complete.eq(section.in_last_beat & accept),
                section.ends.eq(section.is_last & accept),
            ]
        following = {
            rows: [(constants != 0, constant, constants)],
            constant: [(weights != 0, weight, weights)],
            weight: [],
        }  # fmt: skip
        # Whether a beat is taken is known late: it enables registers, and decides nothing else.
        with m.If(accept):
            m.d.sync += [column.eq(column - 1), ends_word.eq(column == 1)]
            for section in sections:
                with m.If(section.in_last_beat):
                    m.d.sync += [left.eq(left - 1), ends_section.eq(left == 1)]
                    m.d.sync += begin_word(section)
            with m.If(header[0]):
                m.d.sync += [
                    constants.eq(self.i.payload[: part.count_bits]),
                    weight.last.eq(self.i.payload[part.count_bits :]),
                    weight.is_beat.eq(self.i.payload[part.count_bits :] == 0),
                    *go_on(header[1]),
                ]
            with m.If(header[1]):
                m.d.sync += weights.eq(self.i.payload)
                m.d.sync += go_on(rows.active, rows, part.layout.rows)
            for section in table:
                # A packet of its own, which is no instruction's.
                with m.If(header[1] & self.i.payload[TABLES_FLAG]):
                    m.d.sync += go_on(section.active, section, beats)
                with m.If(section.is_last):
                    m.d.sync += go_on(header[0])
            for section, others in following.items():
                with m.If(section.is_last):
                    otherwise = m.If
                    for condition, other, count in others:
                        with otherwise(condition):
                            m.d.sync += go_on(other.active, other, count)
                        otherwise = m.Elif
                    with m.Else() if others else nullcontext():
                        m.d.comb += packet_ends.eq(1)
                        m.d.sync += go_on(link[0] if link else header[0])
            if part.has(Residents):
                self._link(m, link[0], fill[0], weights, go_on, header)
        if part.has(Residents):
            m.d.comb += [
                self.link_enable.eq(link[0] & self.i.valid),
                self.fill_enable.eq(fill[0].active & accept),
            ]
        return m

    def _link(self, m, link, fill, words, go_on, header):
        """Go on behind an instruction: with what tells where the next one is, or with words."""
        filling = Signal()
        with m.If(header[1]):
            m.d.sync += filling.eq(self.i.payload[FILL_FLAG])
            with m.If(self.i.payload[FILL_FLAG]):
                m.d.sync += go_on(link)
        with m.If(link):
            m.d.sync += go_on(header[0])
            with m.If(filling):
                m.d.sync += go_on(fill.active, fill, words)
        with m.If(fill.is_last):
            m.d.sync += go_on(header[0])

    def _tables(self, m, data):
        """Return the section of all tables, if there are any: they are written once."""
        if not self.part.table_beats:
            return ()
        section = _Section("table", 1)
        filled = Signal()
        with m.If(section.ended):
            m.d.sync += filled.eq(1)
        m.d.comb += [
            self.table_address.eq(self._place(m, section)),
            self.table_data.eq(data),
            self.table_enable.eq(section.writes & ~filled),
        ]
        return (section,)

    def _write(self, m, sections, accept, column, data):
        """Write a beat ``write_cycles`` after it was taken.

        That it is is known late, and memories are far. Of an instruction a word is read three
        cycles after its last beat came, at the earliest.
        """
        part = self.part
        late = part.pipeline.write_cycles - 1
        late_column = delayed(m, column, 1, name="late_column")
        supply = part.supply
        tilings = (
            supply.program_memories(part), supply.constant_memories(part),
            supply.weight_memories(part),
        )  # fmt: skip
        if any(tiling.width > BEAT_BITS for tiled in tilings for tiling in tiled):
            # The upper one of two, which comes first, waits for the lower one.
            before = Signal(BEAT_BITS, name="before", reset_less=True)
            with m.If(delayed(m, accept, 1, name="taken", is_flag=True)):
                m.d.sync += before.eq(data)
            data = Cat(data, before)
        rows, *others = sections
        places = self._slot(m, rows), *(self._place(m, section) for section in others)
        late_data = delayed(m, data, late, name="written_data")
        for section, tiled, place in zip(sections, tilings, places, strict=True):
            name, low = section.name, 0
            late_place = delayed(m, place, late, name=f"{name}_written_place")
            for n, tiling in enumerate(tiled):
                memory = TiledMemory(
                    tiling, writable=True, registered=section is rows and part.pipeline.is_spread
                )
                m.submodules[f"{name}{n}"] = memory
                writes = section.writes & (late_column == low // BEAT_BITS)
                m.d.comb += [
                    memory.read_address.eq(getattr(self, f"{name}_address")),
                    memory.read_enable.eq(1),
                    getattr(self, name)[low : low + tiling.width].eq(memory.read_data),
                    memory.write_address.eq(late_place),
                    memory.write_data.eq(late_data[: tiling.width]),
                    memory.write_enable.eq(
                        delayed(m, writes, late, name=f"{name}{n}_write", is_flag=True)
                    ),
                ]
                low += tiling.width

    def _slot(self, m, section):
        """Return where a row of the program goes: behind others of its instruction, in a slot."""
        part = self.part
        row, slot = Signal(range(part.layout.stride)), Signal(range(part.slots))
        with m.If(section.ended):
            m.d.sync += [row.eq(0), slot.eq(slot + 1)]
        with m.Elif(section.completed):
            m.d.sync += row.eq(row + 1)
        return Cat(row, slot)

    def _place(self, m, section):
        """Return where a word goes: to one place after the other."""
        place = Signal.like(getattr(self, f"{section.name}_address"), name=f"{section.name}_place")
        with m.If(section.completed):
            m.d.sync += place.eq(place + 1)
        return place

    def _count(self, m, name, comes):
        """Count instructions that are there: those before the last cycle, and what came in it.

        Return whether the former are one at most.
        """
        held = Signal(range(self.part.slots + 1), name=f"{name}_held")
        came = Signal(name=f"{name}_came")
        here, is_last = Signal.like(held, name=f"{name}_here"), Signal(init=1, name=f"{name}_last")
        m.d.comb += [here.eq(held + came), getattr(self, name).eq((held != 0) | came)]
        # Whether an instruction ends is known late: nothing is compared with it.
        m.d.sync += [
            held.eq(here - self.end),
            came.eq(comes),
            is_last.eq(Mux(self.end, here <= 2, here <= 1)),
        ]
        return is_last

    def _full(self, m, section, comes, most, freed):
        """Count what is held, a cycle late; return whether there is no room, exactly."""
        name = section.name
        held, then = (Signal(range(most + 1), name=f"{name}_{when}") for when in ("held", "then"))
        came, full = (Signal(name=f"{name}_{state}") for state in ("came", "full"))
        m.d.comb += then.eq(held + came - freed)
        m.d.sync += [
            held.eq(then),
            came.eq(comes),
            full.eq((then == most) | ((then == most - 1) & comes)),
        ]
        return full


class _Section:
    """A part of a packet: a word of it ends, and all of it does; with the beat that is taken.

    Registers tell in the cycle after it what is to be written.
    """

    def __init__(self, name, beats):
        self.name = name
        self.last = beats - 1
        self.is_beat = int(beats == 1)
        self.active = Signal(name=f"{name}_active")
        self.in_last_beat = Signal(name=f"{name}_in_last_beat")
        self.is_last = Signal(name=f"{name}_is_last")
        self.complete = Signal(name=f"{name}_complete")
        self.ends = Signal(name=f"{name}_ends")
        self.writes = Signal(name=f"{name}_writes")
        self.completed = Signal(name=f"{name}_completed")
        self.ended = Signal(name=f"{name}_ended")
