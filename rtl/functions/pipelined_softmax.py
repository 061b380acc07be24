"""Softmax over the channels of a pixel, of several pixels at once."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.functions.softmax import (
    ExponentialLookup,
    dividend,
    last_channel,
    layer_ports,
    saturated,
)
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["PipelinedSoftmax"]


class _Bank:
    """A bank of waiting codes of a pixel: the greatest of them; whether all came, and were read."""

    def __init__(self, code, n):
        self.maximum = Signal(code, name=f"maximum{n}", reset_less=True)
        self.last = Signal(name=f"last{n}", reset_less=True)
        self.filled = Signal(name=f"filled{n}")
        self.read = Signal(name=f"read{n}")


class _Total:
    """The sum of a pixel's exponentials, on its way to the division."""

    def __init__(self, bits):
        self.value = Signal(bits, name="total", reset_less=True)
        self.last = Signal(name="total_last", reset_less=True)
        self.ready = Signal(name="total_ready")
        self.accepted = Signal(name="total_accepted")


@dataclass
class _Division:
    """A division on its way: whether there is one; remainder, divisor; of a frame's last code."""

    valid: Value
    remainder: Value
    divisor: Value
    last: Value


class PipelinedSoftmax(wiring.Component):
    """Softmax of the codes of a pixel, to unsigned 8-bit probabilities in 1/256.

    Or to others, if the part says so: of ``out_bits``, in steps of ``2**-places``.

    Golden model: that of :class:`nnef_hw.rtl.functions.softmax.Softmax`. While a pixel comes in,
    the exponentials of the one before it are summed, and those of the one before that are divided
    by their sum. Codes and exponentials wait in memories for two pixels each.

    A pixel takes ``pixel_cycles`` of its part if its codes come as fast. A result that is not taken
    stops the stages of the division one after the other; the sum of the next pixel waits then, and
    two pixels of codes.

    Parameters
    ----------
    table : list[int]
        :func:`nnef_hw.arithmetic.softmax.exp_table`, of several one behind the other; not needed
        if they are written.
    is_masked : bool
        The lowest code is hidden.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))
    table_number, last_channel, masks, fewer, table_address, table_data, table_enable : In
        See :func:`.layer_ports`.
    """

    unproved = "the solver finds no invariant in 150 s; tests simulate it under stalls"

    def __init__(self, part: parts.PipelinedSoftmax, *, table=(), is_masked=False):
        self.part = part
        self.table = table
        self.is_masked = is_masked
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "o": Out(stream.Signature(beat_layout(bits=part.out_bits, signed=False, lanes=1))),
            **layer_ports(part),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        codes = TiledMemory(part.code_memory, writable=True)
        exponentials = TiledMemory(part.exponential_memory, writable=True)
        m.submodules.codes, m.submodules.exponentials = codes, exponentials

        code = self.i.payload.data[0]
        banks = [_Bank(code.shape(), n) for n in range(2)]
        total = _Total(part.sum_bits)
        self._load(m, code, codes, banks)
        lookup = ExponentialLookup(
            m, part, self.table, codes, code.shape(), self, is_masked=self.is_masked)
        self._sum(m, codes, lookup, exponentials, banks, total)
        self._divide(m, exponentials, total)
        return m

    def _position(self, m, advance, *, name):
        """Return index and bank of a code, which ``advance`` moves on, and whether it is final."""
        index = Signal(range(self.part.channels), name=f"{name}_index")
        bank = Signal(name=f"{name}_bank")
        final = Signal(name=f"{name}_final")
        m.d.comb += final.eq(index == last_channel(self.part, self))
        with m.If(advance):
            m.d.sync += [index.eq(Mux(final, 0, index + 1)), bank.eq(bank ^ final)]
        return index, bank, final

    def _load(self, m, code, codes, banks):
        """Take pixels into the banks in turn; find their greatest codes."""
        accept = Signal()
        index, bank, final = self._position(m, accept, name="load")
        m.d.comb += [
            self.i.ready.eq(~Mux(bank, banks[1].filled, banks[0].filled)),
            accept.eq(self.i.valid & self.i.ready),
            codes.write_address.eq(Cat(index, bank)),
            codes.write_data.eq(code),
            codes.write_enable.eq(accept),
        ]
        for n, taking in enumerate(banks):
            with m.If(taking.read):
                m.d.sync += taking.filled.eq(0)
            with m.If(accept & (bank == n)):
                m.d.sync += [taking.last.eq(self.i.payload.last), taking.filled.eq(final)]
                with m.If((index == 0) | (code > taking.maximum)):
                    m.d.sync += taking.maximum.eq(code)

    def _sum(self, m, codes, lookup, exponentials, banks, total):
        """Look up and sum the exponentials of a pixel; hold the next one until that is taken."""
        hold = Signal()
        index, bank, final = self._position(m, lookup.read, name="sum")
        bank_read = Signal(reset_less=True)
        m.d.comb += [
            lookup.read.eq(Mux(bank, banks[1].filled, banks[0].filled) & ~hold),
            *(each.read.eq(lookup.read & final & (bank == n)) for n, each in enumerate(banks)),
            codes.read_address.eq(Cat(index, bank)),
            lookup.maximum.eq(Mux(bank_read, banks[1].maximum, banks[0].maximum)),
        ]
        m.d.sync += bank_read.eq(bank)
        with m.If(total.accepted):
            m.d.sync += [hold.eq(0), total.ready.eq(0)]
        with m.If(lookup.read & final):
            m.d.sync += [hold.eq(1), total.last.eq(Mux(bank, banks[1].last, banks[0].last))]

        write_index, write_bank, write_final = self._position(m, lookup.valid, name="write")
        m.d.comb += [
            exponentials.write_address.eq(Cat(write_index, write_bank)),
            exponentials.write_data.eq(lookup.exponential),
            exponentials.write_enable.eq(lookup.valid),
        ]
        with m.If(lookup.valid):
            m.d.sync += [
                total.value.eq(Mux(write_index == 0, 0, total.value) + lookup.exponential),
                total.ready.eq(write_final),
            ]

    def _divide(self, m, exponentials, total):
        """Divide a pixel's exponentials by their sum, then the next one's."""
        dividing, issued = Signal(), Signal()
        divisor = Signal.like(total.value, name="divisor", reset_less=True)
        last = Signal(reset_less=True)
        issue, fetch, enter = Signal(), Signal(), Signal()
        index, bank, final = self._position(m, issue, name="divide")
        stored, stored_final = Signal(), Signal(reset_less=True)
        fetched, fetched_final = Signal(), Signal(reset_less=True)
        exponential = Signal(self.part.exponential_bits, name="fetched_exponential",
                             reset_less=True)
        m.d.comb += [
            issue.eq(dividing & ~issued & (~stored | fetch)),
            fetch.eq(stored & (~fetched | enter)),
            total.accepted.eq(total.ready & (~dividing | (enter & fetched_final))),
            exponentials.read_address.eq(Cat(index, bank)),
            exponentials.read_enable.eq(issue),
        ]
        with m.If(issue):
            m.d.sync += [stored.eq(1), stored_final.eq(final), issued.eq(final)]
        with m.Elif(fetch):
            m.d.sync += stored.eq(0)
        with m.If(fetch):
            m.d.sync += [
                fetched.eq(1),
                fetched_final.eq(stored_final),
                exponential.eq(exponentials.read_data),
            ]
        with m.Elif(enter):
            m.d.sync += fetched.eq(0)
        with m.If(enter & fetched_final):
            m.d.sync += dividing.eq(0)
        with m.If(total.accepted):
            m.d.sync += [
                dividing.eq(1),
                issued.eq(0),
                divisor.eq(total.value),
                last.eq(total.last),
            ]

        steps = self.part.stages * self.part.interval
        remainder = Signal(steps + len(divisor) + 1, name="dividend")
        m.d.comb += remainder.eq(dividend(self.part, self, exponential, divisor))
        item = _Division(valid=fetched, remainder=remainder, divisor=divisor,
                         last=last & fetched_final)
        accepts = [Signal(name=f"accept{n}") for n in range(self.part.stages + 1)]
        m.d.comb += enter.eq(fetched & accepts[0])
        for n in range(self.part.stages):
            item = self._stage(m, item, accepts[n], accepts[n + 1], steps, n)
        quotient = item.remainder[:self.part.quotient_bits]
        m.d.comb += accepts[-1].eq(~self.o.valid | self.o.ready)
        with m.If(accepts[-1]):
            m.d.sync += [
                self.o.valid.eq(item.valid),
                self.o.payload.data[0].eq(saturated(self.part, quotient)),
                self.o.payload.last.eq(item.last),
            ]

    def _stage(self, m, item, accept, is_accepted, steps, n):
        """Find ``interval`` bits of the quotient of an item; return it with these.

        Above ``steps`` bits of a remainder stands what the divisor may be taken from. Below, the
        zeros that are shifted in give way to the quotient's bits.
        """
        held = _Division(*(
            Signal.like(value, name=f"{field}{n}", reset_less=field != "valid")
            for field, value in vars(item).items()
        ))
        step = Signal(range(self.part.interval), name=f"step{n}")
        done, fits = Signal(name=f"done{n}"), Signal(name=f"fits{n}")
        rest = Signal.like(held.divisor, name=f"rest{n}")
        following = Signal.like(held.remainder, name=f"following{n}")
        above = held.remainder[steps:]
        m.d.comb += [
            done.eq(held.valid & (step == self.part.interval - 1)),
            accept.eq(~held.valid | (done & is_accepted)),
            fits.eq(above >= held.divisor),
            rest.eq(Mux(fits, above - held.divisor, above)),
            following.eq(Cat(fits, held.remainder[:steps], rest)),
        ]
        with m.If(accept):
            m.d.sync += [
                register.eq(value)
                for register, value in zip(vars(held).values(), vars(item).values(), strict=True)
            ]
            m.d.sync += step.eq(0)
        with m.Elif(~done):
            m.d.sync += [held.remainder.eq(following), step.eq(step + 1)]
        return _Division(done, following, held.divisor, held.last)
