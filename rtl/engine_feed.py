"""The shared engine's program as it passes: packets of a stream, in circular memories."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine import BEAT_BITS, Engine
from nnef_hw.rtl.memory import TiledMemory

__all__ = ["EngineFeed"]


class EngineFeed(wiring.Component):
    """Hold the next instructions of a stream with their constants and weights, until they end.

    An instruction's packet is two beats, the numbers of its constants and of its words of weights,
    then its rows, the constants and the words, each of as many beats as it needs, the lowest bits
    first. A beat is taken per cycle as long as there is room for the row, constant or word that it
    belongs to. Constants and weights are freed when their instruction ends, one cycle late: by then
    the word that was read last has been. Results still need its constants; so not all of their
    memory is filled ahead.

    Golden model: :func:`nnef_hw.engine.image.image_beats`.

    Members
    -------
    i : In(stream.Signature(16))
    row_address, constant_address, weight_address : In
    row, constant, weight : Out
        What is there, a cycle later.
    has_rows, has_all : Out(1)
        The rows of the oldest instruction are there; all of its packet is.
    end : In(1)
        The oldest instruction ends.
    constants, weights : In
        How many of each it has; in the cycle after ``end``.
    """

    def __init__(self, part: Engine):
        self.part = part
        super().__init__({
            "i": In(stream.Signature(BEAT_BITS)),
            "row_address": In(range(part.slots * part.instruction_stride)),
            "constant_address": In(range(part.constant_words)),
            "weight_address": In(range(part.ring_words)),
            "row": Out(BEAT_BITS * len(part.program_memories)),
            "constant": Out(BEAT_BITS * len(part.constant_memories)),
            "weight": Out(BEAT_BITS * len(part.weight_memories)),
            "has_rows": Out(1),
            "has_all": Out(1),
            "end": In(1),
            "constants": In(part.fields["constants"]),
            "weights": In(part.fields["weights"]),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        accept, complete, has_room = Signal(), Signal(), Signal()
        column = Signal(range(max(map(len, (
            part.program_memories, part.constant_memories, part.weight_memories)))))
        last_column = Signal.like(column)
        constants, weights = Signal.like(self.constants), Signal.like(self.weights)
        left = Signal(range(max(part.ring_words, part.constant_words)))
        m.d.comb += [
            self.i.ready.eq(has_room),
            accept.eq(self.i.valid & has_room),
            complete.eq(accept & (column == last_column)),
        ]
        with m.If(accept):
            m.d.sync += column.eq(Mux(complete, 0, column + 1))

        ended = Signal()
        m.d.sync += ended.eq(self.end)
        rows = self._rows(m, accept, column)
        constant = self._circular(m, "constant", accept, column)
        weight = self._circular(m, "weight", accept, column)
        packet_ends = Signal()
        free_slots = self._count(m, "has_rows", rows.ends, self.end)
        self._count(m, "has_all", packet_ends, self.end)
        constants_free = self._room(m, constant, part.constants_ahead, ended, self.constants)
        weights_free = self._room(m, weight, part.ring_words, ended, self.weights)

        def follow(section):
            """Go on with the constants, the weights, or the next packet."""
            m.d.comb += section.complete.eq(complete)
            with m.If(complete):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.d.comb += section.ends.eq(1)

        with m.FSM():
            with m.State("CONSTANTS"):
                m.d.comb += has_room.eq(1)
                m.d.sync += constants.eq(self.i.payload)
                with m.If(accept):
                    m.next = "WEIGHTS"
            with m.State("WEIGHTS"):
                m.d.comb += has_room.eq(1)
                m.d.sync += [weights.eq(self.i.payload), left.eq(part.instruction_rows - 1)]
                with m.If(accept):
                    m.next = "ROW"
            with m.State("ROW"):
                m.d.comb += [
                    rows.active.eq(1), has_room.eq(free_slots),
                    last_column.eq(len(part.program_memories) - 1),
                ]
                follow(rows)
                with m.If(rows.ends):
                    with m.If(constants != 0):
                        m.d.sync += left.eq(constants - 1)
                        m.next = "CONSTANT"
                    with m.Else():
                        m.d.comb += packet_ends.eq(1)
                        m.next = "CONSTANTS"
            with m.State("CONSTANT"):
                m.d.comb += [
                    constant.active.eq(1), has_room.eq(constants_free),
                    last_column.eq(len(part.constant_memories) - 1),
                ]
                follow(constant)
                with m.If(constant.ends):
                    with m.If(weights != 0):
                        m.d.sync += left.eq(weights - 1)
                        m.next = "WEIGHT"
                    with m.Else():
                        m.d.comb += packet_ends.eq(1)
                        m.next = "CONSTANTS"
            with m.State("WEIGHT"):
                m.d.comb += [
                    weight.active.eq(1), has_room.eq(weights_free),
                    last_column.eq(len(part.weight_memories) - 1),
                ]
                follow(weight)
                with m.If(weight.ends):
                    m.d.comb += packet_ends.eq(1)
                    m.next = "CONSTANTS"
        return m

    def _rows(self, m, accept, column):
        """Memory of the program: the rows of an instruction, then the next slot."""
        part = self.part
        section = _Section("row")
        row, slot = Signal(range(part.instruction_stride)), Signal(range(part.slots))
        with m.If(section.ends):
            m.d.sync += [row.eq(0), slot.eq(slot + 1)]
        with m.Elif(section.complete):
            m.d.sync += row.eq(row + 1)
        self._memories(m, section, Cat(row, slot), accept, column)
        return section

    def _circular(self, m, name, accept, column):
        section = _Section(name)
        place = Signal.like(getattr(self, f"{name}_address"), name=f"{name}_place")
        with m.If(section.complete):
            m.d.sync += place.eq(place + 1)
        self._memories(m, section, place, accept, column)
        return section

    def _memories(self, m, section, place, accept, column):
        name = section.name
        tilings = getattr(self.part, {"row": "program"}.get(name, name) + "_memories")
        for n, tiling in enumerate(tilings):
            m.submodules[f"{name}{n}"] = memory = TiledMemory(tiling, writable=True)
            m.d.comb += [
                memory.read_address.eq(getattr(self, f"{name}_address")),
                memory.read_enable.eq(1),
                getattr(self, name)[n * BEAT_BITS : (n + 1) * BEAT_BITS].eq(memory.read_data),
                memory.write_address.eq(place),
                memory.write_data.eq(self.i.payload),
                memory.write_enable.eq(section.active & accept & (column == n)),
            ]

    def _count(self, m, name, more, fewer):
        """Count instructions; return whether there is room for another one."""
        held = Signal(range(self.part.slots + 1), name=f"{name}_held")
        m.d.sync += held.eq(held + more - fewer)
        m.d.comb += getattr(self, name).eq(held != 0)
        return held != self.part.slots

    def _room(self, m, section, most, ended, freed):
        """Count what is held; return whether there is room."""
        held = Signal(range(most + 1), name=f"{section.name}_held")
        m.d.sync += held.eq(held + section.complete - Mux(ended, freed, 0))
        return held != most


class _Section:
    """A part of a packet: a word of it ends, and all of it does."""

    def __init__(self, name):
        self.name = name
        self.active = Signal(name=f"{name}_active")
        self.complete = Signal(name=f"{name}_complete")
        self.ends = Signal(name=f"{name}_ends")
