"""Softmax over the channels of a pixel, in integers."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.parts.softmax import QUOTIENT_BITS
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.stream import beat_layout

__all__ = ["Softmax"]


class Softmax(wiring.Component):
    """Softmax of the codes of a pixel, to unsigned 8-bit probabilities in 1/256.

    Golden model: :func:`nnef_hw.numerics.softmax_codes`. One pixel takes ``16 * channels + 4``
    cycles: load and find the maximum, sum the exponentials, then one serial division per code.

    Parameters
    ----------
    table : list[int]
        :func:`nnef_hw.numerics.exp_table`.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))
    """

    def __init__(self, part: parts.Softmax, *, table):
        self.part = part
        self.table = table
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "o": Out(stream.Signature(beat_layout(bits=8, signed=False, lanes=1))),
        })

    def elaborate(self, platform):
        m = Module()
        part, code = self.part, self.i.payload.data[0]
        channels = part.channels
        codes = TiledMemory(part.code_memory, writable=True)
        exponentials = TiledMemory(part.table_memory, words=self.table)
        m.submodules.codes, m.submodules.exponentials = codes, exponentials

        index = Signal(range(channels))
        maximum = Signal.like(code, reset_less=True)
        last = Signal(reset_less=True)
        total = Signal(part.sum_bits)
        stored = Signal.like(code)
        read = Signal()
        exponential = Signal(part.exponential_bits, reset_less=True)
        looked_up, came, summed = (Signal(name=name) for name in ("looked_up", "came", "summed"))
        remainder = Signal(part.sum_bits + QUOTIENT_BITS + 1, reset_less=True)
        divisor = Signal(part.sum_bits + QUOTIENT_BITS)
        quotient = Signal(QUOTIENT_BITS)
        step = Signal(range(QUOTIENT_BITS))

        m.d.comb += [
            codes.write_address.eq(index),
            codes.write_data.eq(code),
            codes.read_address.eq(index),
            codes.read_enable.eq(1),
            stored.eq(codes.read_data),
            exponentials.read_address.eq(maximum - stored),
            exponentials.read_enable.eq(1),
            divisor.eq(total << QUOTIENT_BITS),
        ]
        m.d.sync += [
            looked_up.eq(read),
            came.eq(looked_up),
            summed.eq(came),
            exponential.eq(exponentials.read_data),
        ]
        with m.If(summed):
            m.d.sync += total.eq(total + exponential)

        final = index == channels - 1
        advance = Mux(final, 0, index + 1)
        with m.FSM():
            with m.State("LOAD"):
                m.d.comb += [
                    self.i.ready.eq(1),
                    codes.write_enable.eq(self.i.valid),
                ]
                with m.If(self.i.valid):
                    m.d.sync += index.eq(advance)
                    with m.If((index == 0) | (code > maximum)):
                        m.d.sync += maximum.eq(code)
                    with m.If(final):
                        m.d.sync += [last.eq(self.i.payload.last), total.eq(0)]
                        m.next = "SUM"
            with m.State("SUM"):
                m.d.comb += read.eq(1)
                m.d.sync += index.eq(advance)
                with m.If(final):
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                with m.If(~looked_up & ~came & ~summed):
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.next = "LOOK_UP"
            with m.State("LOOK_UP"):
                m.next = "COME"
            with m.State("COME"):
                m.next = "START"
            with m.State("START"):
                m.d.sync += [
                    remainder.eq((exponential << QUOTIENT_BITS) + total),
                    step.eq(0),
                ]
                m.next = "DIVIDE"
            with m.State("DIVIDE"):
                fits = remainder >= divisor
                m.d.sync += [
                    remainder.eq(Mux(fits, remainder - divisor, remainder) << 1),
                    quotient.eq(Cat(fits, quotient)),
                    step.eq(step + 1),
                ]
                with m.If(step == QUOTIENT_BITS - 1):
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.data[0].eq(Mux(quotient[8], 255, quotient)),
                    self.o.payload.last.eq(last & final),
                ]
                with m.If(self.o.ready):
                    m.d.sync += index.eq(advance)
                    with m.If(final):
                        m.next = "LOAD"
                    with m.Else():
                        m.next = "FETCH"
        return m
