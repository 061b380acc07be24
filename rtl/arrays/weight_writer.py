"""Writes matrices of a stream into an array's weights, a half while the other one is used."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["WeightWriter"]


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

    def __init__(self, part: parts.WeightWriter):
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
        })

    def elaborate(self, platform):
        m = Module()
        memory = self.part.memory
        accept = Signal()
        whole = Signal()
        m.d.comb += accept.eq(self.i.valid & self.i.ready)
        steps = {"m": self._matrix, "k": self._inner, "n": self._column}
        axes = {}
        step = accept
        for axis in reversed(memory.product.order):
            axes[axis], step = steps[axis](m, step)
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
        taken = Signal()
        freed = Signal()
        half = Signal()
        offered = Signal()
        full = Signal(range(3))
        available = Signal(range(3))
        m.d.comb += [
            self.i.ready.eq(full != 2),
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
            half.eq(half ^ whole),
            offered.eq(offered ^ taken),
            full.eq(full + whole - freed),
            available.eq(available + whole - taken),
        ]
        return half


def _counted(m, step, extent, *, name):
    """Return a counter modulo ``extent``, and whether this step lets it begin anew."""
    counter = Signal(range(extent), name=name)
    at_end = Signal(name=f"{name}_ends")
    m.d.comb += at_end.eq(counter == extent - 1)
    with m.If(step):
        m.d.sync += counter.eq(Mux(at_end, 0, counter + 1))
    return counter, step & at_end
