"""Requantizer: narrows sums to activation codes with a serial or pipelined multiplication."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.base.primitives import multiply_add
from nnef_hw.rtl.streams.stream import Fifo, beat_layout

__all__ = ["Requantizer", "constants_in_turn"]


@dataclass
class _Item:
    """A stage hands an item to the next one; ``mult`` holds the digits that are left."""

    valid: Value
    last: Value
    operand: Value
    mult: Value
    product: Value


class Requantizer(wiring.Component):
    """Add the channel's bias, multiply by its ``mult``, shift, round, clip.

    Golden model: :meth:`nnef_hw.arithmetic.numerics.Requant.apply` of ``acc + bias[c]``, with c
    counting 0..channels-1 over and over. If there are offsets, products begin with them.

    ``stages`` multipliers stand in a row; each takes ``digit_bits`` bits of ``mult`` per cycle and
    hands its sum on after ``interval`` cycles. With an interval of 1 a sum enters and a code leaves
    in every cycle.

    A :class:`~nnef_hw.rtl.streams.stream.Fifo` of two codes ends the pipeline. Everything before it
    moves in step, in the cycles in which that FIFO is not full, so ``i.ready`` and ``o.valid`` come
    from registers. In such cycles, and counting only them, a sum is accepted, ``interval`` or more
    after the one before it, and its code enters the FIFO ``latency - 1`` after it. ``stages + 2``
    sums are inside at most, one more if the interval is 2, and two more if it is 1.

    Subclasses round otherwise: they say what the products of a channel are multiplied with, what
    else comes along for it, and what ``round_stages`` registers make of a product.

    Parameters
    ----------
    requant : Requant
        mult (one, or one per channel), offset likewise or none, shift, zero point, limits.
    bias : list[int]
        One per channel, input zero point folded in.

    Members
    -------
    i : In(stream.Signature(sum_layout))
    o : Out(stream.Signature(beat_layout))

    Raises
    ------
    ValueError
        If there is not one bias per channel, one mult for each or for all, or a factor is wider
        than its part says.
    """

    def __init__(self, part: parts.Requantizer, *, requant, bias):
        self.part = part
        self.requant = requant
        self.bias = bias
        name = type(self).__name__
        if len(bias) != part.constants:
            raise ValueError(f"{name} has {len(bias)} biases for {part.constants} channels")
        self._check_mult(name)
        width = max(self._factors()).bit_length()
        if width > part.factor_bits:
            raise ValueError(f"{name} factors have {width} bits, not {part.factor_bits}")
        self._check_offset(name)
        super().__init__({
            "i": In(stream.Signature(sum_layout(part.acc_bits))),
            "o": Out(stream.Signature(beat_layout(bits=part.bits, signed=part.signed, lanes=1))),
        })

    def _check_mult(self, name):
        """Raise ValueError unless every sum has a mult."""
        if len(self.requant.mult) not in {1, len(self.bias)}:
            raise ValueError(f"{name} has {len(self.requant.mult)} mult for "
                             f"{len(self.bias)} biases")

    def _check_offset(self, name):
        """Raise ValueError unless there is one offset, or one per channel, as its part says."""
        offset = self._offsets()
        if len(offset) not in {1, len(self.bias)}:
            raise ValueError(f"{name} has {len(offset)} offsets for {len(self.bias)} biases")
        width = max(offset).bit_length()
        if width > self.part.offset_bits:
            raise ValueError(f"{name} offsets have {width} bits, not {self.part.offset_bits}")

    def elaborate(self, platform):
        m = Module()
        part = self.part
        requant, shift = self.requant, self._first_shift()
        product_shift = part.stages * part.interval * part.digit_bits
        # Scaling the sum up by 2**extra leaves a bit to round at, even where shift <= mult's width.
        extra = max(0, product_shift + 1 - shift)
        final_shift = shift + extra - product_shift

        m.submodules.codes = codes = Fifo(self.o.payload.shape())
        wiring.connect(m, codes.o, wiring.flipped(self.o))
        advance = codes.i.ready

        take = Signal()
        m.d.comb += take.eq(self.i.valid & self.i.ready)
        bias, factor, offset, companion = self._channel_constants(m, take)
        operand = ((self.i.payload.acc[0] + bias) << extra)[: part.acc_bits + extra].as_signed()
        begun = Const(0)
        if part.offset_bits:
            # a product begins with its offset, which is there a cycle after its sum
            sign = operand[-1].replicate(part.operand_bits - part.acc_bits)
            operand = Cat(operand, sign).as_signed()
            begun = Signal(operand.shape(), name="begun", reset_less=True)
            with m.If(take):
                m.d.sync += begun.eq(offset << extra)
        item = _Item(
            valid=self.i.valid,
            last=self.i.payload.last,
            operand=operand,
            mult=Cat(Cat(factor, Const(0, product_shift))[:product_shift], companion),
            product=begun,
        )
        for n in range(part.stages):
            is_open, item = self._stage(m, platform, n, item, advance)
            if n == 0:
                m.d.comb += self.i.ready.eq(advance & is_open)

        # Nothing is added below the bit that rounds.
        rounded = self._round(m, item.product >> (final_shift - 1), item.mult, advance)
        valid, last = item.valid, item.last
        for n in range(part.round_stages + 1):
            following = Signal(name=f"rounding{n}"), Signal(name=f"rounding_last{n}")
            with m.If(advance):
                m.d.sync += [following[0].eq(valid), following[1].eq(last)]
            valid, last = following
        m.d.comb += [
            codes.i.valid.eq(valid),
            codes.i.payload.last.eq(last),
            codes.i.payload.data[0].eq(
                Mux(
                    _less(rounded, requant.lo),
                    requant.lo,
                    Mux(_less(rounded, requant.hi + 1), rounded, requant.hi),
                )
            ),
        ]
        return m

    def _factors(self):
        """Return the factors of sums: one per channel, or one for all."""
        return self.requant.mult

    def _offsets(self):
        """Return the offsets with which products begin: one per channel, or one for all."""
        return self.requant.offset or (0,)

    def _companions(self):
        """Return the values that :meth:`_round` is told of each channel, and their width."""
        return (0,), 0

    def _first_shift(self):
        """Bits of the product below the one that is rounded first."""
        return self.requant.shift

    def _round(self, m, product, companion, advance):
        """Round products to codes with their zero point; the last of their bits is a half.

        They are there a cycle after their companion.
        """
        rounded = Signal(self._rounded_shape(len(product)), name="rounded", reset_less=True)
        with m.If(advance):
            m.d.sync += rounded.eq((product + (2 * self.requant.zero_point + 1)) >> 1)
        return rounded

    def _rounded_shape(self, product_bits):
        limits = (self.requant.lo, self.requant.zero_point, self.requant.hi)
        return signed(max(product_bits, signed_bits(min(limits), max(limits))) + 1)

    def _stage(self, m, platform, n, item, advance):
        """Multiply by the next ``interval`` digits.

        Returns whether it can take an item in this cycle, and the item that leaves in it: all but
        its product, which is there in the next cycle.
        """
        interval, digit_bits = self.part.interval, self.part.digit_bits
        consumed_bits = interval * digit_bits
        operand = Signal.like(item.operand, name=f"operand{n}", reset_less=True)
        mult = Signal(len(item.mult), name=f"mult{n}", reset_less=True)
        product = Signal(signed(len(operand)), name=f"product{n}", reset_less=True)
        last = Signal(name=f"last{n}", reset_less=True)
        busy = Signal(name=f"busy{n}")
        remaining = Signal(range(interval), name=f"remaining{n}")
        first = Signal(name=f"first{n}")
        finishing = Signal(name=f"finishing{n}")
        if interval == 1:
            is_open, base, choice = Const(1), item.product, {}
        else:
            is_open = Signal(name=f"open{n}", init=1)
            base, choice = product, {"select": first, "other": item.product}
            with m.If(advance):
                m.d.sync += is_open.eq(Mux(is_open, ~item.valid, remaining == 1))
        m.d.comb += finishing.eq(busy & is_open)
        partial = multiply_add(
            m,
            platform,
            base,
            mult[:digit_bits],
            operand,
            width=len(operand) + digit_bits,
            name=f"partial{n}",
            **choice,
        )
        with m.If(advance):
            m.d.sync += [
                product.eq(partial >> digit_bits),
                mult[:consumed_bits].eq(mult[:consumed_bits] >> digit_bits),
                remaining.eq(remaining - 1),
                first.eq(is_open),
            ]
            with m.If(is_open):
                m.d.sync += [
                    operand.eq(item.operand),
                    mult.eq(item.mult),
                    last.eq(item.last),
                    remaining.eq(interval - 1),
                    busy.eq(item.valid),
                ]
        return is_open, _Item(finishing, last, operand, mult[consumed_bits:], product)

    def _channel_constants(self, m, take):
        """Bias, factor, offset and companion of the channel that comes next, from registers."""
        channels = len(self.bias)
        companions, companion_bits = self._companions()
        factors, offsets, companions = (
            values * (channels if len(values) == 1 else 1)
            for values in (self._factors(), self._offsets(), companions)
        )
        factor_bits, offset_bits = (max(values).bit_length() for values in (factors, offsets))
        mask = (1 << self.part.acc_bits) - 1
        words = [
            ((companion << offset_bits | offset) << factor_bits | factor) << self.part.acc_bits
            | bias & mask
            for bias, factor, offset, companion in zip(
                self.bias, factors, offsets, companions, strict=True)
        ]
        width = self.part.acc_bits + factor_bits + offset_bits + companion_bits
        constants = Const(words[0], width)
        if channels > 1:
            constants = constants_in_turn(m, words, width, self.part.tables, take)
        bias, others = constants[: self.part.acc_bits], constants[self.part.acc_bits :]
        factor, others = others[:factor_bits], others[factor_bits:]
        return bias.as_signed(), factor, others[:offset_bits], others[offset_bits:]


def constants_in_turn(m, words, width, tables, take):
    """Return a register with ``words[0]``, then with the next one after each ``take``.

    The order is known, so a word is looked up before its turn. Of several tables, a power of two,
    each holds every ``tables``-th word and gives it to a register of its own, from which it is
    chosen a turn later: no path leads through all of a long table.
    """
    depth = len(words)
    ahead = 1 if tables == 1 else 2
    channel = Signal(range(depth), init=ahead)
    constants = Signal(width, init=words[0])
    choice_bits = (tables - 1).bit_length()
    following = []
    for number in range(tables):
        # Where the last words are missing, what is looked up in their place is not chosen.
        table = memory.Memory(
            shape=unsigned(width),
            depth=-(-depth // tables),
            init=words[number::tables],
            attrs={"ram_style": "logic"},
        )
        m.submodules["constants" if tables == 1 else f"constants{number}"] = table
        port = table.read_port(domain="comb")
        m.d.comb += port.addr.eq(channel[choice_bits:])
        following.append(port.data)
    if tables > 1:
        choice = Signal(choice_bits, init=1)
        rows = [Signal(width, name=f"row{n}", init=words[n]) for n in range(tables)]
        with m.If(take):
            m.d.sync += choice.eq(channel[:choice_bits])
            m.d.sync += [row.eq(word) for row, word in zip(rows, following, strict=True)]
        following = [Array(rows)[choice]]
    with m.If(take):
        m.d.sync += [
            channel.eq(Mux(channel == depth - 1, 0, channel + 1)),
            constants.eq(following[0]),
        ]
    return constants


def _less(value, limit):
    """Return ``value < limit``, both signed, comparing only the bits that matter."""
    zeros = (limit & -limit).bit_length() - 1 if limit else len(value) - 1
    return (value >> zeros) < (limit >> zeros)
