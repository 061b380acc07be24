"""Behind the shared engine's array: sums become codes, and functions are applied to these."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.contraction import Matrices
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.engine.requantizer import SecondRounding
from nnef_hw.parts.engine.residual import SharedBank
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.engine.tables import Tables
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import chained_multiply_add, delayed
from nnef_hw.rtl.engine.array import result_layout, sums_layout
from nnef_hw.rtl.engine.sequencer import parameter_layout

__all__ = [
    "EngineRequantizer", "EngineTables", "code_layout", "delayed_in_memory", "limited",
]  # fmt: skip


def code_layout(part: Engine):
    """Payload of codes: where their word goes, and whether they are that word's first or last."""
    return result_layout(part, codes=data.ArrayLayout(CODE_BITS, part.array.results))


def delayed_in_memory(m, value, cycles, tiling):
    """Return the value so many cycles later, by way of a block RAM that is read behind."""
    m.submodules.delay = memory = TiledMemory(tiling, writable=True)
    place = Signal.like(memory.write_address)
    m.d.sync += place.eq(place + 1)
    m.d.comb += [
        memory.write_address.eq(place),
        memory.write_data.eq(value),
        memory.write_enable.eq(1),
        memory.read_address.eq(place - (cycles - 1)),
        memory.read_enable.eq(1),
    ]
    return memory.read_data


def limited(value, low, high):
    """Return the nearest number in ``low..high``, unsigned limits."""
    return Mux(value < low, low, Mux(value > high, high, value))[:CODE_BITS]


