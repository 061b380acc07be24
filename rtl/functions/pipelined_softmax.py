"""Softmax over the channels of a pixel, of several pixels at once."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.parts.functions.pipelined_softmax import TREE_LEVELS
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.functions.softmax import (
    ExponentialLookup,
    dividend,
    last_beat,
    layer_ports,
    saturated,
)
from nnef_hw.rtl.streams.stream import Fifo, beat_layout, code_range, code_shape

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
    """A division on its way: whether there is one, of a frame's last beat; each code's remainder.

    All have one divisor.
    """

    valid: Value
    remainders: list[Value]
    divisor: Value
    last: Value

    @property
    def fields(self):
        """All values."""
        return [self.valid, *self.remainders, self.divisor, self.last]


def _tree(m, values, combine, *, name):
    """Combine values by a tree of pairs, with registers behind every ``TREE_LEVELS`` levels."""
    stage = 0
    while len(values) > 1:
        for _ in range(TREE_LEVELS):
            pairs = [values[n : n + 2] for n in range(0, len(values), 2)]
            values = [combine(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
        registers = [
            Signal.like(value, name=f"{name}{stage}_{n}", reset_less=True)
            for n, value in enumerate(values)
        ]
        m.d.sync += [register.eq(value) for register, value in zip(registers, values, strict=True)]
        values, stage = registers, stage + 1
    return values[0]


def _delayed(m, value, cycles, *, name):
    """Return a bit as it was so many cycles before."""
    if not cycles:
        return value
    bits = Signal(cycles, name=name)
    m.d.sync += bits.eq(Cat(value, bits))
    return bits[-1]


class PipelinedSoftmax(wiring.Component):
    """Softmax of the codes of a pixel, to unsigned 8-bit probabilities in 1/256.

    Or to others, if the part says so: of ``out_bits``, in steps of ``2**-places``.

    Golden model: that of :class:`nnef_hw.rtl.functions.softmax.Softmax`. While a pixel comes in,
    the exponentials of the one before it are summed, and those of the one before that are divided
    by their sum. Codes and exponentials wait in memories for two pixels each.

    Beats may have several codes, each with a table and a division of its own. The greatest code and
    the sum of a beat come from trees with registers.

    A pixel takes ``pixel_cycles`` of its part if its codes come as fast. A result that is not taken
    stops the stages of the division one after the other; the sum of the next pixel waits then, and
    two pixels of codes. Of a part that layers share a
    :class:`~nnef_hw.rtl.streams.stream.Fifo` of two beats ends the division.

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
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes)
        results = beat_layout(bits=part.out_bits, signed=False, lanes=part.lanes)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "o": Out(stream.Signature(results)),
            **layer_ports(part),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        codes = TiledMemory(part.code_memory, writable=True)
        exponentials = TiledMemory(part.exponential_memory, writable=True)
        m.submodules.codes, m.submodules.exponentials = codes, exponentials

        code = code_shape(part.bits, part.signed)
        banks = [_Bank(code, n) for n in range(2)]
        total = _Total(part.sum_bits)
        self._load(m, codes, banks)
        lookup = ExponentialLookup(
            m, part, self.table, codes, code, self, is_masked=self.is_masked, lanes=part.lanes)
        self._sum(m, codes, lookup, exponentials, banks, total)
        self._divide(m, exponentials, total)
        return m

    def _position(self, m, advance, *, name):
        """Return index and bank of a beat, which ``advance`` moves on, and whether it is final."""
        index = Signal(range(self.part.beats), name=f"{name}_index")
        bank = Signal(name=f"{name}_bank")
        final = Signal(name=f"{name}_final")
        m.d.comb += final.eq(index == last_beat(self.part, self))
        with m.If(advance):
            m.d.sync += [index.eq(Mux(final, 0, index + 1)), bank.eq(bank ^ final)]
        return index, bank, final

    def _seen(self, final, codes, hidden):
        """Return the codes of a beat; ``hidden`` in place of those behind the end of a pixel."""
        if not self.part.is_shared or self.part.lanes == 1:
            return codes
        last_lane = self.last_channel[: self.part.lane_bits]
        return [
            Mux(final & (lane > last_lane), hidden, code) if lane else code
            for lane, code in enumerate(codes)
        ]

    def _load(self, m, codes, banks):
        """Take pixels into the banks in turn; find their greatest codes."""
        accept = Signal()
        index, bank, final = self._position(m, accept, name="load")
        beat = [self.i.payload.data[lane] for lane in range(self.part.lanes)]
        m.d.comb += [
            self.i.ready.eq(~Mux(bank, banks[1].filled, banks[0].filled)),
            accept.eq(self.i.valid & self.i.ready),
            codes.write_address.eq(Cat(index, bank)),
            codes.write_data.eq(Cat(beat)),
            codes.write_enable.eq(accept),
        ]
        lowest = code_range(self.part.bits, self.part.signed)[0]
        seen = self._seen(final, beat, lowest)
        greatest = _tree(m, seen, lambda a, b: Mux(a > b, a, b), name="greatest")
        stages = self.part.tree_stages
        first = _delayed(m, index == 0, stages, name="greatest_first")
        for n, taking in enumerate(banks):
            taken = accept & (bank == n)
            with m.If(taking.read):
                m.d.sync += taking.filled.eq(0)
            is_greater = first | (greatest > taking.maximum)
            with m.If(taken):
                m.d.sync += [taking.last.eq(self.i.payload.last), taking.filled.eq(final)]
                if not stages:
                    with m.If(is_greater):
                        m.d.sync += taking.maximum.eq(greatest)
            if stages:
                taken = _delayed(m, taken, stages, name=f"greatest_taken{n}")
                with m.If(taken & is_greater):
                    m.d.sync += taking.maximum.eq(greatest)

    def _settled(self, m, bank):
        """Return whether all of a bank came, and the greatest code is known in time."""
        seen = [bank.filled]
        for cycle in range(self.part.settling):
            seen.append(Signal(name=f"{bank.filled.name}_before{cycle}"))
            m.d.sync += seen[-1].eq(seen[-2])
        return Cat(seen).all() if len(seen) > 1 else bank.filled

    def _sum(self, m, codes, lookup, exponentials, banks, total):
        """Look up and sum the exponentials of a pixel; hold the next one until that is taken."""
        hold = Signal()
        index, bank, final = self._position(m, lookup.read, name="sum")
        bank_read = Signal(reset_less=True)
        settled = [self._settled(m, each) for each in banks]
        m.d.comb += [
            lookup.read.eq(Mux(bank, settled[1], settled[0]) & ~hold),
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
        summands = self._seen(write_final, lookup.exponentials, 0)
        m.d.comb += [
            exponentials.write_address.eq(Cat(write_index, write_bank)),
            exponentials.write_data.eq(Cat(summands)),
            exponentials.write_enable.eq(lookup.valid),
        ]
        stages = self.part.tree_stages
        found = _tree(m, summands, lambda a, b: a + b, name="partial_sum")
        added, first, complete = (
            _delayed(m, value, stages, name=f"sum_{name}")
            for name, value in (
                ("valid", lookup.valid), ("first", write_index == 0), ("final", write_final))
        )
        with m.If(added):
            m.d.sync += [
                total.value.eq(Mux(first, 0, total.value) + found),
                total.ready.eq(complete),
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
        lanes, bits = self.part.lanes, self.part.exponential_bits
        fetched_word = Signal(lanes * bits, name="fetched_exponential", reset_less=True)
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
                fetched_word.eq(exponentials.read_data),
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
        remainders = [
            Signal(steps + len(divisor) + 1, name=f"dividend{self._suffix(lane)}")
            for lane in range(lanes)
        ]
        m.d.comb += [
            each.eq(dividend(self.part, self, fetched_word.word_select(lane, bits), divisor))
            for lane, each in enumerate(remainders)
        ]
        item = _Division(valid=fetched, remainders=remainders, divisor=divisor,
                         last=last & fetched_final)
        accepts = [Signal(name=f"accept{n}") for n in range(self.part.stages + 1)]
        m.d.comb += enter.eq(fetched & accepts[0])
        for n in range(self.part.stages):
            item = self._stage(m, item, accepts[n], accepts[n + 1], steps, n)
        quotients = [each[:self.part.quotient_bits] for each in item.remainders]
        leaves = accepts[-1]
        data = [saturated(self.part, quotient) for quotient in quotients]
        if self.part.ends_in_queue:
            m.submodules.results = results = Fifo(self.o.payload.shape())
            wiring.connect(m, results.o, wiring.flipped(self.o))
            m.d.comb += [
                leaves.eq(results.i.ready),
                results.i.valid.eq(item.valid),
                *(results.i.payload.data[lane].eq(code) for lane, code in enumerate(data)),
                results.i.payload.last.eq(item.last),
            ]
            return
        m.d.comb += leaves.eq(~self.o.valid | self.o.ready)
        with m.If(leaves):
            m.d.sync += [
                self.o.valid.eq(item.valid),
                *(self.o.payload.data[lane].eq(code) for lane, code in enumerate(data)),
                self.o.payload.last.eq(item.last),
            ]

    def _suffix(self, lane):
        """Suffix of the names of a lane's signals."""
        return f"_{lane}" if self.part.lanes > 1 else ""

    def _stage(self, m, item, accept, is_accepted, steps, n):
        """Find ``interval`` bits of the quotients of an item; return it with these.

        Above ``steps`` bits of a remainder stands what the divisor may be taken from. Below, the
        zeros that are shifted in give way to the quotient's bits.
        """
        ends = [f"{n}{self._suffix(lane)}" for lane in range(self.part.lanes)]
        held = _Division(
            valid=Signal.like(item.valid, name=f"valid{n}"),
            remainders=[
                Signal.like(value, name=f"remainder{end}", reset_less=True)
                for end, value in zip(ends, item.remainders, strict=True)
            ],
            divisor=Signal.like(item.divisor, name=f"divisor{n}", reset_less=True),
            last=Signal.like(item.last, name=f"last{n}", reset_less=True),
        )
        step = Signal(range(self.part.interval), name=f"step{n}")
        done = Signal(name=f"done{n}")
        m.d.comb += [
            done.eq(held.valid & (step == self.part.interval - 1)),
            accept.eq(~held.valid | (done & is_accepted)),
        ]
        following = [
            self._subtracted(m, value, held.divisor, steps, end)
            for end, value in zip(ends, held.remainders, strict=True)
        ]
        with m.If(accept):
            m.d.sync += [
                register.eq(value)
                for register, value in zip(held.fields, item.fields, strict=True)
            ]
            m.d.sync += step.eq(0)
        with m.Elif(~done):
            m.d.sync += [
                register.eq(value)
                for register, value in zip(held.remainders, following, strict=True)
            ]
            m.d.sync += step.eq(step + 1)
        return _Division(done, following, held.divisor, held.last)

    def _subtracted(self, m, remainder, divisor, steps, end):
        """Return a remainder less the divisor, if that fits, with one more bit of the quotient."""
        fits = Signal(name=f"fits{end}")
        rest = Signal.like(divisor, name=f"rest{end}")
        following = Signal.like(remainder, name=f"following{end}")
        above = remainder[steps:]
        m.d.comb += [
            fits.eq(above >= divisor),
            rest.eq(Mux(fits, above - divisor, above)),
            following.eq(Cat(fits, remainder[:steps], rest)),
        ]
        return following
