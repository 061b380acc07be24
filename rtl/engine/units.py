"""The shared engine's units: parts that a tensor passes on its way from memory to memory."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import BEAT_BITS, Kind
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.engine.passage import EnginePassage
from nnef_hw.rtl.functions.softmax import last_beat

__all__ = ["ChannelConstants", "EngineUnits", "write_tables"]


def write_tables(m, components, part, first, *, address, data, enable):
    """Let the tables of equal parts come from a beat on, of those that are written one by one."""
    per_entry = -(-part.exponential_bits // BEAT_BITS)
    beats = per_entry * part.table_memory.depth
    place = Signal(range(beats), name="table_place")
    comes = enable & (address >= first) & (address < first + beats)
    m.d.comb += place.eq(address - first)
    entry, complete = place, comes
    if per_entry > 1:
        lower = Signal(BEAT_BITS, name="lower_beat", reset_less=True)
        with m.If(comes):
            m.d.sync += lower.eq(data)
        entry, data, complete = place[1:], Cat(lower, data), comes & place[0]
    for component in components:
        m.d.comb += [
            component.table_address.eq(entry),
            component.table_data.eq(data),
            component.table_enable.eq(complete),
        ]


class EngineUnits(wiring.Component):
    """Send tensors through parts, of which the instruction tells the number, and write results.

    Golden model: that of the part.

    Parameters
    ----------
    contents : list[dict]
        What the part of each unit is filled with.

    Members
    -------
    begin, parameters, is_active, address, word, write_address, write_data, write_enable, done
        See :class:`.EnginePassage`.
    ends : In(1)
        An instruction ends; only where units take constants, as all that follows.
    first_constant : In
        Where those of the instruction begin.
    constant_address, takes_constants : Out
        What is read there, in cycles in which nothing else is.
    constant : In
        It, a cycle later.
    table_place, table_beat, table_comes : In
        A beat of the tables of all units is written; only if they come with the program.
    place : In
        The last channel that is seen where an instruction hides those behind it; only if any does.
    """

    unproved = "its ports follow an instruction of a program; tests/engine simulates it"

    def __init__(self, part: Engine, *, contents):
        self.part = part
        self.contents = contents
        self.passage = EnginePassage(part)
        own = self.passage.signature.members
        names = ("begin", "parameters", "is_active", "address", "word", "write_address",
                 "write_data", "write_enable", "done")
        place = part.layout.widths["constant"]
        constants = {
            "ends": In(1), "first_constant": In(place), "constant_address": Out(place),
            "takes_constants": Out(1), "constant": In(part.array.results * part.constant_bits),
        } if part.units.constant_bits else {}  # fmt: skip
        beats = part.units.beats
        tables = {
            "table_place": In(range(beats)), "table_beat": In(BEAT_BITS), "table_comes": In(1),
        } if beats else {}  # fmt: skip
        hides = any(unit.hides for unit in part.units.units)
        places = {"place": In(part.layout.bits("last_place"))} if hides else {}
        super().__init__({**{name: own[name] for name in names}, **constants, **tables, **places})

    def elaborate(self, platform):
        m = Module()
        feature, parameters = self.part.units, self.parameters
        m.submodules.passage = passage = self.passage
        for name in ("begin", "parameters", "word"):
            m.d.comb += getattr(passage, name).eq(getattr(self, name))
        for name in ("is_active", "address", "write_address", "write_data", "write_enable",
                     "done"):
            m.d.comb += getattr(self, name).eq(getattr(passage, name))
        first_beat, addresses = 0, []
        for n, (unit, contents) in enumerate(zip(feature.units, self.contents, strict=True)):
            copies = feature.copies(unit)
            components = [unit.part.build(**contents) for _ in range(copies)]
            is_chosen = parameters.unit == n if len(feature.units) > 1 else Const(1)
            for way, component in enumerate(components):
                name = f"unit{n}" + (f"_{way}" if copies > 1 else "")
                m.submodules[name] = component
                self._connect(m, unit, component, way, is_chosen)
                m.d.comb += [
                    getattr(component, port).eq(parameters[field]) for port, field in unit.ports
                ]
            if unit.table_beats:
                write_tables(
                    m, components, unit.part, first_beat, address=self.table_place,
                    data=self.table_beat, enable=self.table_comes,
                )
                first_beat += unit.table_beats
            if unit.constant_bits:
                address = self._constants(m, n, unit, components, is_chosen)
                addresses.append((is_chosen, address))
        if addresses:
            begins = self.begin & (parameters.kind == Kind.STREAM)
            # What the next instruction is stands before results on their way have their constants.
            with m.If(self.ends):
                m.d.sync += self.takes_constants.eq(0)
            with m.Elif(begins):
                m.d.sync += self.takes_constants.eq(1)
            for is_chosen, address in addresses:
                with m.If(is_chosen):
                    m.d.comb += self.constant_address.eq(self.first_constant + address)
        return m

    def _connect(self, m, unit, component, way, is_chosen):
        """Let codes of a way pass a part if it is chosen."""
        codes, results = (getattr(self.passage, f"{name}{way}") for name in ("codes", "results"))
        [operand], result = unit.part.operands(component), unit.part.result(component)
        bits, is_signed = unit.source
        # A signed code is that of the engine with its highest bit turned round.
        turned = 1 << (bits - 1) if is_signed else 0
        payload = self._lanes(codes.payload)
        if unit.hides:
            payload = self._hide(m, unit, codes, is_chosen)
        m.d.comb += [
            operand.valid.eq(codes.valid & is_chosen),
            *(operand.payload.data[lane].eq(code[:bits] ^ turned)
              for lane, code in enumerate(payload)),
        ]
        bits, is_signed = unit.target
        offset = 1 << (bits - 1) if is_signed else 0
        with m.If(is_chosen):
            m.d.comb += [
                codes.ready.eq(operand.ready),
                results.valid.eq(result.valid),
                *(code.eq((result.payload.data[lane] + offset)[:CODE_BITS])
                  for lane, code in enumerate(self._lanes(results.payload))),
                result.ready.eq(results.ready),
            ]

    def _lanes(self, payload):
        """Return the codes of a beat."""
        return [payload.word_select(lane, CODE_BITS) for lane in range(self.part.units.lanes)]

    def _hide(self, m, unit, codes, is_chosen):
        """Return the codes, or the lowest one in place of those behind a place; others are not."""
        channel = Signal(range(unit.part.beats))
        with m.If(self.begin):
            m.d.sync += channel.eq(0)
        with m.Elif(codes.valid & codes.ready & is_chosen):
            is_last = channel == last_beat(unit.part, self.parameters)
            m.d.sync += channel.eq(Mux(is_last, 0, channel + 1))
        found = []
        for lane, code in enumerate(self._lanes(codes.payload)):
            shown = Mux(code == 0, 1, code)
            number = Cat(Const(lane, unit.part.lane_bits), channel)
            seen = Mux(number > self.place, 0, shown)
            found.append(Mux(self.parameters.hides, seen, code))
        return found

    def _constants(self, m, n, unit, components, is_chosen):
        """Give a unit's parts their constants; return which ones are read, from the first on."""
        part, copies = self.part, len(components)
        readers = [ChannelConstants(part, unit) for _ in range(copies)]
        for way, (reader, component) in enumerate(zip(readers, components, strict=True)):
            m.submodules[f"constants{n}" + (f"_{way}" if copies > 1 else "")] = reader
            m.d.comb += [
                reader.begin.eq(self.begin),
                reader.taken.eq(component.constant_taken),
                component.constant.eq(reader.constant),
            ]
        together = part.array.results
        words = Cat(
            self.constant.word_select(place, part.constant_bits)[: unit.constant_bits]
            for place in range(together)
        )
        if not part.units.copies_constants(part, unit):
            m.d.comb += readers[0].word.eq(words)
            return readers[0].address
        # Each has a copy, which is complete before a pixel is.
        banks, count = part.units.constant_banks(part), -(-unit.part.channels // together)
        place, copied = (Signal(range(max(2, count)), name=f"{x}{n}") for x in ("from", "to"))
        copying, arrives = Signal(name=f"copies{n}"), Signal(name=f"arrives{n}")
        tiling = part.units.constant_memory(part, unit)
        m.d.sync += [copied.eq(place), arrives.eq(copying & self.takes_constants)]
        with m.If(self.begin):
            streams = self.parameters.kind == Kind.STREAM
            m.d.sync += [place.eq(0), copying.eq(is_chosen & streams)]
        with m.Elif(copying):
            m.d.sync += [place.eq(place + 1), copying.eq(place != max(2, count) - 1)]
        within = (banks - 1).bit_length()
        for way, reader in enumerate(readers):
            for bank in range(banks):
                memory = TiledMemory(tiling, writable=True)
                m.submodules[f"copy{n}_{way}" + (f"_{bank}" if banks > 1 else "")] = memory
                m.d.comb += [
                    memory.write_address.eq(copied[within:]),
                    memory.write_data.eq(words),
                    memory.write_enable.eq(arrives & (copied[:within] == bank) if banks > 1
                                           else arrives),
                    memory.read_address.eq(reader.address),
                    memory.read_enable.eq(1),
                    reader.word.word_select(bank, len(words)).eq(memory.read_data),
                ]
        return place


class ChannelConstants(wiring.Component):
    """Find the constants of one beat of channels after the other, over and over.

    Those of ``results`` channels, or of a beat if that has more, are a word of a memory.

    Golden model: the constants of a pixel.

    Members
    -------
    begin : In(1)
        An instruction begins: from three cycles on the constants of the first beat are there.
    taken : In(1)
        In the next cycle those of the next beat are wanted.
    address : Out
    word : In
        What is there, a cycle later.
    constant : Out(lanes * constant_bits)
        The constants of this beat.
    """

    unproved = "it waits for nothing: a memory is read in turn"

    def __init__(self, part: Engine, unit):
        lanes = part.units.lanes
        together = max(part.array.results, lanes)
        self.beats, self.word_beats = unit.part.channels // lanes, together // lanes
        self.bits = lanes * unit.constant_bits
        super().__init__({
            "begin": In(1), "taken": In(1),
            "address": Out(range(max(2, -(-self.beats // self.word_beats)))),
            "word": In(together * unit.constant_bits), "constant": Out(self.bits),
        })

    def elaborate(self, platform):
        m = Module()
        channel, following = Signal(range(self.beats)), Signal(range(self.beats))
        m.d.comb += following.eq(channel)
        with m.If(self.begin):
            m.d.comb += following.eq(0)
        with m.Elif(self.taken):
            m.d.comb += following.eq(Mux(channel == self.beats - 1, 0, channel + 1))
        m.d.sync += channel.eq(following)
        within = (self.word_beats - 1).bit_length()
        m.d.comb += [
            self.address.eq(following[within:]),
            self.constant.eq(self.word.word_select(channel[:within], self.bits)
                             if within else self.word),
        ]
        return m
