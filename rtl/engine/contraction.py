"""Matrices of codes in the shared engine, as weights of its array."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.contraction import KeptMatrices, Matrices
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import delayed
from nnef_hw.rtl.engine.sequencer import parameter_layout, word_layout

__all__ = ["EngineMatrices"]


class EngineMatrices(wiring.Component):
    """Keep words of codes as words of weights, less 128: each of them a row, or a lane of rows.

    Where a word is a row, it goes to the row that its ``write`` counts. Where words are lanes, it
    goes to a lane of so many rows, of the group of these that ``write`` counts. Where lanes of a
    word cannot be written alone (``writes_lanes``), so many words wait in registers, until they end
    the word of the rows. Codes of a row's last word behind ``inner_lanes`` weigh nothing.

    Of matrices that stay, words that are ``placed`` go to the lane that the lowest bits of
    ``place`` tell.

    Golden model: ``weights[weight][row, lane] = code - 128``. A word is written two cycles after it
    is at the multipliers at the latest.

    Parameters
    ----------
    contents : list[int]
        Words of weights in front of the matrices, if these are behind them.

    Members
    -------
    word : In(word_layout)
        The word that is read.
    parameters : In(parameter_layout)
        ``turns`` and ``inner_lanes``.
    place : In
        The place of the instruction; only if matrices stay (:class:`.KeptMatrices`).
    codes : In(lanes * 8)
        Its codes, ``operand_stage`` after its issue.
    read_address : In
    weights : Out(rows * lanes * 8)
        Row 0 lowest, a cycle later.
    """

    unproved = "no stream: a memory"

    def __init__(self, part: Engine, *, contents=()):
        self.part = part
        self.contents = contents
        array = part.array
        super().__init__({
            "word": In(word_layout(part)),
            "parameters": In(parameter_layout(part)),
            "codes": In(array.word_bits),
            "read_address": In(range(part.find(Matrices).row_memory(part).depth)),
            "weights": Out(array.products * CODE_BITS),
            **({"place": In(part.layout.bits("last_place"))} if part.has(KeptMatrices) else {}),
        })

    def elaborate(self, platform):
        m = Module()
        part, array = self.part, self.part.array
        own = part.find(Matrices)
        cycles = part.pipeline.operand_stage - part.pipeline.read_stage
        fills = delayed(m, self.word.fills & self.word.valid, cycles, name="fills", is_flag=True)
        ends, is_last = (
            delayed(m, self.word[name], cycles, name=name) for name in ("ends", "is_last")
        )
        late = int(not own.writes_lanes(part))
        place, row = (
            delayed(m, value, cycles + late, name=name)
            for name, value in (
                ("place", self.word.weight[: len(self.read_address)]),
                ("row", self.word.write[: (array.rows - 1).bit_length()]),
            )
        )
        middle = Const(1 << (CODE_BITS - 1), CODE_BITS)
        codes = [self.codes.word_select(n, CODE_BITS) ^ middle for n in range(array.lanes)]
        whole = [
            Mux(is_last & (n > self.parameters.inner_lanes), 0, code)
            for n, code in enumerate(codes)
        ]
        if own.writes_lanes(part):
            first = None
            if part.has(KeptMatrices):
                lanes = self.place[: (array.lanes - 1).bit_length()]
                lanes = Mux(self.parameters.placed, lanes, 0)
                first = delayed(m, lanes, cycles, name="first_lane")
            rows, enables = self._lanes(m, fills, ends, codes, whole, first)
            turns = self.parameters.turns
        else:
            turns = delayed(m, self.parameters.turns, 1, name="turns")
            enables = Signal(name="written")
            m.d.sync += enables.eq(fills & ends)
            rows = self._words(m, fills, turns, codes, whole)
        found = []
        for n in range(array.rows):
            style = "distributed" if own.in_lut_ram else "block"
            part_bits = CODE_BITS if own.writes_lanes(part) else 0
            low, mask = n * array.word_bits, (1 << array.word_bits) - 1
            memory = TiledMemory(
                own.row_memory(part), words=[word >> low & mask for word in self.contents],
                writable=True, part_bits=part_bits, style=style,
            )  # fmt: skip
            m.submodules[f"row{n}"] = memory
            chosen = Mux(turns, row == n // array.lanes, row == n)
            m.d.comb += [
                memory.read_address.eq(self.read_address),
                memory.read_enable.eq(1),
                memory.write_address.eq(place),
                memory.write_data.eq(rows[n % array.lanes]),
                memory.write_enable.eq(enables & chosen.replicate(len(enables))),
            ]
            found.append(memory.read_data)
        m.d.comb += self.weights.eq(Cat(found))
        return m

    def _lanes(self, m, fills, ends, codes, whole, first):
        """Return the word of each row, and the lanes of it that are written.

        Words are lanes from the ``first`` one on, if that is not always 0.
        """
        lanes = self.part.array.lanes
        lane = Signal(range(lanes))
        with m.If(fills):
            m.d.sync += lane.eq(Mux(ends, 0, lane + 1))
        turns = self.parameters.turns
        keeps = self.part.find(Matrices).keeps
        rows = [
            Cat(Mux(turns, code, other) if keeps else code for other in whole) for code in codes
        ]
        here = lane if first is None else (lane + first)[: len(lane)]
        return rows, Cat(fills & (~turns | (here == n)) for n in range(lanes))

    def _words(self, m, fills, turns, codes, whole):
        """Return the words of rows, of which lanes wait for the others."""
        own, array = self.part.find(Matrices), self.part.array
        rows = [Const(0, array.word_bits)] * array.lanes
        if own.turns:
            rows = []
            for n, code in enumerate(codes):
                lanes = Signal(array.word_bits, name=f"lanes{n}", reset_less=True)
                with m.If(fills):
                    m.d.sync += lanes.eq(Cat(lanes[CODE_BITS:], code))
                rows.append(lanes)
        if own.keeps:
            word = Signal(array.word_bits, name="whole", reset_less=True)
            m.d.sync += word.eq(Cat(whole))
            rows = [Mux(turns, lanes, word) for lanes in rows]
        return rows
