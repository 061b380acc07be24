"""Layer and RMS normalization over the channels of a pixel, in integers."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.normalization import FACTOR_BITS, OFFSET_BITS
from nnef_hw.rtl.arrays.requantizer import constants_in_turn
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import (
    delayed,
    lut_product,
    multiply_add,
    restarted_sum,
)
from nnef_hw.rtl.functions.inverse_root import RootPort, find_inverse_root, of_lane
from nnef_hw.rtl.streams.stream import Fifo, beat_layout, check_limits

__all__ = ["Item", "Normalize"]


@dataclass
class Item:
    """Signals that a stage hands to the next one; product and low digits are there a step later."""

    valid: Value
    last: Value
    operand: Value
    digits: Value
    product: Value
    low: Value


class Normalize(wiring.Component):
    """Normalize the codes of a pixel, scale them, and add offsets.

    Golden model: :meth:`nnef_hw.arithmetic.normalization.NormalizeRequant.apply` of ``code - zero
    point``. While a pixel comes in and is summed up, the inverse root of the variance of the one
    before it is found, a bit or two per cycle, and the codes of the one before that are multiplied,
    a beat every ``spacing`` cycles. Codes wait in a memory for two pixels. Codes of a beat are
    summed up and multiplied side by side.

    Two pixels take ``pair_cycles`` of its part if their codes come as fast. A
    :class:`~nnef_hw.rtl.streams.stream.Fifo` of two codes ends the multipliers; they, and the
    memory's read port, move in step, in the cycles in which that is not full.

    Parameters
    ----------
    requant : NormalizeRequant
        Epsilon, shift, zero point, limits.
    zero_point : int
        That of the codes.
    mult, offset : list[int]
        One, or one per channel.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))

    Raises
    ------
    ValueError
        If the limits of ``requant`` are not codes of the output, or it has another fraction or
        number of channels than its part.
    """

    unproved = "the solver would have to multiply; tests simulate it under stalls"

    def __init__(self, part: parts.Normalize, *, requant, zero_point, mult, offset):
        check_limits(part, requant)
        given = requant.channels, requant.fraction, requant.centered, len(mult), len(offset)
        wanted = part.channels, part.fraction, part.centered, part.scales, part.offsets
        if given != wanted:
            raise ValueError(f"Normalize has channels, fraction, mean, scales and offsets {given}, "
                             f"its part {wanted}")
        self.part = part
        self.requant = requant
        self.zero_point = zero_point
        self.mult = mult
        self.offset = offset
        super().__init__(self._streams(part))

    @staticmethod
    def _streams(part):
        """Return the members that are streams."""
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes)
        results = beat_layout(bits=part.out_bits, signed=part.out_signed, lanes=part.lanes)
        return {"i": In(stream.Signature(codes)), "o": Out(stream.Signature(results))}

    def elaborate(self, platform):
        m = Module()
        part = self.part
        m.submodules.codes = codes = TiledMemory(part.code_memory, writable=True)
        sums = self._load(m, platform, codes)
        self._multiply(m, platform, codes, self._find_root(m, platform, sums))
        return m

    def _difference(self, code):
        """Return a code less its zero point; where the mean is taken, less the middle code."""
        if not self.part.centered:
            return code - self._zero_point()
        return code if self.part.signed else Cat(code[:-1], ~code[-1]).as_signed()

    def _position(self, m, advance, *, name):
        """Return index and bank of a beat, which ``advance`` moves on, and whether it is final."""
        index = Signal(range(self.part.beats), name=f"{name}_index")
        bank = Signal(name=f"{name}_bank")
        final = Signal(name=f"{name}_final")
        m.d.comb += final.eq(index == self.part.beats - 1)
        with m.If(advance):
            m.d.sync += [index.eq(Mux(final, 0, index + 1)), bank.eq(bank ^ final)]
        return index, bank, final

    def _load(self, m, platform, codes):
        """Take pixels into the banks in turn; return their sums, which stay until the next."""
        part = self.part
        self.filled = filled = [Signal(name=f"filled{n}") for n in range(2)]
        self.last = last = [Signal(name=f"pixel_last{n}", reset_less=True) for n in range(2)]
        accept = Signal()
        index, bank, final = self._position(m, accept, name="load")
        m.d.comb += [
            self.i.ready.eq(~Mux(bank, filled[1], filled[0])),
            accept.eq(self.i.valid & self.i.ready),
            codes.write_address.eq(Cat(index, bank)),
            codes.write_data.eq(Cat(self.i.payload.data[n] for n in range(part.lanes))),
            codes.write_enable.eq(accept),
        ]
        for n in range(2):
            with m.If(accept & (bank == n)):
                m.d.sync += [filled[n].eq(final), last[n].eq(self.i.payload.last)]

        pairs = [self._squared(m, platform, n) for n in range(part.lanes)]
        added, square = (
            self._added_up(m, values, name=name)
            for name, values in zip(("code", "square"), zip(*pairs, strict=True), strict=True)
        )
        first, valid, ends = (
            delayed(m, value, part.sum_latency - 1, name=name, is_flag=name == "adds")
            for name, value in (("first", index == 0), ("adds", accept), ("ends", accept & final))
        )
        total = Signal(signed(part.sum_bits), name="total", reset_less=True)
        squares = Signal(signed(part.square_bits + 1), name="squares", reset_less=True)
        with m.If(valid):
            m.d.sync += [
                register.eq(restarted_sum(m, platform, ~first, register, value, name=f"{name}_sum"))
                for name, register, value in (("code", total, added), ("square", squares, square))
            ]
        return total, squares, ends

    def _squared(self, m, platform, lane):
        """Return the difference of a lane's code and its square, three cycles later."""
        name = of_lane(lane)
        difference = Signal(signed(self.part.difference_bits), name=name("difference"),
                            reset_less=True)
        m.d.sync += difference.eq(self._difference(self.i.payload.data[lane]))
        # Both halves of the digits at once, then their sum.
        split = max(1, len(difference) // 4 * 2)
        halves = []
        for half, digits in (("low", difference[:split]), ("high", difference[split:].as_signed())):
            product = lut_product(m, platform, digits, difference, name=name(f"{half}_product"))
            register = Signal(product.shape(), name=name(f"{half}_half"), reset_less=True)
            m.d.sync += register.eq(product)
            halves.append(register)
        low, high = halves
        square = Signal(2 * len(difference), name=name("square"), reset_less=True)
        m.d.sync += square.eq(Cat(low[:split], (low >> split) + high))
        return delayed(m, difference, 2, name=name("added")), square

    @staticmethod
    def _added_up(m, values, *, name):
        """Return the sum of values, with a register behind every two adders."""
        level = 0
        while len(values) > 1:
            sums = [sum(values[n : n + 4]) for n in range(0, len(values), 4)]
            values = [Signal(each.shape(), name=f"{name}_sum{level}_{n}", reset_less=True)
                      for n, each in enumerate(sums)]
            m.d.sync += [register.eq(each) for register, each in zip(values, sums, strict=True)]
            level += 1
        return values[0]

    def _find_root(self, m, platform, sums):
        """Find the inverse root of each pixel's variance; return what waits until it is taken."""
        self.taken = Signal()
        self.rooted = Signal()
        return find_inverse_root(m, platform, self.part, sums, self._epsilon(), self._finer(),
                                 RootPort(self.taken, self.rooted, self.last))

    def _read(self, m, advance, codes, found):
        """Read the beats of a pixel; return what was found of it, and two flags.

        They say whether the memory gives a beat in this step, and whether it is the pixel's last.
        """
        part = self.part
        pixel = type(found)(*(
            Signal.like(value, name=f"pixel_{name}", reset_less=True)
            for name, value in vars(found).items()
        ))
        busy, read = Signal(name="busy"), Signal(name="all_read")
        issue = Signal()
        index, bank, final = self._position(m, advance & issue, name="read")
        # steps until the next beat may be read
        rest = Signal(range(part.interval))
        m.d.comb += [
            issue.eq(busy & ~read & (rest == 0)),
            codes.read_address.eq(Cat(index, bank)),
            codes.read_enable.eq(advance),
        ]
        for n, filled in enumerate(self.filled):
            with m.If(advance & issue & final & (bank == n)):
                m.d.sync += filled.eq(0)
        with m.If(advance):
            if part.interval > 1:
                m.d.sync += rest.eq(Mux(issue, part.interval - 1, rest - (rest != 0)))
            with m.If(issue & final):
                m.d.sync += read.eq(1)
        flags = [(issue, issue & final)]
        for n in range(2):
            flag = Signal(name=f"read{n}"), Signal(name=f"read_final{n}")
            with m.If(advance):
                m.d.sync += [flag[0].eq(flags[-1][0]), flag[1].eq(flags[-1][1])]
            flags.append(flag)
        valid, is_final = flags[-1]
        m.d.comb += self.taken.eq(self.rooted & (~busy | (advance & is_final)))
        with m.If(advance & is_final):
            m.d.sync += busy.eq(0)
        with m.If(self.taken):
            m.d.sync += [busy.eq(1), read.eq(0)]
            m.d.sync += [register.eq(value) for register, value in
                         zip(vars(pixel).values(), vars(found).values(), strict=True)]
        return pixel, valid, is_final

    def _multiply(self, m, platform, codes, found):
        """Multiply the codes of a pixel by its inverse root, then by the scales."""
        part = self.part
        m.submodules.results = results = Fifo(self.o.payload.shape())
        wiring.connect(m, results.o, wiring.flipped(self.o))
        advance = results.i.ready
        pixel, valid, is_final = self._read(m, advance, codes, found)

        flags = valid, pixel.last & is_final
        found = [
            self._result(m, platform, advance, codes, pixel, flags, lane)
            for lane in range(part.lanes)
        ]
        # all lanes move in step
        valid, last, _ = found[0]
        m.d.comb += [
            results.i.valid.eq(valid),
            results.i.payload.last.eq(last),
            *(results.i.payload.data[n].eq(code) for n, (_, _, code) in enumerate(found)),
        ]

    def _result(self, m, platform, advance, codes, pixel, flags, lane):
        """Return the result of a code of each beat, with ``valid`` and ``last`` of that."""
        part, name = self.part, of_lane(lane)
        valid, last = flags
        word = codes.read_data[lane * part.bits : (lane + 1) * part.bits]
        code = word.as_signed() if part.signed else word
        scaled = Signal(signed(part.difference_bits + part.channels.bit_length()),
                        name=name("scaled"), reset_less=True)
        with m.If(advance):
            m.d.sync += scaled.eq(part.channels * self._difference(code))
        beside = Signal(signed(part.deviation_bits), name=name("beside"))
        m.d.comb += beside.eq(scaled - pixel.total)
        item = self._product(m, platform, name("root"), advance, Item(
            valid, last, beside, Cat(pixel.root, pixel.exponent), Const(0), Const(0, FACTOR_BITS)))

        # The digits are used up; the exponent is left. 16 - fraction + exponent bits are cut.
        exponent = Signal.like(pixel.exponent, name=name("cut"), reset_less=True)
        normal = Signal(signed(part.normal_bits), name=name("normal"), reset_less=True)
        product = Cat(item.low[FACTOR_BITS - part.fraction:], item.product).as_signed()
        with m.If(advance):
            m.d.sync += [exponent.eq(item.digits), normal.eq(product >> exponent)]
        valid, last = self._later(m, advance, (item.valid, item.last), 2, name=name("normal"))
        scale, beside = self._scale(m, lane, advance & valid)
        item = self._product(m, platform, name("scale"), advance, Item(
            valid, last, Mux(scale[-1], -normal, normal), Cat(scale[:FACTOR_BITS], beside),
            Const(0), Const(0, FACTOR_BITS)))

        valid, last = self._later(m, advance, (item.valid, item.last), 1, name=name("scaled"))
        offset = self._offset(m, lane, advance, valid, item.digits)
        total = self._whole(Cat(item.low, item.product).as_signed()) + offset
        lo, hi = self._limits()
        limits = part.out_bits + (not part.out_signed)
        rounded = Signal(signed(max(len(total) - OFFSET_BITS, limits)), name=name("rounded"),
                         reset_less=True)
        with m.If(advance):
            m.d.sync += rounded.eq(total >> OFFSET_BITS)
        valid, last = self._later(m, advance, (valid, last), 1, name=name("rounded"))
        return valid, last, Mux(rounded < lo, lo, Mux(rounded > hi, hi, rounded))

    def _epsilon(self):
        """Return the number that is added to the variance."""
        return max(self.requant.epsilon, 0)

    def _finer(self):
        """Return by how many bits the fraction is longer than that of the normalized numbers."""
        return 0

    def _zero_point(self):
        """Return the zero point of the codes."""
        return self.zero_point

    def _limits(self):
        """Return the lowest and the highest result."""
        return self.requant.lo, self.requant.hi

    def _scale(self, m, lane, take):
        """Return the scale of the next item of a lane, and what else comes along with it."""
        scales = [abs(mult) | (mult < 0) << FACTOR_BITS for mult in self._of(self.mult, lane)]
        scale = self._in_turn(m, of_lane(lane)("scales"), scales, FACTOR_BITS + 1,
                              self.part.tables[0], take)
        return scale, Const(0, 0)

    def _whole(self, product):
        """Return the product in 2**-10 of a result's step."""
        return product >> self.requant.shift - OFFSET_BITS

    def _offset(self, m, lane, advance, valid, beside):
        """Return the offset of an item of a lane, a step after it left with ``beside``."""
        half = (1 << OFFSET_BITS - 1) + (self.requant.zero_point << OFFSET_BITS)
        offsets = [offset + half for offset in self._of(self.offset, lane)]
        offset = self._in_turn(m, of_lane(lane)("offsets"), offsets, self.part.offset_bits,
                               self.part.tables[1], advance & valid)
        return offset.as_signed()

    def _of(self, constants, lane):
        """Return the constants of a lane, of one for all channels or of one per channel."""
        return constants if len(constants) == 1 else constants[lane :: self.part.lanes]

    @staticmethod
    def _later(m, advance, flags, steps, *, name):
        """Return ``valid`` and ``last`` of an item so many steps later."""
        valid, last = flags
        for n in range(steps):
            following = (Signal(name=f"{name}_valid{n}"),
                         Signal(name=f"{name}_last{n}", reset_less=True))
            with m.If(advance):
                m.d.sync += [following[0].eq(valid), following[1].eq(last)]
            valid, last = following
        return valid, last

    @staticmethod
    def _in_turn(m, name, words, width, tables, take):
        """Return a register with the first word, then with the next one after each ``take``."""
        mask = (1 << width) - 1
        if len(words) == 1:
            return Const(words[0] & mask, width)
        m.submodules[name] = inner = Module()
        return constants_in_turn(inner, [word & mask for word in words], width, tables, take)

    def _product(self, m, platform, name, advance, item):
        """Multiply by 16 digits, a stage after the other."""
        for n in range(self.part.stages):
            item = self._stage(m, platform, f"{name}{n}", advance, item)
        return item

    def _stage(self, m, platform, name, advance, item):
        """Multiply by the next ``spacing`` digits, the lowest first.

        Items come at least as many steps apart. The result leaves with the last of them.
        """
        spacing, width = self.part.interval, self.part.digit_bits
        consumed = spacing * width
        operand = Signal(signed(len(item.operand)), name=f"{name}_operand", reset_less=True)
        digits = Signal(len(item.digits), name=f"{name}_digits", reset_less=True)
        product = Signal.like(operand, name=f"{name}_product", reset_less=True)
        low = Signal(FACTOR_BITS, name=f"{name}_low", reset_less=True)
        last = Signal(name=f"{name}_last", reset_less=True)
        step = Signal(range(spacing), name=f"{name}_step")
        busy = Signal(name=f"{name}_busy")
        finishing = Signal(name=f"{name}_finishing")
        first = step == 0
        base, choice = item.product, {}
        if spacing > 1:
            base, choice = product, {"select": first, "other": item.product}
        partial = multiply_add(m, platform, base, digits[:width], operand,
                               width=len(operand) + width, name=f"{name}_partial", **choice)
        m.d.comb += finishing.eq(busy & (step == spacing - 1))
        with m.If(advance):
            m.d.sync += [
                product.eq(partial >> width),
                low.eq(Cat(Mux(first, item.low, low)[width:FACTOR_BITS], partial[:width])),
                digits[:consumed].eq(digits[:consumed] >> width),
                step.eq(step + 1),
            ]
            with m.If(item.valid):
                m.d.sync += [
                    operand.eq(item.operand),
                    digits.eq(item.digits),
                    last.eq(item.last),
                    step.eq(0),
                    busy.eq(1),
                ]
            with m.Elif(finishing):
                m.d.sync += busy.eq(0)
        return Item(finishing, last, operand, digits[consumed:], product, low)