class EngineRequantizer(wiring.Component):
    """Add a bias, multiply by a factor, shift, round, clip; never waiting.

    It takes ``results`` results per cycle, or one result every ``cycles`` of its part.

    Golden model: :meth:`nnef_hw.arithmetic.numerics.Requant.apply` of ``acc + bias``, of unsigned
    codes. The shift is the same for all layers: factors of those that have a smaller one are scaled
    up. Where the part rounds twice it is that before the first rounding, which layers may leave
    out; the golden model is :meth:`nnef_hw.arithmetic.tflite.numerics.TfliteRequant.apply` then.

    Members
    -------
    i : In(sums_layout)
        Its ``constant`` is a cycle ahead.
    o : Out(code_layout)
        ``requantizer_delay`` cycles later.
    parameters : In(parameter_layout)
        ``zero_point``, ``low`` and ``high``.
    soon : Out(1)
        The first code of a word comes in the next cycle; or, where operands of sums may be read
        instead of words, in as many cycles as a word takes from its issue until it is read.
    constant_address : Out
    constant : In
        A word for the results of a cycle, one cycle later, when these come. Of each, the first one
        lowest: bias, modulo ``2**acc_bits``, factor, and how much farther than others the result is
        shifted.
    """

    unproved = "no stream: a schedule of fixed delays, no handshake"

    def __init__(self, part: Engine):
        self.part = part
        super().__init__({
            "i": In(sums_layout(part)),
            "o": Out(code_layout(part)),
            "parameters": In(parameter_layout(part)),
            "soon": Out(1),
            "constant_address": Out(part.layout.widths["constant"]),
            "constant": In(part.array.results * part.constant_bits),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        m.d.comb += self.constant_address.eq(self.i.constant)
        if part.has(Matrices):
            bits = part.array.results * part.array.acc_bits
            self._saved, self._differences = Signal(bits), Signal(bits)
        # a register of its block RAMs, and as long for the sums
        constants = delayed(m, self.constant, part.pipeline.constant_cycles - 1, name="constant")
        for n in range(part.array.results):
            constant = constants.word_select(n, part.constant_bits)
            bias, above = constant[: part.array.acc_bits], constant[part.array.acc_bits :]
            late = part.pipeline.constant_cycles - 1
            if part.has(Matrices):
                inverted = delayed(m, ~self.i.accs[n], late, name=f"sum{n}_")
                bias = self._saved_bias(m, n, inverted, bias)
                # As they come from the array, sums need no LUTs that invert them.
                biased = ~(inverted - bias.as_signed())
            else:
                biased = delayed(m, self.i.accs[n], late, name=f"sum{n}_") + bias.as_signed()
            code = self._code(m, platform, n, biased[: part.array.acc_bits].as_signed(), above)
            m.d.comb += self.o.codes[n].eq(code)
        if part.has(Matrices):
            self._save(m)
        cycles = part.pipeline.requantizer_delay
        if not part.requantizer.holds_places:
            m.d.comb += self.o.write.eq(
                delayed_in_memory(m, self.i.write, cycles, part.delay_memory(cycles))
            )
        before = {}
        ahead = part.pipeline.read_stage if part.has(SharedBank) else 1
        for name in ("valid", "first", "last"):
            is_flag = name == "valid"
            delay = part.pipeline.requantizer_delay - ahead
            before[name] = delayed(m, self.i[name], delay, name=name, is_flag=is_flag)
            result = delayed(m, before[name], ahead, name=f"{name}_o", is_flag=is_flag)
            m.d.comb += self.o[name].eq(result)
        m.d.comb += self.soon.eq(before["valid"] & before["first"])
        if part.requantizer.holds_places:
            m.d.comb += self.o.write.eq(self._held_place(m))
        return m

    def _held_place(self, m):
        """Return the address of the result that leaves: each waits in a register, in turn."""
        held = self.part.requantizer.held_places(self.part)
        places = [Signal.like(self.i.write, name=f"place{n}", reset_less=True) for n in range(held)]
        if held == 1:
            with m.If(self.i.valid):
                m.d.sync += places[0].eq(self.i.write)
            return places[0]
        entering, leaving = Signal(range(held)), Signal(range(held))
        with m.If(self.i.valid):
            m.d.sync += entering.eq(entering + 1)
            for n, place in enumerate(places):
                with m.If(entering == n):
                    m.d.sync += place.eq(self.i.write)
        with m.If(self.o.valid):
            m.d.sync += leaving.eq(leaving + 1)
        return Array(places)[leaving]

    def _saved_bias(self, m, place, inverted, bias):
        """Return the bias of one of the results, or that less a sum of weights, which is saved."""
        difference = Signal.like(bias, name=f"difference{place}", reset_less=True)
        m.d.sync += difference.eq(bias + inverted + 1)
        m.d.comb += self._differences.word_select(place, len(bias)).eq(difference)
        takes = self.parameters.contracts & self.parameters.measures
        return Mux(takes, self._saved.word_select(place, len(bias)), bias)

    def _save(self, m):
        """Keep the differences of results that are sums of weights, by the places of constants."""
        part, cycles = self.part, self.part.pipeline.constant_cycles
        m.submodules.saved = memory = TiledMemory(
            part.find(Matrices).sum_memory(part), writable=True
        )
        place = delayed(m, self.i.constant, 1 + cycles, name="saved_place")
        m.d.comb += [
            memory.read_address.eq(self.i.constant),
            memory.read_enable.eq(1),
            self._saved.eq(delayed(m, memory.read_data, cycles - 1, name="saved")),
            memory.write_address.eq(place),
            memory.write_data.eq(self._differences),
            memory.write_enable.eq(delayed(m, self.i.saves, cycles, name="saves", is_flag=True)),
        ]

    def _code(self, m, platform, place, biased, above):
        """Return the code of one of the results, its bias included."""
        part = self.part
        # What belongs to the first one has the plain names.
        own = f"_{place}" if place else ""
        factor = above[: part.requantizer.factor_bits]
        shift = above[part.requantizer.factor_bits :]

        operand = Signal(signed(part.array.acc_bits + part.requantizer.extra_bits), reset_less=True)
        factor_bits = part.requantizer.stages * part.requantizer.digit_bits
        rounding = part.find(SecondRounding)
        more_bits = 0 if rounding is None else rounding.more_shift_bits
        digits = Signal(factor_bits + more_bits, reset_less=True)
        given = biased << part.requantizer.extra_bits, factor | (shift << factor_bits)
        if part.requantizer.is_serial:
            product = self._product_in_turn(m, platform, operand, digits, given)
        else:
            m.d.sync += [operand.eq(given[0]), digits.eq(given[1])]
            product, digits = self._product(m, platform, own, operand, digits)

        # Nothing is added below the bit that rounds.
        final_shift = part.requantizer.shift + part.requantizer.extra_bits - factor_bits
        halves = product >> (final_shift - 1)
        if rounding is not None:
            halves = self._rounded_first(m, rounding, halves, digits)
        rounded = Signal(signed(max(len(halves), CODE_BITS + 1) + 1), reset_less=True)
        code = Signal(CODE_BITS, reset_less=True)
        zero_point = self.parameters.zero_point
        m.d.sync += [
            rounded.eq((halves + Cat(1, zero_point, 0).as_signed()) >> 1),
            code.eq(limited(rounded, self.parameters.low, self.parameters.high)),
        ]
        return code

    def _product_in_turn(self, m, platform, operand, digits, given):
        """Return the product of what was given with the last valid result, digit by digit.

        It is there for a cycle, ``stages`` after the one in which that is in the registers.
        """
        width, late = self.part.requantizer.digit_bits, self.part.pipeline.constant_cycles - 1
        valid = delayed(m, self.i.valid, late, name="begins", is_flag=True)
        product = Signal(signed(len(operand)), name="product", reset_less=True)
        partial = chained_multiply_add(
            m, platform, product, digits[:width], operand, width=len(operand) + width,
            name="partial",
        )  # fmt: skip
        with m.If(valid):
            m.d.sync += [operand.eq(given[0]), digits.eq(given[1]), product.eq(0)]
        with m.Else():
            m.d.sync += [digits.eq(digits >> width), product.eq(partial >> width)]
        return product

    def _product(self, m, platform, own, operand, digits):
        """Return the product, multiplied by a digit after the other, and digits that are left."""
        part, rounding = self.part, self.part.find(SecondRounding)
        product = Const(0, signed(len(operand)))
        for n in range(part.requantizer.stages):
            partial = chained_multiply_add(
                m,
                platform,
                product,
                digits[: part.requantizer.digit_bits],
                operand,
                width=len(operand) + part.requantizer.digit_bits,
                name=f"partial{n}{own}",
            )
            product = Signal(signed(len(operand)), name=f"product{n}{own}", reset_less=True)
            m.d.sync += product.eq(partial >> part.requantizer.digit_bits)
            if n + 1 < part.requantizer.stages:
                operand = delayed(m, operand, 1, name=f"operand{n}_")
            if n + 1 < part.requantizer.stages or rounding is not None:
                digits = delayed(m, digits[part.requantizer.digit_bits :], 1, name=f"digits{n}_")
        return product, digits

    def _rounded_first(self, m, rounding, halves, shift):
        """Return results in halves that are rounded and shifted farther, two cycles later.

        The second rounding, which follows, takes halves away from 0: below 0 they go down by one,
        unless there is nothing to round.
        """
        rounds_again = Const(1) if rounding.least_shift else shift.any()
        first = Signal(signed(len(halves) + 1), name="rounded_first", reset_less=True)
        step = Cat(Const(1, 1), (halves[-1] & rounds_again).replicate(len(halves))).as_signed()
        with m.If(self.parameters.rounds_once):
            m.d.sync += first.eq(halves)
        with m.Else():
            m.d.sync += first.eq((halves + step) & ~1)
        shift = delayed(m, shift, 1, name="own_shift")
        farther = first >> rounding.least_shift
        shifted = Signal.like(farther, name="shifted", reset_less=True)
        m.d.sync += shifted.eq(farther >> shift)
        return shifted


class EngineTables(wiring.Component):
    """Functions of codes, looked up: each has 256 entries.

    Golden model: :func:`nnef_hw.arithmetic.tables.look_up`, of unsigned codes.

    Parameters
    ----------
    entries : list[int]
        Those of all tables; not needed if they come as a stream.

    Members
    -------
    i, o : In(code_layout), Out(code_layout)
        a cycle apart; every code of a cycle has a memory of its own.
    parameters : In(parameter_layout)
        ``looks_up`` tells whether a function is applied, ``table`` which.
    write_address, write_data, write_enable : In
        Two entries; only if they are written.
    """

    unproved = "no stream: a schedule of fixed delays, no handshake"

    def __init__(self, part: Engine, *, entries=()):
        self.part = part
        self.entries = entries
        self.memory = part.find(Tables).memory(part)
        members = {
            "i": In(code_layout(part)),
            "o": Out(code_layout(part)),
            "parameters": In(parameter_layout(part)),
        }
        if part.is_written:
            members |= {
                "write_address": In(range(self.memory.depth)),
                "write_data": In(BEAT_BITS),
                "write_enable": In(1),
            }
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        for n in range(self.part.array.results):
            m.d.comb += self.o.codes[n].eq(self._look_up(m, n, self.i.codes[n]))
        for name in ("valid", "first", "last", "write"):
            is_flag = name == "valid"
            flag = delayed(m, self.i[name], 1, name=name, is_flag=is_flag)
            m.d.comb += self.o[name].eq(flag)
        return m

    def _look_up(self, m, n, code):
        """Return the function of a code, or that code, a cycle later."""
        written, entries = self.part.is_written, self.entries
        if written:
            pairs = zip(entries[::2], entries[1::2], strict=True)
            entries = [low | high << CODE_BITS for low, high in pairs]
        tables = TiledMemory(self.memory, words=entries, writable=written)
        m.submodules[f"tables{n}" if n else "tables"] = tables
        place, found = Cat(code, self.parameters.table), tables.read_data
        code = delayed(m, code, 1, name="code")
        if written:
            place, found = place[1:], found.word_select(code[0], CODE_BITS)
            m.d.comb += [
                getattr(tables, name).eq(getattr(self, name))
                for name in ("write_address", "write_data", "write_enable")
            ]
        m.d.comb += [
            tables.read_enable.eq(1),
            tables.read_address.eq(place),
        ]
        return Mux(self.parameters.looks_up, found, code)
