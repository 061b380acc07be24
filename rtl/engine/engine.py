"""The shared engine: sequencer, memories, array, requantizer and borders."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.contraction import KeptMatrices, Matrices
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.narrow import NARROW_BITS, NarrowWeights, ShortWeights
from nnef_hw.parts.engine.pairs import Gather, Minima
from nnef_hw.parts.engine.program import BEAT_BITS, LOADED_BITS
from nnef_hw.parts.engine.residual import SharedBank, TensorSums
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.engine.supply import Written
from nnef_hw.parts.engine.tables import Tables
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import delayed
from nnef_hw.rtl.engine.border import border_ports
from nnef_hw.rtl.engine.sequencer import place_ports

__all__ = ["SharedEngine"]


def _unpacked(word, half, halves):
    """Return the weights of a word, or of half of one, whose weights have 4 bits."""
    weights = []
    for n in range(len(word) // CODE_BITS):
        weight = word.word_select(n, CODE_BITS)
        low, high = weight[:NARROW_BITS], weight[NARROW_BITS:]
        low = Mux(half & halves, high, low)
        weights.append(Cat(low, Mux(halves, low[-1].replicate(NARROW_BITS), high)))
    return Cat(weights)


def _lengthened(word, scaled):
    """Return the weights of a short word, 16 times as large where they are scaled."""
    weights = []
    for n in range(len(word) // NARROW_BITS):
        weight = word.word_select(n, NARROW_BITS)
        low = Mux(scaled, 0, weight)
        weights.append(Cat(low, Mux(scaled, weight, weight[-1].replicate(NARROW_BITS))))
    return Cat(weights)


class SharedEngine(wiring.Component):
    """Runs a program: takes a tensor, computes layers from memory to memory, gives a tensor.

    Golden model: :func:`nnef_hw.reference.run_fixed`, with codes less the lowest one of their
    format. A frame is taken when the one before it has left.

    Parameters
    ----------
    program, weights, constants : list[int]
        Contents of the memories; not needed if the program comes as a stream.
    entries : list[int]
        Those of all tables, in the same way.
    codes : list[int]
        First words of the memory of codes.
    sources, targets : list[tuple[int, bool, int]]
        Bits and signedness of the codes at each input and output, and codes of a beat: one of
        those at outputs.
    padded : list[bool]
        Whether any beats of an input are padding that is loaded with it.
    units : list[dict]
        Contents of the parts that tensors pass.

    Members
    -------
    i, o : stream.Signature(beat_layout)
        ``i0``, ``i1``, ... where there are several.
    feed : In(stream.Signature(16))
        Only if the program comes as a stream: the beats of :class:`.EngineFeed`, all instructions
        of a frame over and over.
    program, load, left, stands
        As of :class:`.WrittenProgram`, only if the program may be written: ``i`` and the others.
    tail_address, tail_data, tail_enable : Out
        A beat of the tables of what stands behind it; only if any are written.
    """

    unproved = "what it gives follows from a whole program; tests/engine simulates it"

    def __init__(
        self, part: Engine, *, sources, targets, padded, program=(), weights=(), constants=(),
        entries=(), codes=(), units=(),
    ):  # fmt: skip
        self.part = part
        self.units = units
        self.contents = {"row": program, "constant": constants, "weight": weights}
        self.entries, self.codes = entries, codes
        self.sources, self.targets, self.padded = sources, targets, padded
        ports = {**border_ports("i", In, sources), **border_ports("o", Out, targets)}
        if part.ring is not None:
            ports["feed"] = In(stream.Signature(BEAT_BITS))
        self.written = None
        if part.has(Written):
            self.written = part.supply.build(part, contents=self.contents)
            ports |= {"program": In(stream.Signature(LOADED_BITS))}
            ports |= {x: self.written.signature.members[x] for x in ("load", "left", "stands")}
        if tail_beats := part.supply.tail_beats:
            ports |= {
                "tail_address": Out(range(tail_beats)), "tail_data": Out(BEAT_BITS),
                "tail_enable": Out(1),
            }  # fmt: skip
        super().__init__(ports)

    @property
    def inputs(self):
        """Streams of all inputs."""
        return [getattr(self, name) for name in border_ports("i", In, self.sources)]

    @property
    def outputs(self):
        """Streams of all outputs."""
        return [getattr(self, name) for name in border_ports("o", Out, self.targets)]

    def elaborate(self, platform):
        m = Module()
        part = self.part
        m.submodules.sequencer = sequencer = part.sequencer.build(part)
        m.submodules.requantizer = requantizer = part.requantizer.build(part)
        m.submodules.array = array = part.array.build(part)
        m.submodules.loader = loader = part.loader.build(
            part, formats=self.sources, padded=self.padded
        )
        m.submodules.sender = sender = part.sender.build(part, formats=self.targets)
        m.submodules.codes = codes = part.codes.build(part, contents=self.codes)
        # What writes tables, if these are written: it fills other memories as well.
        filler, places, words = self._supply(m, sequencer)
        parameters = sequencer.parameters
        sent = Signal()
        m.d.sync += sent.eq(sender.done)
        done, units = loader.done | sent, None
        if part.units is not None:
            m.submodules.units = units = part.units.build(part, contents=self.units)
            done |= units.done
        m.d.comb += sequencer.done.eq(done)
        # A word is read, then padded, then stands with its weights before the multipliers.
        word = Signal(part.array.word_bits, reset_less=True)
        for outer, inner in zip(self.inputs, loader.streams, strict=True):
            wiring.connect(m, wiring.flipped(outer), inner)
        for inner, outer in zip(sender.streams, self.outputs, strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        for component in (loader, sender, requantizer):
            m.d.comb += component.parameters.eq(parameters)
        m.d.comb += [
            getattr(sequencer, name).eq(getattr(loader, name)) for name in place_ports(part, Out)
        ]
        begin = delayed(m, sequencer.begin, part.pipeline.border_cycles, name="begin", is_flag=True)
        m.d.comb += [loader.begin.eq(begin), sender.begin.eq(begin), sender.word.eq(word)]
        read_address = Mux(sender.is_active, sender.address, sequencer.word.read)
        is_inside = sequencer.word.inside | sender.is_active
        constant_address = requantizer.constant_address
        if units is not None:
            self._connect_units(m, units, begin, word, words, filler)
            read_address = Mux(units.is_active, units.address, read_address)
            is_inside |= units.is_active
            if hasattr(units, "constant"):
                constant_address = Mux(
                    units.takes_constants, units.constant_address, constant_address
                )

        found = Signal(len(array.weights), reset_less=True)
        # Weights come with the codes: their addresses wait, and block RAMs that are far apart have
        # a register.
        behind = int(part.pipeline.is_spread)
        late = part.pipeline.code_cycles - 1 - behind
        weight_place = delayed(m, sequencer.word.weight, late, name="weight_place")
        m.d.comb += [
            codes.read_address.eq(read_address),
            places["row"].eq(sequencer.row_address),
            sequencer.row.eq(words["row"]),
            places["constant"].eq(constant_address),
            requantizer.constant.eq(words["constant"]),
            *([places["weight"].eq(weight_place)] if "weight" in places else []),
            array.word.eq(sequencer.word),
            array.by_lane.eq(parameters.by_lane),
            array.takes_maximum.eq(parameters.maximum),
            *([array.inverts.eq(parameters.inverts)] if part.has(Minima) else []),
            *([array.gathers.eq(parameters.gathers)] if part.has(Gather) else []),
            *([array.packs.eq(parameters.packs), array.begin.eq(sequencer.begin)]
              if hasattr(array, "packs") else []),
            array.codes.eq(word),
            array.weights.eq(found),
        ]
        operands = m.d.comb if part.is_direct else m.d.sync
        inside = delayed(m, is_inside, part.pipeline.code_cycles, name="inside")
        read = codes.read_data
        if part.has(Gather):
            # A single code comes as that of the first lane.
            lane = delayed(m, sequencer.word.lane, part.pipeline.code_cycles, name="lane")
            first = read.word_select(Mux(parameters.gathers, lane, 0), CODE_BITS)
            read = Cat(first, read[CODE_BITS:])
        shared = part.supply.is_shared
        if shared:
            words["weight"] = self._matrices(m, sequencer, word, weight_place)
        weights = delayed(m, words["weight"], behind, name="weight")
        if part.has(NarrowWeights):
            half = delayed(m, sequencer.word.half, part.pipeline.code_cycles, name="half")
            halves = parameters.halves
            if shared:
                # Of codes that are weights nothing is said, since none of them are halves.
                halves &= ~parameters.contracts
            weights = _unpacked(weights, half, halves)
        if part.has(ShortWeights):
            weights = _lengthened(weights, parameters.scaled)
        if part.has(Matrices) and not shared:
            filled = self._matrices(m, sequencer, word, weight_place)
            filled = delayed(m, filled, behind, name="filled")
            weights = Mux(parameters.contracts, filled, weights)
        operands += [
            word.eq(Mux(inside, read, parameters.pad.replicate(part.array.lanes))),
            found.eq(weights),
        ]

        m.d.comb += requantizer.i.eq(array.result)
        result = requantizer.o
        if sums := part.find(TensorSums):
            slowly = sums.is_serial
            m.submodules.residual = residual = sums.build(part)
            if part.has(SharedBank):
                first = requantizer.o.valid & requantizer.o.first
                m.d.comb += sequencer.other_soon.eq(first if slowly else requantizer.soon)
            if hasattr(array, "adds"):
                m.d.comb += array.adds.eq(parameters.adds)
            if slowly and part.codes.single_port:
                # What is in the bank that is read does not meet what is written.
                apart = parameters.shares if part.has(SharedBank) else 0
                m.d.comb += residual.busy.eq(codes.write_enable & ~apart)
            m.d.comb += [
                residual.i.eq(result),
                residual.parameters.eq(parameters),
                codes.other_address.eq(residual.address),
                codes.other_enable.eq(residual.enable),
                residual.word.eq(codes.other_data),
            ]
            result = residual.o
        own_tables = part.find(Tables)
        tail_beats = part.supply.tail_beats
        if own_tables is not None:
            m.submodules.tables = tables = own_tables.build(part, entries=self.entries)
            m.d.comb += [tables.i.eq(result), tables.parameters.eq(parameters)]
            if filler is not None:
                alone = part.table_beats == own_tables.beats
                own = 1 if alone else filler.table_address < own_tables.beats
                m.d.comb += [
                    tables.write_address.eq(filler.table_address),
                    tables.write_data.eq(filler.table_data),
                    tables.write_enable.eq(filler.table_enable & own),
                ]
            result = tables.o
        if tail_beats:
            before_tails = part.table_beats - tail_beats
            m.d.comb += [
                self.tail_address.eq(filler.table_address - before_tails),
                self.tail_data.eq(filler.table_data),
                self.tail_enable.eq(filler.table_enable & (filler.table_address >= before_tails)),
            ]
        self._write(m, sequencer, result, loader, codes)
        return m

    def _matrices(self, m, sequencer, word, place):
        """Return the words of weights that codes have become; or any, where both are together."""
        part = self.part
        own = {"contents": self.contents["weight"]} if part.supply.is_shared else {}
        m.submodules.matrices = matrices = part.find(Matrices).build(part, **own)
        m.d.comb += [
            matrices.word.eq(sequencer.word),
            matrices.parameters.eq(sequencer.parameters),
            matrices.codes.eq(word),
            matrices.read_address.eq(place),
            *([matrices.place.eq(sequencer.place)] if part.has(KeptMatrices) else []),
        ]
        return matrices.weights

    def _connect_units(self, m, units, begin, word, words, filler):
        """Let units see the instruction, words, constants, tables that come with the program."""
        part, sequencer = self.part, m.submodules.sequencer
        m.d.comb += [
            units.begin.eq(begin),
            units.parameters.eq(sequencer.parameters),
            units.word.eq(word),
        ]
        if hasattr(units, "place"):
            m.d.comb += units.place.eq(sequencer.place)
        if hasattr(units, "constant"):
            m.d.comb += [
                units.ends.eq(sequencer.end),
                units.first_constant.eq(sequencer.word.constant),
                units.constant.eq(words["constant"]),
            ]
        if part.units.beats:
            first = 0 if part.find(Tables) is None else part.find(Tables).beats
            place = filler.table_address - first
            m.d.comb += [
                units.table_place.eq(place),
                units.table_beat.eq(filler.table_data),
                units.table_comes.eq(filler.table_enable & (filler.table_address >= first)
                                     & (place < part.units.beats)),
            ]

    def _supply(self, m, sequencer):
        """Return a component that is filled, and addresses and words of memories by name.

        There is no such component where memories hold all there is for ever.
        """
        if self.part.ring is not None:
            return self._feed(m, sequencer)
        m.d.comb += [sequencer.has_rows.eq(1), sequencer.has_all.eq(1)]
        return (self._memories if self.written is None else self._written)(m)

    def _found(self, filler):
        """Return a component that is filled, with its addresses and words by name."""
        places = {name: getattr(filler, f"{name}_address") for name in self.contents}
        return filler, places, {name: getattr(filler, name) for name in self.contents}

    def _feed(self, m, sequencer):
        """Let the program pass."""
        m.submodules.feed = feed = self.part.ring.build(self.part)
        if self.part.has(Residents):
            self._residents(m, sequencer, feed)
        else:
            wiring.connect(m, wiring.flipped(self.feed), feed.i)
        word, parameters = sequencer.word, sequencer.parameters
        retires, rest = word.valid & word.retires, 0
        if self.part.has(NarrowWeights):
            # The second half of a word; what is left when a convolution ends is half of one.
            retires, rest = retires & (word.half | ~parameters.halves), parameters.has_rest
        m.d.comb += [
            sequencer.has_rows.eq(feed.has_rows),
            sequencer.has_all.eq(feed.has_all),
            feed.end.eq(sequencer.end),
            feed.constants.eq(parameters.constants),
            feed.retires.eq(retires),
            feed.weights.eq(Mux(parameters.by_lane, parameters.weights, rest)),
        ]
        return self._found(feed)

    def _written(self, m):
        """Let memories be written."""
        m.submodules.written = written = self.written
        wiring.connect(m, wiring.flipped(self.program), written.i)
        m.d.comb += [
            written.load.eq(self.load), self.left.eq(written.left), self.stands.eq(written.stands),
        ]
        return self._found(written)

    def _residents(self, m, sequencer, feed):
        """Let packets of the program come from the memory of codes, too."""
        m.submodules.resident = resident = self.part.find(Residents).build(self.part)
        codes = m.submodules.codes
        wiring.connect(m, wiring.flipped(self.feed), resident.i)
        wiring.connect(m, resident.o, feed.i)
        m.d.comb += [
            resident.link_enable.eq(feed.link_enable),
            resident.fill_enable.eq(feed.fill_enable),
            resident.occupied.eq(sequencer.occupied),
            codes.packet_address.eq(resident.address),
            codes.packet_enable.eq(resident.read_enable),
            resident.word.eq(codes.packet_data),
        ]

    def _memories(self, m):
        """Let memories hold all there is."""
        part = self.part
        places, words = {}, {}
        supply = part.supply
        for name, tilings in (
            ("row", supply.program_memories(part)), ("constant", supply.constant_memories(part)),
            ("weight", supply.weight_memories(part)),
        ):
            if not tilings:
                continue
            [tiling] = tilings
            registered = name == "row" and part.pipeline.is_spread
            memory = TiledMemory(tiling, words=self.contents[name], registered=registered)
            m.submodules[{"row": "program"}.get(name, f"{name}s")] = memory
            m.d.comb += memory.read_enable.eq(1)
            places[name], words[name] = memory.read_address, memory.read_data
        return None, places, words

    def _write(self, m, sequencer, result, loader, codes):
        """Collect codes to words, and write these, or what the loader brings."""
        part = self.part
        word = Signal(part.array.word_bits, reset_less=True)
        address = Signal(part.layout.widths["write"], reset_less=True)
        complete = Signal()
        m.d.sync += complete.eq(result.valid & result.last)
        with m.If(result.valid & result.first):
            m.d.sync += address.eq(result.write)
        with m.If(result.valid | loader.step):
            collected = Cat(word, result.codes)[-part.array.word_bits :]
            if part.has(Gather) and part.array.results > 1:
                single = Cat(word[CODE_BITS:], result.codes[0])
                collected = Mux(sequencer.parameters.gathers, single, collected)
            m.d.sync += word.eq(Mux(loader.step, loader.following, collected))
        m.d.comb += loader.word.eq(word)
        write_enable, data = loader.enable | complete, word
        write_address = Mux(loader.enable, loader.address, address)
        if part.has(Residents):
            resident = m.submodules.resident
            m.d.comb += resident.writes_soon.eq(result.valid & result.last)
            write_enable |= resident.write_enable
            write_address = Mux(resident.write_enable, resident.address, write_address)
            data = Mux(resident.write_enable, resident.write_data, data)
        if part.units is not None:
            units = m.submodules.units
            write_enable |= units.write_enable
            write_address = Mux(units.write_enable, units.write_address, write_address)
            data = Mux(units.write_enable, units.write_data, data)
        m.d.comb += [
            codes.write_enable.eq(write_enable),
            codes.write_address.eq(write_address),
            codes.write_data.eq(data),
        ]
