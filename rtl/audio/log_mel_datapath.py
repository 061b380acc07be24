"""Numbers of log-mel features: where they are, their products and sums, what is written."""

from amaranth import *

from nnef_hw.arithmetic.audio.log_mel import FLOOR_STEP_BITS
from nnef_hw.arithmetic.audio.log_spectrum import FACTOR_BITS, NUMBER_BITS
from nnef_hw.arithmetic.audio.logarithm import LOG_BITS
from nnef_hw.parts.audio.log_mel import LIMB_BITS, ROOT_BITS, TOP_BIT, WIDE_SHIFT
from nnef_hw.rtl.audio.log_mel_signals import (
    HALF_BITS,
    LOW_BITS,
    SQUARE_BITS,
    SUM_BITS,
    WHOLE_BITS,
    By,
    First,
    Operation,
    Table,
    Written,
)
from nnef_hw.rtl.base.primitives import delayed

__all__ = ["address", "multiply", "take_root", "write"]

ENERGY_BIT = FACTOR_BITS - SQUARE_BITS
"""Lowest bit of a bin's energy in the sum, when it is taken for its root."""


def multiply(m, w):
    """Multiply, a cycle after numbers were addressed, and add, two cycles after that."""
    number = Signal(signed(NUMBER_BITS))
    m.d.comb += number.eq(w.data.read_data)
    by = delayed(m, w.by, 1, name="by")
    is_weight = delayed(m, w.table == Table.WEIGHT, 1, name="weighs")
    factor = Signal(FACTOR_BITS)
    word = w.words.read_data
    high = number[SQUARE_BITS:-1]
    with m.Switch(by):
        with m.Case(By.FACTOR):
            m.d.comb += factor.eq(Cat(word[:-2], word[-2:] & ~is_weight.replicate(2)))
        with m.Case(By.LOW):
            m.d.comb += factor.eq(number[:SQUARE_BITS] << FACTOR_BITS - SQUARE_BITS)
        with m.Case(By.HIGH):
            m.d.comb += factor.eq(high)
        with m.Case(By.SIGN):
            m.d.comb += factor.eq(number[-1] << len(high))
    m.d.comb += [w.multiplier.a.eq(number), w.multiplier.b.eq(factor)]

    kind = delayed(m, w.kind, 2, name="kind")
    is_first = delayed(m, w.is_first, 2, name="first")
    begin = delayed(m, w.begin, 2, name="begin")
    is_less = delayed(m, w.is_less, 2, name="less")
    total = w.sum
    start, added = Signal(signed(SUM_BITS)), Signal(signed(SUM_BITS))
    beginnings = {
        First.ZERO: 0, First.HALF: 1 << HALF_BITS, First.BIAS: w.bias,
        First.PLACES: w.places_left << LOG_BITS + LOW_BITS, First.SHIFTED: total << WIDE_SHIFT,
    }
    floor = w.requant.floor
    if floor:
        below = C(floor >> FLOOR_STEP_BITS, WIDE_SHIFT)
        beginnings |= {First.FLOOR: floor >> LIMB_BITS,
                       First.JOINED: (total << WIDE_SHIFT) | below}
    m.d.comb += start.eq(total)
    with m.If(is_first):
        with m.Switch(begin):
            for which, value in beginnings.items():
                with m.Case(which):
                    m.d.comb += start.eq(value)
    doubles = kind[1] & ~is_first
    product = Signal(signed(SUM_BITS))
    m.d.comb += [
        product.eq(w.multiplier.p),
        added.eq(Mux(doubles, total, product ^ is_less.replicate(SUM_BITS))),
    ]
    is_there = Signal()
    m.d.comb += is_there.eq(Mux(
        is_first, total[TOP_BIT + 1 - WIDE_SHIFT:TOP_BIT + 1].any(),
        total[TOP_BIT] | (w.places_left == 0)))
    normalizes = kind == Operation.NORMALIZE
    with m.If((kind != Operation.HOLD) & ~(normalizes & is_there)):
        m.d.sync += total.eq(start + added + is_less)
    with m.If(normalizes & ~is_there):
        m.d.sync += w.places_left.eq(w.places_left - Mux(is_first, WIDE_SHIFT, 1))


