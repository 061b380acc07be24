"""The shared engine's sequencer: reads the program, counts loops, gives words their addresses."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.border import PlaceInputs
from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.contraction import KeptMatrices, Matrices
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.pairs import Gather, Products
from nnef_hw.parts.engine.program import PASS_LEVEL, QUANTITIES, Kind
from nnef_hw.parts.engine.residual import SharedBank, TensorSums
from nnef_hw.parts.engine.sequencer import Divided
from nnef_hw.rtl.base.primitives import delayed

__all__ = ["EngineSequencer", "parameter_layout", "place_ports", "word_layout"]


def parameter_layout(part: Engine):
    """Fields of an instruction besides its loops."""
    widths = {name: part.layout.widths[name] for name in part.layout.parameters}
    widths |= {name: width for name, (width, _) in part.layout.constants.items()}
    return data.StructLayout({
        name: Shape(width, part.facts[name].signed) for name, width in widths.items()
    })


def word_layout(part: Engine):
    """Payload of a word as it is read: addresses, and its place in a pass.

    ``fresh`` begins new sums, ``shift`` moves those of every row to the row before; ``keep`` ends a
    pass whose sums are results, ``results`` of them. A word that is not ``inside`` is padding.
    ``lane`` tells which of its codes is read, if that is one; ``times_kept`` that its weights are
    the codes of the first word of the pass; ``retires`` that no other word will have its weights.
    A word that ``fills`` becomes weights, and ``ends`` a row of them, or lanes of several;
    ``is_last`` is the last one of a row. Results of a pass that ``saves`` are sums of weights.
    """
    widths = {name: part.layout.widths[name] for name in ("read", "weight", "constant", "write")}
    return data.StructLayout({
        "valid": 1,
        "fresh": 1,
        "shift": 1,
        "keep": 1,
        "inside": 1,
        "results": part.layout.bits("results"),
        **dict(part.fine.values()),
        **({"times_kept": 1} if part.has(Products) else {}),
        **({"retires": 1} if part.ring is not None else {}),
        **(dict.fromkeys(("fills", "ends", "is_last", "saves"), 1) if part.has(Matrices) else {}),
        **{name: width - part.fine_bits(name) for name, width in widths.items()},
    })


def place_ports(part: Engine, flow):
    """Return ports of the integers that are places, by the numbers of their inputs."""
    found = part.find(PlaceInputs)
    return {} if found is None else {f"place{n}": flow(bits) for n, bits in found.bits.items()}


class EngineSequencer(wiring.Component):
    """Run the instructions of a program one after the other, for ever.

    A layer's word is issued in one cycle and read ``read_stage`` later, with the addresses
    that the steps of the loops have made so far; one word per cycle. The last word of a pass whose
    sums are results waits until those of the pass before have left, so that nothing behind ever has
    to.

    The rows of the next instruction are read while the pipeline drains, but for those with what
    results on their way need. It begins ``1 + max(settle, setup)`` cycles after the last word of a
    layer was issued, ``1 + setup`` after ``done`` or that of a part which another one follows, and
    issues its first word a cycle later.

    Golden model: the cycles of :mod:`nnef_hw.engine.layers.layer`.

    Members
    -------
    row_address : Out
        Row of the program that is read, ``stride`` per instruction.
    row : In(row_bits)
        That row, ``read_stage`` cycles later.
    word : Out(word_layout)
        The word that is read in this cycle.
    parameters : Out(parameter_layout)
        Of the instruction that runs, from ``begin`` on.
    begin : Out(1)
        An instruction begins.
    done : In(1)
        Loader or sender have ended in the cycle before.
    has_rows, has_all : In(1)
        The rows of the next instruction are there, and its constants and weights: it waits for
        them if the program comes as a stream.
    other_soon : In(1)
        A word that is added to a result is read when one would be that is issued now; only if these
        may be where the array reads (:class:`.SharedBank`).
    end : Out(1)
        An instruction ends: nothing of it is issued any more.
    place0, ... : In
        Integers that are places, by the numbers of their inputs; only if there are any.
    place : Out
        That of the instruction, the last one at most.
    occupied : Out(2)
        Of each bank of codes, whether there may be no time to read packets of the program from it
        in two cycles from now on; only if these may stay there (:class:`.Residents`).
    """

    unproved = "no stream: it issues the words of a program"

    def __init__(self, part: Engine):
        self.part = part
        super().__init__({
            "row_address": Out(range(part.slots * part.stride)),
            "row": In(part.layout.row_bits),
            "word": Out(word_layout(part)),
            "parameters": Out(
                parameter_layout(part),
                init={name: value for name, (_, value) in part.layout.constants.items()},
            ),
            "begin": Out(1),
            "done": In(1),
            "has_rows": In(1),
            "has_all": In(1),
            "end": Out(1),
            **({"other_soon": In(1)} if part.has(SharedBank) else {}),
            **({"occupied": Out(2)} if part.has(Residents) else {}),
            **place_ports(part, In),
            **({"place": Out(part.layout.bits("last_place"))} if part.has(PlaceInputs) else {}),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        instruction = Signal(range(part.slots))
        row = Signal(range(part.layout.rows + 1))
        level = Signal(range(part.layout.levels))
        reading = Signal(init=1)
        place = Signal(range(part.layout.stride))
        m.d.comb += place.eq(Mux(reading, row, level))
        is_dense = part.stride < part.layout.stride
        if is_dense:
            # Counts the rows of instructions before.
            instruction = Signal(range(part.slots * part.stride), name="first_row")
        following, last = (
            (instruction + part.stride, (part.slots - 1) * part.stride)
            if is_dense
            else (instruction + 1, part.slots - 1)
        )
        first = part.supply.follows_last * (part.stride if is_dense else 1)
        m.d.comb += self.row_address.eq(
            instruction + place if is_dense else Cat(place, instruction)
        )
        # A row is found when it has been read; in the cycle after, the count is that of the next.
        is_found = Signal()
        late = part.pipeline.read_stage - 1
        limits, ended = self._fetch(
            m, self.row, delayed(m, is_found, late, name="row_is_found", is_flag=True),
            delayed(m, row, late, name="found_row"),
        )

        waiting, running = Signal(), Signal()
        drains = part.pipeline.drain(adds=True), part.pipeline.drain(adds=False)
        remaining = Signal(range(max(drains) + 1))
        issue, is_final = Signal(), Signal()
        end = self.end
        starts = self._starts(m, end)
        may_read = Signal()
        # The last results have been made when the fields that they need change.
        is_free = remaining <= 1 + part.pipeline.late_ahead
        if part.has(Divided):
            # Parts of a layer need not wait for what those before them have computed.
            is_free |= self.parameters.follows
        m.d.comb += may_read.eq(
            Mux(row == 0, self.has_rows, Mux(row == part.layout.late_row, is_free, 1)))
        may_issue = self._words(m, limits, ended, level, is_final, issue)
        if part.has(SharedBank):
            may_issue &= ~(self.other_soon & self.parameters.shares)
        m.d.comb += [
            issue.eq(running & (self.parameters.kind == Kind.RUN) & may_issue),
            self.begin.eq(waiting & self.has_all),
            end.eq((issue & is_final) | (running & self.done)),
        ]
        with m.If(remaining != 0):
            m.d.sync += remaining.eq(remaining - 1)
        with m.If(issue & is_final):
            m.d.sync += remaining.eq(Mux(self.parameters.adds, *drains))
        m.d.sync += is_found.eq(reading & may_read)
        has_read = waiting
        if late:
            # The last row comes later, too.
            has_read = Signal()
            with m.If(has_read):
                m.d.sync += [has_read.eq(0), waiting.eq(1)]
        with m.If(reading & may_read):
            m.d.sync += row.eq(row + 1)
            with m.If(row == part.layout.rows):
                m.d.sync += [reading.eq(0), has_read.eq(1)]
        with m.If(self.begin):
            m.d.sync += [waiting.eq(0), running.eq(1)]
        with m.If(end):
            m.d.sync += [
                running.eq(0),
                reading.eq(1),
                row.eq(0),
                instruction.eq(Mux(instruction == last, first, following)),
            ]
        m.d.sync += self.word.valid.eq(delayed(m, issue, late, name="issue", is_flag=True))
        self._addresses(m, self.row, starts)
        if part.has(Residents):
            self._occupied(m, running, issue & is_final, remaining)
        return m

    def _occupied(self, m, running, ends, remaining):
        """Tell which banks an instruction reads; both while sums of two tensors may be made."""
        parameters = self.parameters
        # Runs, or has until the cycle before.
        active, sums = Signal(), Const(0)
        m.d.sync += active.eq(self.begin | running)
        if self.part.has(TensorSums):
            adding = Signal()
            with m.If(ends & parameters.adds):
                m.d.sync += adding.eq(1)
            with m.Elif(remaining <= 1):
                m.d.sync += adding.eq(0)
            sums = adding | active & parameters.adds
        if self.part.units is not None:
            # One is read, the other one written.
            sums |= active & (parameters.kind == Kind.STREAM)
        m.d.comb += self.occupied.eq(
            Cat(active & (parameters.bank == bank) | sums for bank in range(2))
        )

    def _starts(self, m, end):
        """Return where every quantity begins: weights and constants where they came to."""
        part = self.part
        known = [name for name in QUANTITIES if name in part.layout.parameters]
        starts = {name: self.parameters[name] for name in known}
        if part.ring is not None:
            for name in ("weight", "constant"):
                low = part.fine_bits(name)
                place = Signal(part.layout.widths[name] - low, name=f"first_{name}")
                with m.If(end):
                    m.d.sync += place.eq(place + self.parameters[f"{name}s"])
                starts[name] = place << low
            if part.has(Matrices):
                starts["weight"] = Mux(self.parameters.contracts, 0, starts["weight"])
        if part.has(PlaceInputs):
            self._choose(m, starts)
        return starts

    def _choose(self, m, starts):
        """Let weights, or what is read or written, begin at the place that an integer tells."""
        part, parameters = self.part, self.parameters
        numbers = sorted(part.find(PlaceInputs).bits)
        given = getattr(self, f"place{numbers[0]}")
        for n in numbers[1:]:
            given = Mux(parameters.place == n, getattr(self, f"place{n}"), given)
        m.d.comb += self.place.eq(Mux(given > parameters.last_place, parameters.last_place, given))
        words = self.place << parameters.place_shift
        if part.find(PlaceInputs).sums:
            rest = (self.place << parameters.place_rest)[1:]
            words = words + Mux(parameters.place_rest == 0, 0, rest)
        moved = ["weight", "write"]
        if part.find(PlaceInputs).reads:
            moved.append("read")
        for name in moved:
            own = Mux(parameters[f"moves_{name}"], words << part.fine_bits(name), 0)
            starts[name] = starts[name] + own
        if part.has(KeptMatrices):
            self._place_row(starts)

    def _place_row(self, starts):
        """Let a row of a matrix that stays go to the row of the array and the word of its place.

        A lane of rows goes to the word alone.
        """
        part, parameters = self.part, self.parameters
        row_bits, lane_bits = ((n - 1).bit_length() for n in (part.array.rows, part.array.lanes))
        word = Mux(parameters.turns, self.place >> lane_bits, self.place >> row_bits)
        word = (word << parameters.place_shift) << part.fine_bits("weight")
        row = self.place[:row_bits] << part.fine_bits("write")
        starts["weight"] = starts["weight"] + Mux(parameters.placed, word, 0)
        starts["write"] = starts["write"] + Mux(parameters.placed & ~parameters.turns, row, 0)

    def _fetch(self, m, found, is_found, row):
        """Read the limits of the loops, and the other fields.

        Return these limits, and whether each loop has come to its own: by registers if
        ``is_spread``.
        """
        part = self.part
        loop = data.StructLayout(dict(part.layout.loop_fields))
        found_loop = loop(found[: loop.size])
        widths, levels = part.layout.widths, part.layout.levels
        limits = [Signal(widths["count"], name=f"limit{n}") for n in range(levels)]
        ended = [Signal(name=f"ended{n}") for n in range(levels)]
        with m.If(is_found):
            for n, limit in enumerate(limits):
                with m.If(row == n + 1):
                    m.d.sync += limit.eq(found_loop.count)
                    if part.pipeline.is_spread:
                        m.d.sync += ended[n].eq(found_loop.count == 0)
            for name, (place, bit) in part.layout.parameters.items():
                with m.If(row == part.layout.levels + place + 1):
                    m.d.sync += self.parameters[name].eq(found[bit : bit + widths[name]])
        return limits, ended

    def _words(self, m, limits, ended, level, is_final, issue):
        """Count the loops; return whether nothing holds the next word back."""
        part, parameters = self.part, self.parameters
        counters = [Signal.like(limit, name=f"counter{n}") for n, limit in enumerate(limits)]
        moves = [Signal(name=f"moves{n}") for n in range(part.layout.levels)]
        lower = Const(1)
        for n in range(part.layout.levels):
            following = (counters[n] + 1)[: len(counters[n])]
            m.d.comb += moves[n].eq(lower)
            if not part.pipeline.is_spread:
                m.d.comb += ended[n].eq(counters[n] == limits[n])
            lower = moves[n] & ended[n]
            with m.If(moves[n] & ~ended[n]):
                m.d.comb += level.eq(n)
            with m.If(issue & moves[n]):
                m.d.sync += counters[n].eq(Mux(ended[n], 0, following))
                if part.pipeline.is_spread:
                    m.d.sync += ended[n].eq(Mux(ended[n], 0, following) == limits[n])
        m.d.comb += is_final.eq(lower)

        step = counters[PASS_LEVEL]
        # Every word is a pass.
        gathers = parameters.gathers if part.has(Gather) else Const(0)
        keep, is_first, slides = Signal(), Signal(), Signal()
        # Steps until sums are results.
        silent = Signal.like(parameters.silent, name="silent")
        with m.If(self.begin):
            m.d.sync += silent.eq(parameters.silent)
        with m.Elif(issue & moves[PASS_LEVEL]):
            left = Mux(silent == 0, 0, silent - 1)
            m.d.sync += silent.eq(Mux(ended[PASS_LEVEL], parameters.silent, left))
        results = Signal(part.layout.bits("results"))
        # Where sums of two tensors alone leave more slowly, passes have as many words.
        pace = part.pipeline.pace(adds=False)
        hold = Signal(range(part.array.rows * pace))
        ends = (moves[PASS_LEVEL] & (silent == 0)) | gathers
        m.d.comb += [
            is_first.eq((Cat(*counters[:PASS_LEVEL]) == 0) | gathers),
            slides.eq(parameters.slides & (step != 0)),
            keep.eq(ends & ~parameters.fills if part.has(Matrices) else ends),
            results.eq(Mux(ended[PASS_LEVEL], parameters.last_results, parameters.results)),
        ]
        with m.If(issue & keep):
            last = results - 1
            m.d.sync += hold.eq(last if pace == 1 else Cat(Const(pace - 1), last))
        with m.Elif(hold != 0):
            m.d.sync += hold.eq(hold - 1)
        flags = {
            "fresh": is_first & ~slides, "shift": is_first & slides, "keep": keep,
            "results": results,
        }  # fmt: skip
        if part.has(Products):
            begins_second = (counters[1] != 0) & (counters[0] == 0)
            flags["times_kept"] = parameters.multiplies & begins_second
        if part.ring is not None:
            # Of a convolution all passes of the last pixel read all weights once more.
            flags["retires"] = Cat(ended[PASS_LEVEL + 1 :]).all() & ~parameters.by_lane
        if part.has(Matrices):
            if part.ring is not None:
                flags["retires"] &= ~parameters.contracts
            flags |= {"fills": parameters.fills, "ends": ended[0], "is_last": ended[1]}
        for name, flag in flags.items():
            late = delayed(m, flag, part.pipeline.read_stage - 1, name=f"issued_{name}")
            m.d.sync += self.word[name].eq(late)
        return ~keep | (hold == 0)

    def _addresses(self, m, found, starts):
        """Step the addresses of the word that is read to those of the next one."""
        part, parameters = self.part, self.parameters
        loop = data.StructLayout(dict(part.layout.loop_fields))
        steps = loop(found[: loop.size])
        places = {name: Signal(part.layout.widths[name], name=name) for name in QUANTITIES}
        for name, place in places.items():
            step = steps[f"{name}_step"]
            if len(step) < len(place):
                step = step.as_signed()
            with m.If(self.begin):
                m.d.sync += place.eq(starts[name])
            with m.Elif(self.word.valid):
                m.d.sync += place.eq(place + step)
        m.d.comb += [
            # A place before the image is a large number.
            self.word.inside.eq(
                (places["y"] < parameters.height) & (places["x"] < parameters.width)
            ),
            *(
                self.word[name].eq(places[name][part.fine_bits(name) :])
                for name in ("weight", "constant", "write", "read")
            ),
            *(self.word[low].eq(places[name]) for name, (low, _) in part.fine.items()),
            *([self.word.saves.eq(~self.word.inside & parameters.contracts)]
              if part.has(Matrices) else []),
        ]
