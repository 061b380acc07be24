"""Product of two activations: a systolic array whose weights the second stream writes."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.streams.stream import beat_layout
from nnef_hw.rtl.windows.linebuffer import window_layout

__all__ = ["ContractionArray"]


class ContractionArray(wiring.Component):
    """Multiply rows by the columns of matrices that another stream brings.

    Golden model: :meth:`.Contraction.multiply` of both operands less their zero points, times
    ``2**gain``, modulo ``2**acc_bits``. Rows come word by word, once for every pass over columns,
    as a :class:`.SystolicArray` takes windows; its timing is this one's. Their first word waits
    until a set of matrices is there; the next set comes meanwhile (:class:`.WeightWriter`).

    Parameters
    ----------
    array, writer : wiring.Component
        Components of the part's array, whose weights are the memories, and of its writer.

    Members
    -------
    i : In(stream.Signature(window_layout))
        Words of rows.
    w : In(stream.Signature(beat_layout))
        Codes of matrices, one per beat; those of a row of a cache (:class:`RowWriter`).
    place : In(stream.Signature(beat_layout))
        Place of that row; only of a cache.
    o : Out(stream.Signature(sum_layout))
    """

    def __init__(self, part: parts.ContractionArray, *, array, writer):
        self.part = part
        self.array = array
        self.writer = writer
        word = window_layout(bits=part.in_bits, signed=part.in_signed, lanes=part.array.lanes)
        code = beat_layout(bits=part.writer.in_bits, signed=part.writer.in_signed, lanes=1)
        place = {}
        if part.is_cached:
            layout = beat_layout(bits=part.writer.place_bits, signed=False, lanes=1)
            place = {"place": In(stream.Signature(layout))}
        super().__init__({
            "i": In(stream.Signature(word)),
            "w": In(stream.Signature(code)),
            **place,
            "o": Out(stream.Signature(sum_layout(part.acc_bits, part.array.out_lanes))),
        })

    def elaborate(self, platform):
        m = Module()
        part, array, writer = self.part, self.array, self.writer
        m.submodules.array = array
        m.submodules.writer = writer
        wiring.connect(m, wiring.flipped(self.w), writer.i)
        if part.is_cached:
            wiring.connect(m, wiring.flipped(self.place), writer.place)
        accept = Signal()
        m.d.comb += [
            array.i.valid.eq(self.i.valid & writer.o.valid),
            self.i.ready.eq(array.i.ready & writer.o.valid),
            accept.eq(array.i.valid & array.i.ready),
            array.i.payload.last.eq(self.i.payload.last),
            array.i.payload.end.eq(self.i.payload.end),
            *(difference.eq(code - part.zero_point) for difference, code
              in zip(array.i.payload.data, self.i.payload.data, strict=True)),
            self.o.valid.eq(array.o.valid),
            array.o.ready.eq(self.o.ready),
            self.o.payload.last.eq(array.o.payload.last),
            *(acc.eq(total << part.gain) for acc, total
              in zip(self.o.payload.acc, array.o.payload.acc, strict=True)),
        ]
        matrix, done = self._places(m, accept & self.i.payload.last)
        m.d.comb += writer.o.ready.eq(done)
        pages = [Signal(writer.part.memory.page_bits, name=f"page{n}")
                 for n in range(len(array.weights))]
        with m.If(accept):
            m.d.sync += pages[0].eq(Cat(matrix, writer.o.payload))
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(pages)]
        for group, page in enumerate(pages):
            ports = {
                "page": page,
                "write_address": writer.write_address,
                "write_data": writer.write_data,
                "write_enable": getattr(writer, f"write_enable{group}"),
            }
            m.d.comb += [getattr(array, f"{name}{group}").eq(value)
                         for name, value in ports.items()]
        return m

    def _places(self, m, step):
        """Count passes, rows of a matrix, matrices and turns; return which matrix, and the end."""
        product = self.part.writer.memory.product
        counters = {}
        for name, extent in (("pass", self.part.array.passes), ("repeat", product.repeats),
                             ("matrix", product.matrices), ("turn", product.turns)):
            counter = counters[name] = Signal(range(extent), name=f"{name}_number")
            at_end = Signal(name=f"{name}_ends")
            m.d.comb += at_end.eq(counter == extent - 1)
            with m.If(step):
                m.d.sync += counter.eq(Mux(at_end, 0, counter + 1))
            step = step & at_end
        return counters["matrix"], step
