"""Requantizer: narrows sums to activation codes with a serial multiplication."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.numerics import signed_bits
from nnef_hw.rtl.array import sum_layout
from nnef_hw.rtl.primitives import multiply_add
from nnef_hw.rtl.stream import beat_layout

__all__ = ["Requantizer"]


class Requantizer(wiring.Component):
    """Add the channel's bias, multiply by its ``mult``, shift, round, clip.

    Golden model: :meth:`nnef_hw.numerics.Requant.apply` of ``acc + bias[c]``, with c counting
    0..channels-1 over and over.

    Takes one sum per ``interval`` cycles: ``digit_bits`` bits of ``mult`` are multiplied in a
    cycle. Everything waits while ``o`` is stalled.

    Parameters
    ----------
    requant : Requant
        mult (one, or one per channel), shift, zero point, limits.
    bias : list[int]
        One per channel, input zero point folded in.
    in_bits : int
        Width of ``i``'s sums.
    acc_bits : int
        Width of ``sum + bias``, signed.
    digit_bits : int
        Bits of ``mult`` per cycle.
    bits, signed : int, bool
        Format of the output codes.

    Members
    -------
    i : In(stream.Signature(sum_layout))
    o : Out(stream.Signature(beat_layout))

    Attributes
    ----------
    interval : int
        Cycles per sum.
    latency : int
        Cycles from an accepted ``i`` to the matching ``o.valid``.
    """

    def __init__(self, *, requant, bias, in_bits, acc_bits, digit_bits, bits, signed):
        if not 1 <= digit_bits <= requant.mult_bits:
            raise ValueError(f"Requantizer digit_bits must be in 1..{requant.mult_bits}, "
                             f"not {digit_bits!r}")
        if len(requant.mult) not in {1, len(bias)}:
            raise ValueError(f"Requantizer has {len(requant.mult)} mult for {len(bias)} biases")
        self.requant = requant
        self.bias = list(bias)
        self.acc_bits = acc_bits
        self.digit_bits = digit_bits
        self.interval = -(-max(requant.mult).bit_length() // digit_bits)
        self.latency = self.interval + 3
        super().__init__({
            "i": In(stream.Signature(sum_layout(in_bits))),
            "o": Out(stream.Signature(beat_layout(bits=bits, signed=signed, lanes=1))),
        })

    def elaborate(self, platform):
        m = Module()
        requant, digit_bits, interval = self.requant, self.digit_bits, self.interval
        product_shift = digit_bits * interval
        # Scaling the sum up by 2**extra leaves a bit to round at, even where shift <= mult's width.
        extra = max(0, product_shift + 1 - requant.shift)
        final_shift = requant.shift + extra - product_shift
        operand_bits = self.acc_bits + extra

        bias, mult = self._channel_constants(m)
        operand = Signal(signed(operand_bits), reset_less=True)
        digits = Signal(product_shift, reset_less=True)
        product = Signal(signed(operand_bits + 1), reset_less=True)
        step = Signal(range(interval))
        busy = Signal()
        operand_last = Signal()
        product_valid = Signal()
        product_last = Signal()
        rounded_valid = Signal()
        rounded_last = Signal()
        front = Signal()
        middle = Signal()
        back = Signal()
        finishing = Signal()
        take = Signal()

        m.d.comb += [
            back.eq(~self.o.valid | self.o.ready),
            middle.eq(~rounded_valid | back),
            front.eq(~product_valid | middle),
            finishing.eq(step == interval - 1),
            self.i.ready.eq(front & (~busy | finishing)),
            take.eq(self.i.valid & self.i.ready),
        ]

        partial = multiply_add(
            m, platform, Mux(step == 0, 0, product), digits[:digit_bits], operand,
            width=operand_bits + digit_bits + 1, name="partial",
        )
        with m.If(front):
            m.d.sync += product_valid.eq(busy & finishing)
            with m.If(busy):
                m.d.sync += [
                    product.eq(partial >> digit_bits),
                    digits.eq(digits >> digit_bits),
                    step.eq(Mux(finishing, 0, step + 1)),
                    product_last.eq(operand_last),
                ]
                with m.If(finishing):
                    m.d.sync += busy.eq(0)
            with m.If(take):
                m.d.sync += [
                    operand.eq((self.i.payload.acc + bias) << extra),
                    operand_last.eq(self.i.payload.last),
                    digits.eq(mult),
                    busy.eq(1),
                ]

        half = 1 << (final_shift - 1)
        offset = half + (requant.zero_point << final_shift)
        limits = (requant.lo, requant.zero_point, requant.hi)
        limit_bits = signed_bits(min(limits), max(limits))
        rounded_bits = max(operand_bits + 1 - final_shift, limit_bits) + 2
        rounded = Signal(signed(rounded_bits), reset_less=True)
        with m.If(middle):
            m.d.sync += [
                rounded.eq((product + offset) >> final_shift),
                rounded_valid.eq(product_valid),
                rounded_last.eq(product_last),
            ]

        clipped = Mux(rounded < requant.lo, requant.lo,
                      Mux(rounded > requant.hi, requant.hi, rounded))
        with m.If(back):
            m.d.sync += [
                self.o.payload.data[0].eq(clipped),
                self.o.payload.last.eq(rounded_last),
                self.o.valid.eq(rounded_valid),
            ]
        return m

    def _channel_constants(self, m):
        """Bias and mult of the channel whose sum comes next."""
        bias = Signal(signed(self.acc_bits))
        mult = Signal(self.requant.mult_bits)
        channels = len(self.bias)
        if channels == 1:
            m.d.comb += [bias.eq(self.bias[0]), mult.eq(self.requant.mult[0])]
            return bias, mult
        channel = Signal(range(channels))
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += channel.eq(Mux(channel == channels - 1, 0, channel + 1))
        with m.Switch(channel):
            for n, value in enumerate(self.bias):
                with m.Case(n):
                    m.d.comb += bias.eq(value)
        if len(self.requant.mult) == 1:
            m.d.comb += mult.eq(self.requant.mult[0])
        else:
            with m.Switch(channel):
                for n, value in enumerate(self.requant.mult):
                    with m.Case(n):
                        m.d.comb += mult.eq(value)
        return bias, mult
