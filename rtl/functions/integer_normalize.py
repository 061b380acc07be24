"""Normalization of integer networks over the channels of a pixel, by whole divisions."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.arithmetic.normalization import FACTOR_BITS
from nnef_hw.rtl.base.primitives import masked_difference
from nnef_hw.rtl.functions.normalize import Item, Normalize
from nnef_hw.rtl.streams.stream import Fifo, code_range

__all__ = ["IntegerNormalize"]


@dataclass
class _Pixel:
    """Signals of a pixel whose codes are read: mean, root; whether it is the last."""

    mean: Value
    root: Value
    last: Value


class IntegerNormalize(Normalize):
    """Normalize the codes of a pixel, scale them, add offsets, cut bits.

    Golden model: :meth:`nnef_hw.arithmetic.integer_functions.IntegerNormalizeRequant.apply`. Mean,
    variance and root are found bit by bit as those of :class:`Normalize`, whose timing it has.

    One division gives a code: with ``t = (code - mean) * scale`` it is ``floor(u / root)``,
    ``u = (t + offset * root + (root - 1 if t < 0 else 0)) >> shift``.

    Parameters
    ----------
    requant : IntegerNormalizeRequant
        Shift and limits, which are all codes of the output.
    scale, offset : list[int]
        One, or one per channel.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))

    Raises
    ------
    ValueError
        If the limits of ``requant`` are not those of the output, or it has another number of
        channels, scales or offsets than its part.
    """

    unproved = "the solver would have to multiply; tests simulate it under stalls"

    def __init__(self, part: parts.IntegerNormalize, *, requant, scale, offset):
        codes = code_range(part.out_bits, part.out_signed)
        limits = codes[0], codes[-1]
        given = requant.channels, requant.centered, len(scale), len(offset)
        wanted = part.channels, part.centered, part.scales, part.offsets
        if given != wanted:
            raise ValueError(f"IntegerNormalize has channels, mean, scales and offsets {given}, "
                             f"its part {wanted}")
        if (requant.lo, requant.hi) != limits:
            raise ValueError(f"IntegerNormalize limits results to {requant.lo}..{requant.hi}, "
                             f"not to {limits[0]}..{limits[1]}")
        self.part = part
        self.requant = requant
        self.scale = scale
        self.offset = offset
        wiring.Component.__init__(self, self._streams(part))

    def _difference(self, code):
        return code if self.part.signed else Cat(code, Const(0, 1)).as_signed()

    def _find_root(self, m, platform, sums):
        """Find mean and root of each pixel; return what waits until it is taken."""
        part = self.part
        total, squares, ends = sums
        complete = Signal()
        width = part.square_bits
        count_bits = part.channels.bit_length()
        # what is divided by the number of channels, highest bit first, and what was found
        dividend = Signal(max(width, part.sum_bits), reset_less=True)
        quotient = Signal(max(width, 2 * part.root_bits), reset_less=True)
        remainder = Signal(max(count_bits, part.root_bits + 2), reset_less=True)
        is_negative = Signal(reset_less=True)
        mean = Signal(part.bits, reset_less=True)
        left = Signal(part.bits, name="mean_left", reset_less=True)
        moved = Signal(width + 1, name="moved_total", reset_less=True)
        magnitude = Signal(part.sum_bits, name="magnitude", reset_less=True)
        variance = Signal(width + 1, name="centered_squares", reset_less=True)
        root = Signal(part.root_bits, reset_less=True)
        step = Signal(range(max(part.sum_bits, width)))
        bank = Signal(name="root_bank")
        self.taken = taken = Signal()
        self.rooted = rooted = Signal()

        # A division takes a bit at a time, a root two.
        rooting = Signal()
        digits = Mux(rooting, Cat(quotient[2 * part.root_bits - 2 : 2 * part.root_bits], remainder),
                     Cat(dividend[-1], remainder))
        less = Mux(rooting, Cat(Const(1, 2), root), part.channels)
        rest = Signal(signed(len(remainder) + 3), name="rest")
        fits = Signal()
        m.d.comb += [rest.eq(digits - less), fits.eq(~rest[-1])]
        following = Mux(fits, rest, digits)

        def count(state, cycles):
            """Stay for so many cycles."""
            m.d.sync += step.eq(step + 1)
            with m.If(step == cycles - 1):
                m.d.sync += step.eq(0)
                m.next = state

        def divide():
            m.d.sync += [
                remainder.eq(following),
                quotient.eq(Cat(fits, quotient)),
                dividend.eq(dividend << 1),
            ]

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    variance.eq(squares.as_unsigned()),
                    magnitude.eq(Mux(total[-1], -total, total)),
                    is_negative.eq(total[-1]),
                    step.eq(0),
                ]
                with m.If(complete):
                    m.d.sync += complete.eq(0)
                    m.next = "PREPARE" if part.centered else "LOAD"
            if part.centered:
                with m.State("PREPARE"):
                    m.d.sync += [
                        dividend.eq(magnitude << len(dividend) - part.sum_bits),
                        remainder.eq(0),
                        quotient.eq(0),
                    ]
                    m.next = "MEAN"
                with m.State("MEAN"):
                    divide()
                    count("BESIDE", part.sum_bits)
                with m.State("BESIDE"):
                    # sum((q - m)**2) is that of q**2 less |m| times |S| and what m leaves of it
                    m.d.sync += [
                        mean.eq(quotient),
                        left.eq(quotient),
                        moved.eq(magnitude + remainder),
                    ]
                    m.next = "CENTER"
                with m.State("CENTER"):
                    m.d.sync += [
                        variance.eq(masked_difference(
                            m, platform, left[0], Cat(moved, Const(0, 1)).as_signed(),
                            Cat(variance, Const(0, 1)).as_signed(), name="beside_mean")),
                        moved.eq(moved << 1),
                        left.eq(left >> 1),
                    ]
                    count("LOAD", part.bits)
            with m.State("LOAD"):
                at_top = variance << len(dividend) - width
                m.d.sync += [dividend.eq(at_top), remainder.eq(0), quotient.eq(0)]
                m.next = "VARIANCE"
            with m.State("VARIANCE"):
                divide()
                count("ADD", width)
            with m.State("ADD"):
                m.d.sync += [quotient.eq(quotient + 1), remainder.eq(0), root.eq(0)]
                m.next = "ROOT"
            with m.State("ROOT"):
                m.d.comb += rooting.eq(1)
                m.d.sync += [
                    remainder.eq(following), root.eq(Cat(fits, root)), quotient.eq(quotient << 2)
                ]
                count("WAIT", part.root_bits)
            with m.State("WAIT"):
                m.d.comb += rooted.eq(1)
                with m.If(taken):
                    m.d.sync += bank.eq(~bank)
                    m.next = "IDLE"
        # Sums of one code may be complete in the cycle in which those before them are taken.
        with m.If(ends):
            m.d.sync += complete.eq(1)
        signed_mean = Signal(signed(part.bits + 1), name="signed_mean")
        m.d.comb += signed_mean.eq(Mux(is_negative, -mean, mean) if part.centered else 0)
        return _Pixel(signed_mean, root, Mux(bank, self.last[1], self.last[0]))

    def _multiply(self, m, platform, codes, found):
        """Multiply what lies beside the mean by the scale, the root by the offset, and divide."""
        part, shift = self.part, self.requant.shift
        m.submodules.results = results = Fifo(self.o.payload.shape())
        wiring.connect(m, results.o, wiring.flipped(self.o))
        advance = results.i.ready
        pixel, valid, is_final = self._read(m, advance, codes, found)

        beside = Signal(signed(part.bits + 2), name="beside", reset_less=True)
        root = Signal.like(pixel.root, name="beside_root", reset_less=True)
        code = codes.read_data.as_signed() if part.signed else codes.read_data
        with m.If(advance):
            m.d.sync += [beside.eq(code - pixel.mean), root.eq(pixel.root)]
        scale, offset = (
            self._in_turn(m, name, words, bits, tables, advance & valid).as_signed()
            for name, words, bits, tables in (
                ("scales", self.scale, part.scale_bits, part.tables[0]),
                ("offsets", self.offset, part.offset_bits, part.tables[1]),
            )
        )
        consumed = part.interval
        magnitude = Mux(beside[-1], -beside, beside)[: part.root_bits]
        is_below = beside[-1] ^ scale[-1]
        is_negative = beside[-1]
        digits = Cat(magnitude, Const(0, consumed))[:consumed]
        roots = Cat(root, Const(0, consumed))[:consumed]
        low = Const(0, FACTOR_BITS)
        last = pixel.last & is_final
        scaled = self._stage(m, platform, "scale", advance, Item(
            valid, last, scale, Cat(digits, root, is_below, is_negative), Const(0), low))
        moved = self._stage(m, platform, "offset", advance, Item(
            valid, last, offset, roots, Const(0), low))

        # Both products are there a step later.
        kept = Signal.like(scaled.digits, name="kept", reset_less=True)
        first, second = (
            Cat(item.low[FACTOR_BITS - consumed :], item.product).as_signed()
            for item in (scaled, moved)
        )
        root, below, negative = (kept[: part.root_bits], kept[part.root_bits],
                                 kept[part.root_bits + 1])
        bits = max(len(first), len(second)) + 2
        whole = Signal(signed(bits), name="whole", reset_less=True)
        root_of_whole = Signal(part.root_bits, name="root_of_whole", reset_less=True)
        above = Signal(signed(max(bits - shift, part.root_bits + part.out_bits) + 1),
                       name="above_least", reset_less=True)
        root_of_above = Signal(part.root_bits, name="root_of_above", reset_less=True)
        with m.If(advance):
            m.d.sync += [
                kept.eq(scaled.digits),
                whole.eq(Mux(negative, -first, first) + second + Mux(below, root - 1, 0)),
                root_of_whole.eq(root),
                above.eq((whole >> shift) - self.requant.lo * root_of_whole),
                root_of_above.eq(root_of_whole),
            ]
        valid, last = self._later(m, advance, (scaled.valid, scaled.last), 3, name="above")
        quotient, valid, last = self._divide(m, advance, above, root_of_above, valid, last)
        # the least code is that of all bits 0, or of the sign alone
        code = quotient ^ (1 << part.out_bits - 1 if part.out_signed else 0)
        m.d.comb += [
            results.i.valid.eq(valid),
            results.i.payload.last.eq(last),
            results.i.payload.data[0].eq(code[: part.out_bits]),
        ]

    def _divide(self, m, advance, dividend, divisor, valid, last):
        """Return a quotient of so many bits as a result has, and the flags that come along.

        That of a negative dividend is 0; one that is too great has all bits set.
        """
        part = self.part
        bits = part.out_bits
        held = Signal(part.root_bits + bits, name="division", reset_less=True)
        root = Signal(part.root_bits, name="division_root", reset_less=True)
        # what the root fits into stands above those bits of a dividend that come later
        rest = Signal(signed(part.root_bits + 2), name="division_rest")
        fits = Signal(name="division_fits")
        step = Signal(range(part.interval), name="division_step")
        busy, finishing = Signal(name="division_busy"), Signal(name="division_finishing")
        own_last = Signal(name="division_last", reset_less=True)
        found = Signal(bits, name="quotient", reset_less=True)
        flags = Signal(name="quotient_valid"), Signal(name="quotient_last", reset_less=True)
        upper = held[bits - 1 :]
        is_great = (dividend >> bits) >= divisor
        m.d.comb += [
            rest.eq(upper - root),
            fits.eq(~rest[-1]),
            finishing.eq(busy & (step == part.interval - 1)),
        ]
        following = Cat(Const(0, 1), held[: bits - 1], Mux(fits, rest, upper))[: len(held)]
        with m.If(advance):
            m.d.sync += [
                held.eq(following),
                found.eq(Mux(step < bits, Cat(fits, found), found)),
                step.eq(step + 1),
                flags[0].eq(finishing),
                flags[1].eq(own_last),
            ]
            with m.If(valid):
                m.d.sync += [
                    held.eq(Mux(dividend[-1], 0, Mux(is_great, (divisor << bits) - 1, dividend))),
                    root.eq(divisor),
                    own_last.eq(last),
                    step.eq(0),
                    busy.eq(1),
                ]
            with m.Elif(finishing):
                m.d.sync += busy.eq(0)
        return found, *flags