def write(m, w):
    """Write the sum, four cycles after its last number was addressed."""
    total = w.sum
    chosen = Signal(2)
    m.d.comb += chosen.eq(Mux(w.is_idle, Written.GIVEN, delayed(m, w.slice, 3, name="slice")))
    result = w.result
    low = LOW_BITS + LIMB_BITS
    rounded = Cat(total[LOW_BITS:low], total[low] & ~w.is_power)
    top = Cat(total[low:TOP_BIT], total[TOP_BIT:] & w.is_power.replicate(2))
    if w.part.magnitudes:
        rounded, top = Mux(w.is_power, w.root, rounded), Mux(w.is_power, 0, top)
    with m.If(~w.clears), m.Switch(chosen):
        with m.Case(Written.ROUNDED):
            m.d.sync += result.eq(rounded)
        with m.Case(Written.WHOLE):
            m.d.sync += result.eq(total[WHOLE_BITS:])
        with m.Case(Written.TOP):
            m.d.sync += result.eq(top)
        with m.Case(Written.GIVEN):
            m.d.sync += result.eq(w.sample)


def take_root(m, w):
    """Find the root of the energy that is taken, a bit per step, the highest one first."""
    energy = Signal(2 * ROOT_BITS)
    rest = Signal(ROOT_BITS + 1)
    above, odd = Cat(energy[-2:], rest), Cat(C(1, 2), w.root)
    fits = Signal()
    m.d.comb += fits.eq(above >= odd)
    with m.If(w.takes_root):
        m.d.sync += [
            energy.eq(w.sum[ENERGY_BIT : ENERGY_BIT + len(energy)]), rest.eq(0), w.root.eq(0),
        ]
    with m.Else():
        m.d.sync += [
            energy.eq(energy << 2), rest.eq(Mux(fits, above - odd, above)),
            w.root.eq(Cat(fits, w.root)),
        ]


def address(m, w):
    """Address a number, a factor, and where a result goes."""
    part, layout, places = w.part, w.layout, w.places
    low, high = w.low_digit, w.high_digit
    mirror = Signal(places)
    m.d.comb += mirror.eq(-w.base)

    def element(low_bit, high_bit, is_mirrored, is_whole):
        """Return an element: of a stage, or of a pair, whose middle one has its first as 0."""
        plain = w.base | (high & high_bit.replicate(places)) | (
            low & low_bit.replicate(places))
        first = Cat(plain[:-1], plain[-1] & is_whole)
        return Mux(is_mirrored, mirror, first)

    number = Signal(places)
    m.d.comb += [
        number.eq(element(w.low_bit, w.high_bit, w.is_mirrored, w.is_whole)),
        w.to_element.eq(element(w.to_low, w.to_high, w.to_mirrored,
                                   w.to_whole)),
    ]
    order = w.requant.fft.order
    half = Signal(places)
    for bit in range(places):
        m.d.comb += half[int(order[1 << bit]).bit_length() - 1].eq(w.base[bit])
    sample = Signal(places + 1)
    m.d.comb += sample.eq(Cat(w.count[0], half))
    oldest = Signal(range(part.kept))
    m.d.comb += [
        oldest.eq(w.place + sample + (part.kept - part.window)),
        w.data.read_address.eq(Mux(
            w.reads_samples, part.points | oldest, Cat(w.piece, number))),
    ]

    quarter = w.quarter
    m.d.comb += quarter.eq(w.angle[-2:] - w.takes_sine)
    cosine = Cat(w.angle[:-2], quarter[0])
    addresses = {
        Table.WINDOW: sample, Table.COSINE: layout.cosines | cosine, Table.WEIGHT: w.weight,
        Table.LOGARITHM: layout.logarithms | Cat(w.segment, w.takes_base),
        Table.CONSTANT: layout.constants | w.constant,
    }
    with m.Switch(w.table):
        for table, address in addresses.items():
            with m.Case(table):
                m.d.comb += w.words.read_address.eq(address)

