"""Codes of another tensor, added to those that come from the shared engine's requantizer."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.residual import TensorSums
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.rtl.base.primitives import delayed, lut_product, restarted_sum
from nnef_hw.rtl.engine.results import code_layout, delayed_in_memory, limited
from nnef_hw.rtl.engine.sequencer import parameter_layout

__all__ = ["EngineResidual", "EngineSerialResidual"]


class EngineResidual(wiring.Component):
    """Add codes of another tensor, at the same places, to those that pass.

    Codes to which nothing is added pass at once.

    Golden model: :meth:`nnef_hw.arithmetic.numerics.AddRequant.apply`, of unsigned codes;
    ``offset`` of the parameters stands for both zero points, that of the result and rounding.

    Members
    -------
    i, o : In(code_layout), Out(code_layout)
        ``sum_delay`` cycles apart, or none.
    parameters : In(parameter_layout)
        ``adds`` tells whether anything is added.
    address, enable : Out
        The other tensor's word that is read.
    word : In(lanes * 8)
        That word, ``other_cycles`` later and from then on.
    """

    unproved = "no stream: a schedule of fixed delays, no handshake"

    def __init__(self, part: Engine):
        self.part = part
        self.sums = part.find(TensorSums)
        self.delay = self.sums.sum_delay(part)
        super().__init__({
            "i": In(code_layout(part)),
            "o": Out(code_layout(part)),
            "parameters": In(parameter_layout(part)),
            "address": Out(part.layout.widths["write"]),
            "enable": Out(1),
            "word": In(part.array.word_bits),
        })

    def elaborate(self, platform):
        m = Module()
        part, parameters = self.part, self.parameters
        # Of the codes of a word, those that leave together.
        group = Signal(range(part.array.lanes // part.array.results), name="lane")
        first = self.i.valid & self.i.first
        with m.If(first):
            m.d.sync += group.eq(0)
        with m.Else():
            m.d.sync += group.eq(group + 1)
        m.d.comb += [
            self.enable.eq(first & parameters.adds),
            self.address.eq(self.i.write + parameters.other),
        ]
        group = delayed(m, group, self.sums.other_cycles(part) - 1, name="word_lane")
        others = self.word.word_select(group, CODE_BITS * part.array.results)
        sums = [
            self._sum(m, platform, n, self.i.codes[n], others.word_select(n, CODE_BITS))
            for n in range(part.array.results)
        ]
        write = delayed_in_memory(m, self.i.write, self.delay, self.sums.place_memory(part))
        valid = delayed(
            m, self.i.valid & parameters.adds, self.delay, name="valid", is_flag=True
        )  # fmt: skip
        first, last = (
            delayed(m, self.i[name], self.delay, name=name) for name in ("first", "last")
        )
        m.d.comb += self.o.eq(self.i)
        with m.If(parameters.adds):
            m.d.comb += [
                self.o.write.eq(write), self.o.valid.eq(valid), self.o.first.eq(first),
                self.o.last.eq(last), *(self.o.codes[n].eq(code) for n, code in enumerate(sums)),
            ]  # fmt: skip
        return m

    def _sum(self, m, platform, place, code, word_code):
        """Return the sum of a code and that of the other tensor, which is found later."""
        part, parameters = self.part, self.parameters
        suffix = f"_{place}" if place else ""
        own = delayed(m, code, self.sums.other_cycles(part) + 1, name="own")
        other = Signal(CODE_BITS, reset_less=True)
        m.d.sync += other.eq(word_code)
        products = []
        for name, code in (("own", own), ("other", other)):
            product = lut_product(
                m, platform, code, parameters[f"{name}_factor"], name=f"{name}_product{suffix}"
            )
            products.append(delayed(m, product, 1, name=f"{name}_product"))
        total_bits = max(len(products[0]) + 1, len(parameters.offset)) + 1
        total = Signal(signed(total_bits), reset_less=True)
        code = Signal(CODE_BITS, reset_less=True)
        m.d.sync += total.eq(products[0] + products[1] + parameters.offset)
        total_code = limited(total >> self.sums.shift, parameters.sum_low, parameters.sum_high)
        m.d.sync += code.eq(total_code)
        return code


class EngineSerialResidual(wiring.Component):
    """Do the same bit by bit, for codes that come ``cycles`` of the sums apart.

    Both codes are shifted out, the highest bits first, and ``bits_per_cycle`` bits of
    each are multiplied per cycle. Codes to which nothing is added pass at once.

    Golden model: :meth:`nnef_hw.arithmetic.numerics.AddRequant.apply`, of unsigned codes;
    ``offset`` of the parameters stands for both zero points, that of the result and rounding.

    Members
    -------
    i, o : In(code_layout), Out(code_layout)
        ``sum_delay`` cycles apart, or none.
    parameters : In(parameter_layout)
        ``adds`` tells whether anything is added.
    address, enable : Out
        The other tensor's word that is read, a cycle after its first code came; or after two, if
        the memory is ``busy``.
    busy : In(1)
    word : In(lanes * 8)
        That word, a cycle later.
    """

    unproved = "no stream: a schedule of fixed delays, no handshake"

    def __init__(self, part: Engine):
        self.part = part
        self.sums = part.find(TensorSums)
        self.delay = self.sums.sum_delay(part)
        super().__init__({
            "i": In(code_layout(part)),
            "o": Out(code_layout(part)),
            "parameters": In(parameter_layout(part)),
            "address": Out(part.layout.widths["write"]),
            "enable": Out(1),
            "busy": In(1),
            "word": In(part.array.word_bits),
        })

    def elaborate(self, platform):
        m = Module()
        part, parameters = self.part, self.parameters
        arrives = self.i.valid & parameters.adds
        since = [arrives]
        for n in range(self.delay):
            later = Signal(name=f"since{n + 1}")
            m.d.sync += later.eq(since[-1])
            since.append(later)
        write = Signal(part.layout.widths["write"], reset_less=True)
        own = Signal(CODE_BITS, reset_less=True)
        wants, fetched = Signal(), Signal()
        with m.If(self.i.valid):
            m.d.sync += own.eq(self.i.codes[0])
            with m.If(self.i.first):
                m.d.sync += [
                    write.eq(self.i.write),
                    self.address.eq(self.i.write + parameters.other),
                ]
        with m.If(arrives & self.i.first):
            m.d.sync += wants.eq(1)
        with m.Elif(~self.busy):
            m.d.sync += wants.eq(0)
        m.d.comb += self.enable.eq(wants & ~self.busy)
        m.d.sync += fetched.eq(self.enable)

        begins = since[self.sums.begin]
        others = Signal(part.array.word_bits, reset_less=True)
        with m.If(fetched):
            m.d.sync += others.eq(self.word)
        with m.Elif(begins):
            m.d.sync += others.eq(others >> CODE_BITS)
        total = self._products(m, platform, own, others[:CODE_BITS], begins, since)
        code = Signal(CODE_BITS, reset_less=True)
        low, high = parameters.sum_low, parameters.sum_high
        m.d.sync += code.eq(limited(total >> self.sums.shift, low, high))

        # The last bits are multiplied as those of the next code may follow.
        ends = since[self.sums.begin + self.sums.cycles]
        flags = Cat(self.i.first, self.i.last)
        for n, passes in enumerate((self.i.valid, begins, ends)):
            held = Signal.like(flags, name=f"flags{n}", reset_less=True)
            with m.If(passes):
                m.d.sync += held.eq(flags)
            flags = held
        m.d.comb += self.o.eq(self.i)
        with m.If(parameters.adds):
            m.d.comb += [
                self.o.valid.eq(since[-1]), self.o.first.eq(flags[0]), self.o.last.eq(flags[1]),
                self.o.codes[0].eq(code), self.o.write.eq(write),
            ]  # fmt: skip
        return m

    def _products(self, m, platform, own, other, begins, since):
        """Return both products and the offset, added."""
        parameters = self.parameters
        bits = self.sums.bits_per_cycle
        codes = []
        for name, code in (("own", own), ("other", other)):
            shifted = Signal(CODE_BITS, name=f"{name}_bits", reset_less=True)
            m.d.sync += shifted.eq(Mux(begins, code, shifted << bits))
            codes.append(shifted)
        goes_on = ~since[self.sums.begin + 1]
        width = max(CODE_BITS + self.sums.bits + 1, len(parameters.offset)) + 1
        sum_ = Signal(signed(width), reset_less=True)
        factors = parameters.own_factor, parameters.other_factor
        step = 0
        for n in range(bits):
            place = CODE_BITS - 1 - n
            for code, factor in zip(codes, factors, strict=True):
                step = step + (Mux(code[place], factor, 0).as_signed() << (bits - 1 - n))
        shifted_sum = (sum_ << bits)[:width].as_signed()
        m.d.sync += sum_.eq(
            restarted_sum(m, platform, goes_on, shifted_sum, step, name="step")
        )
        total = Signal(signed(width), reset_less=True)
        m.d.sync += total.eq(sum_ + parameters.offset)
        return total
