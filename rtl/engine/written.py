"""The shared engine's program in memories that a system writes: another one without a bitstream."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import BEAT_BITS, LOADED_BITS
from nnef_hw.rtl.base.memory import TiledMemory

__all__ = ["WrittenProgram"]

_SETTLING = 4
"""Cycles from the last beat on in which the engine still stands: memories are written."""


@dataclass(frozen=True)
class _Section:
    """Words of a program that follow each other: ``depth`` of ``beats`` each."""

    name: str
    depth: int
    beats: int
    tilings: tuple = ()


class WrittenProgram(wiring.Component):
    """Hold rows, constants and weights, until others are written.

    Golden model: :func:`nnef_hw.engine.program.image.loaded_bytes`, whose words are taken in two
    cycles each. The memories have contents from the beginning. A program is written as a whole:
    its words are missing from ``load`` on, and the engine stands until the last one has come and is
    written. A reset changes none of this, so that no engine begins with half a program.

    Parameters
    ----------
    contents : Mapping[str, list[int]]
        First contents of ``row``, ``constant`` and ``weight``.

    Members
    -------
    i : In(stream.Signature(32))
        The program; taken only while words of it are missing.
    load : In(1)
        It comes from its first word on.
    left : Out
        Words that are missing.
    stands : Out(1)
        The engine has to be reset.
    row_address, constant_address, weight_address : In
    row, constant, weight : Out
        What is there, a cycle later; of a row ``read_stage``.
    table_address, table_data, table_enable : Out
        A beat of tables is written; only if there are any.
    """

    unproved = "it takes what follows from a whole program; tests/engine simulates it"

    def __init__(self, part: Engine, *, contents):
        self.part = part
        self.contents = contents
        supply = part.supply
        self.sections = [
            _Section(name, tilings[0].depth, beats, tilings)
            for name, beats, tilings in (
                ("row", part.layout.row_beats, supply.program_memories(part)),
                ("constant", part.constant_beats, supply.constant_memories(part)),
                ("weight", part.weight_beats(part.array.rows), supply.weight_memories(part)),
            )
        ]
        memories = {
            name: member
            for section in self.sections
            for name, member in (
                (f"{section.name}_address", In(range(section.depth))),
                (section.name, Out(BEAT_BITS * section.beats)),
            )
        }
        tables = {}
        if part.table_beats:
            self.sections.append(_Section("table", part.table_beats, 1))
            tables = {
                "table_address": Out(range(part.table_beats)), "table_data": Out(BEAT_BITS),
                "table_enable": Out(1),
            }  # fmt: skip
        beats = sum(section.depth * section.beats for section in self.sections)
        self.words = -(-beats * BEAT_BITS // LOADED_BITS)
        super().__init__({
            "i": In(stream.Signature(LOADED_BITS)), "load": In(1),
            "left": Out(range(self.words + 1)), "stands": Out(1), **memories, **tables,
        })

    def elaborate(self, platform):
        m = Module()
        left = Signal.like(self.left, name="words_left", reset_less=True)
        upper = Signal(reset_less=True)
        section = Signal(range(len(self.sections) + 1), reset_less=True)
        place = Signal(range(max(x.depth for x in self.sections)), reset_less=True)
        column = Signal(range(max(x.beats for x in self.sections)), reset_less=True)
        missing, comes = Signal(), Signal()
        m.d.comb += [
            missing.eq(left != 0),
            comes.eq(self.i.valid & missing),
            self.i.ready.eq(upper & missing),
            self.left.eq(left),
        ]
        # Two beats and the one before it: of a pair the lower one came first.
        beats = Signal(2 * BEAT_BITS, reset_less=True)
        written_place = Signal.like(place, reset_less=True)
        m.d.sync += written_place.eq(place)
        with m.If(comes):
            m.d.sync += [
                beats.eq(Cat(beats[BEAT_BITS:], self.i.payload.word_select(upper, BEAT_BITS))),
                upper.eq(~upper), left.eq(left - upper), column.eq(column + 1),
            ]
        for n, own in enumerate(self.sections):
            here = comes & (section == n)
            with m.If(here & (column == own.beats - 1)):
                m.d.sync += [column.eq(0), place.eq(place + 1)]
                with m.If(place == own.depth - 1):
                    m.d.sync += [place.eq(0), section.eq(n + 1)]
            if own.tilings:
                self._memories(m, own, here, column, written_place, beats)
            else:
                comes_before = Signal(name="table_comes", reset_less=True)
                m.d.sync += comes_before.eq(here)
                m.d.comb += [
                    self.table_address.eq(written_place),
                    self.table_data.eq(beats[BEAT_BITS:]),
                    self.table_enable.eq(comes_before),
                ]
        with m.If(self.load):
            m.d.sync += [left.eq(self.words), upper.eq(0)]
            m.d.sync += [section.eq(0), place.eq(0), column.eq(0)]
        settling = Signal(_SETTLING, reset_less=True)
        m.d.sync += settling.eq(Mux(missing, ~0, settling[1:]))
        m.d.comb += self.stands.eq(settling[0])
        return m

    def _memories(self, m, section, here, column, place, beats):
        """Make the memories of a section; each is written when its last beat has come."""
        low = 0
        words = self.contents[section.name]
        registered = section.name == "row" and self.part.pipeline.is_spread
        for n, tiling in enumerate(section.tilings):
            own = [word >> low & (1 << tiling.width) - 1 for word in words]
            memory = TiledMemory(tiling, words=own, writable=True, registered=registered)
            m.submodules[f"{section.name}{n}"] = memory
            end = (low + tiling.width) // BEAT_BITS - 1
            write = Signal(name=f"writes_{section.name}{n}", reset_less=True)
            m.d.sync += write.eq(here & (column == end))
            m.d.comb += [
                memory.read_address.eq(getattr(self, f"{section.name}_address")),
                memory.read_enable.eq(1),
                getattr(self, section.name)[low : low + tiling.width].eq(memory.read_data),
                memory.write_address.eq(place),
                memory.write_data.eq(beats[-tiling.width :]),
                memory.write_enable.eq(write),
            ]
            low += tiling.width
