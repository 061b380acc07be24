"""Writes matrices of a stream into an array's weights, a half while the other one is used."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["RowWriter", "WeightWriter"]


class WeightWriter(wiring.Component):
    """Put the codes of matrices, less their zero point, where an array reads them.

    Golden model: weight ``w[m, k, n]`` is in page m, at word ``n // rows * words + k // lanes``, of
    row ``n % rows`` and lane ``k % lanes``; the axes of the stream are those of
    ``part.memory.product.order``. A code per cycle, while one of the halves is free.

    A half is offered in the cycle after its last code, and is taken with the last word that is read
    of it. Groups of rows read it a cycle after each other: it is free when the last one has.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Codes, one per beat.
    o : Out(stream.Signature(1))
        Which half is full.
    write_address, write_data : Out
        Where and what is written.
    write_enable0 ... : Out
        Memories that are written, of every group.
    """

    unproved = "what it promises holds with what reads the halves: proved with ContractionArray"

    def __init__(self, part: parts.WeightWriter, **members):
        self.part = part
        memory = part.memory
        code = beat_layout(bits=part.in_bits, signed=part.in_signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(code)),
            "o": Out(stream.Signature(1)),
            "write_address": Out(memory.address_bits),
            "write_data": Out(memory.gathered * memory.bits),
            **{f"write_enable{group}": Out(memory.banks(rows))
               for group, rows in enumerate(memory.group_sizes)},
            **members,
        })

    def elaborate(self, platform):
        m = Module()
        memory = self.part.memory
        accept = Signal()
        whole = Signal()
        m.d.comb += accept.eq(self.i.valid & self.i.ready)
        axes = {}
        # of the axis that is innermost one says what is gathered; a place says nothing
        self._lane_ends = self._row_ends = Const(1)
        step = accept
        for axis in reversed(memory.product.order):
            axes[axis], step = self._axis(m, axis, step)
        m.d.comb += whole.eq(step)
        half = self._halves(m, whole)

        matrix, (lane, word), (row, group, base) = axes["m"], axes["k"], axes["n"]
        innermost = memory.product.order[-1]
        # what is gathered begins with place 0, and is whole at a last one
        place = {"k": lane, "n": row, "m": Const(0, 1)}[innermost]
        complete = {"k": self._lane_ends, "n": self._row_ends, "m": Const(1)}[innermost]
        value = Signal(signed(memory.bits))
        m.d.comb += value.eq(self.i.payload.data[0] - self.part.zero_point)
        with m.If(accept):
            for n in range(memory.gathered):
                gathered = self.write_data.word_select(n, memory.bits)
                with m.If(place == n):
                    m.d.sync += gathered.eq(value)
                with m.Elif(place == 0):
                    m.d.sync += gathered.eq(0)
        m.d.sync += self.write_address.eq(Cat((base + word)[:memory.word_bits], matrix, half))
        for number, rows in enumerate(memory.group_sizes):
            count = memory.banks(rows)
            bank = {"k": row, "n": lane, "m": row * memory.lanes + lane}[innermost]
            enable = getattr(self, f"write_enable{number}")
            is_written = accept & complete & (group == number)
            m.d.sync += enable.eq(Mux(is_written, Const(1, count) << bank, 0))
        return m

    def _axis(self, m, axis, step):
        """Count along an axis; return the place of a code, and whether it begins anew."""
        steps = {"m": self._matrix, "k": self._inner, "n": self._column}
        return steps[axis](m, step)

    def _may_take(self):
        """Return whether a code may be taken while there is room."""
        return Const(1)

    def _matrix(self, m, step):
        """Count matrices; return the number and whether it begins anew."""
        return _counted(m, step, self.part.memory.product.matrices, name="matrix")

    def _inner(self, m, step):
        """Count the lanes and words of a column."""
        memory = self.part.memory
        inner = memory.product.inner
        lane = Signal(range(memory.lanes), name="lane")
        word = Signal(range(memory.words), name="word")
        at_end = Signal(name="inner_ends")
        self._lane_ends = Signal(name="lane_ends")
        m.d.comb += [
            at_end.eq((word == memory.words - 1) & (lane == (inner - 1) % memory.lanes)),
            self._lane_ends.eq(at_end | (lane == memory.lanes - 1)),
        ]
        with m.If(step):
            m.d.sync += lane.eq(Mux(self._lane_ends, 0, lane + 1))
            with m.If(self._lane_ends):
                m.d.sync += word.eq(Mux(at_end, 0, word + 1))
        return (lane, word), step & at_end

    def _column(self, m, step):
        """Count the rows of groups, and the words of passes before."""
        memory = self.part.memory
        sizes = memory.group_sizes
        last = (memory.product.columns - 1) % memory.rows
        row = Signal(range(memory.group_rows), name="row")
        group = Signal(range(len(sizes)), name="group")
        base = Signal(range(max(1, memory.passes * memory.words)), name="base")
        group_ends = Signal(name="group_ends")
        pass_ends = Signal(name="pass_ends")
        at_end = Signal(name="column_ends")
        self._row_ends = Signal(name="row_ends")
        m.d.comb += [
            pass_ends.eq((group == len(sizes) - 1) & (row == sizes[-1] - 1)),
            group_ends.eq((row == memory.group_rows - 1) | pass_ends),
            at_end.eq((base == (memory.passes - 1) * memory.words)
                      & (group == last // memory.group_rows)
                      & (row == last % memory.group_rows)),
            self._row_ends.eq(group_ends | at_end),
        ]
        with m.If(step):
            m.d.sync += row.eq(Mux(self._row_ends, 0, row + 1))
            with m.If(self._row_ends):
                m.d.sync += group.eq(Mux(pass_ends | at_end, 0, group + 1))
            with m.If(at_end):
                m.d.sync += base.eq(0)
            with m.Elif(pass_ends):
                m.d.sync += base.eq(base + memory.words)
        return (row, group, base), step & at_end

    def _halves(self, m, whole):
        """Offer full halves, and say which one is written."""
        halves = self.part.memory.halves
        taken = Signal()
        freed = Signal()
        half = Signal()
        offered = Signal()
        full = Signal(range(halves + 1))
        available = Signal(range(halves + 1))
        m.d.comb += [
            self.i.ready.eq((full != halves) & self._may_take()),
            self.o.valid.eq(available != 0),
            self.o.payload.eq(offered),
            taken.eq(self.o.valid & self.o.ready),
        ]
        later = taken
        for n in range(self.part.groups - 1):
            register = Signal(name=f"taken{n}")
            m.d.sync += register.eq(later)
            later = register
        m.d.comb += freed.eq(later)
        m.d.sync += [
            full.eq(full + whole - freed),
            available.eq(available + whole - taken),
        ]
        if halves > 1:
            m.d.sync += [half.eq(half ^ whole), offered.eq(offered ^ taken)]
        return half


class RowWriter(WeightWriter):
    """Put a row of a cache where an array reads it: the other rows stay as they are.

    Golden model: :func:`nnef_hw.arithmetic.places.write_rows` of codes less their zero point, after
    reset of zeros; the rest is that of :class:`WeightWriter`, of one half. It writes the zeros
    after reset, a word per cycle, and takes the first row then. A place beyond the last is that.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Codes of a row, one per beat.
    place : In(stream.Signature(beat_layout))
        The place of a row, which is taken with its last code.
    o, write_address, write_data, write_enable0 ... : Out
        Those of a :class:`WeightWriter`.
    """

    unproved = "tests simulate it under stalls, with the array that reads the cache"

    def __init__(self, part: parts.RowWriter):
        place = beat_layout(bits=part.place_bits, signed=False, lanes=1)
        super().__init__(part, place=In(stream.Signature(place)))

    def elaborate(self, platform):
        self._is_cleared = Signal(name="is_cleared")
        m = super().elaborate(platform)
        memory = self.part.memory
        sweep = Signal(range(memory.depth))
        enables = [getattr(self, f"write_enable{n}") for n in range(len(memory.group_sizes))]
        with m.If(~self._is_cleared):
            m.d.sync += [
                sweep.eq(sweep + 1),
                self._is_cleared.eq(sweep == memory.depth - 1),
                self.write_address.eq(sweep),
                self.write_data.eq(0),
                *(enable.eq(~Const(0, len(enable))) for enable in enables),
            ]
        return m

    def _may_take(self):
        return self._is_cleared & self.place.valid

    def _axis(self, m, axis, step):
        """Take the axis of rows from the place; the others are counted."""
        memory = self.part.memory
        if axis != memory.product.row_axis:
            return super()._axis(m, axis, step)
        last = self.part.rows - 1
        given = self.place.payload.data[0]
        place = Signal(range(self.part.rows), name="row_place")
        m.d.comb += [
            place.eq(Mux(given > last, last, given)),
            self.place.ready.eq(step),
        ]
        if axis == "k":
            lanes = memory.lanes
            return ((place, Const(0, 1)) if memory.words == 1 else
                    (place[:exact_log2(lanes)], place[exact_log2(lanes):])), step
        within, base = place, Const(0, 1)
        if memory.passes > 1:
            bits = exact_log2(memory.rows)
            within, base = place[:bits], place[bits:] * memory.words
        row, group = within, Const(0, 1)
        if len(memory.group_sizes) > 1:
            bits = exact_log2(memory.group_rows)
            row, group = within[:bits], within[bits:]
        return (row, group, base), step


def _counted(m, step, extent, *, name):
    """Return a counter modulo ``extent``, and whether this step lets it begin anew."""
    counter = Signal(range(extent), name=name)
    at_end = Signal(name=f"{name}_ends")
    m.d.comb += at_end.eq(counter == extent - 1)
    with m.If(step):
        m.d.sync += counter.eq(Mux(at_end, 0, counter + 1))
    return counter, step & at_end
