"""Log-mel features of audio, computed by one multiplier in turn."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.audio.log_mel import FACTOR_BITS, NUMBER_BITS, POWER_SHIFT
from nnef_hw.arithmetic.audio.logarithm import LOG_BITS, SEGMENT_BITS, SLOPE_BITS
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.parts.functions.log_mel import (
    DRAIN,
    LIMB_BITS,
    LOG_STEPS,
    TOP_BIT,
    LogMelWords,
)
from nnef_hw.rtl.arrays.wide_product import WideProduct
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import delayed
from nnef_hw.rtl.streams.stream import beat_layout, check_limits

__all__ = ["LogMel"]

SUM_BITS = TOP_BIT + 2
ZERO, UNIT, QUARTERS, HALVES, MULT = range(5)
"""Places of the other constants."""
HOLD, ADD, SHIFT, NORMALIZE = range(4)
"""Operations on the sum of products, one per cycle."""
FROM_ZERO, FROM_HALF, FROM_BIAS, FROM_PLACES = range(4)
"""First values of a sum."""
FACTOR, LOW, HIGH, SIGN = range(4)
"""What a number is multiplied by: a constant, or a part of itself."""
ROUNDED, WHOLE, TOP, GIVEN = range(4)
"""What is written: bits of the sum from 16, 15 or 41 on, or something else."""
WINDOW, COSINE, WEIGHT, LOGARITHM, CONSTANT = range(5)
"""Tables of factors."""
HALF_BITS = FACTOR_BITS - 1
LOW_BITS = 16


class LogMel(wiring.Component):
    """Log-mel features of samples of audio.

    Golden model: :meth:`nnef_hw.arithmetic.audio.log_mel.LogMelRequant.apply`. It takes a sample
    per cycle, until a hop is complete; then it takes none until the frame's bands have left. One
    multiplier and one sum make everything of numbers that lie in one memory, in passes over them:
    window, stages of the transform, power, bands. A product is read, multiplied, added and written
    back in five cycles; a number is read and written per cycle. Every step takes as many cycles
    whatever the numbers are.

    Parameters
    ----------
    requant : LogMelRequant
        The front end.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Samples; ``last`` ends an inference.
    o : Out(stream.Signature(beat_layout))
        Bands of a frame, frame by frame.

    Raises
    ------
    ValueError
        If the requantizer is not that of its part.
    """

    unproved = "the solver would have to multiply; tests simulate it under stalls"

    def __init__(self, part: parts.LogMel, *, requant):
        check_limits(part, requant)
        part.check(requant)
        self.part = part
        self.requant = requant
        samples = beat_layout(bits=16, signed=True, lanes=1)
        results = beat_layout(bits=part.out_bits, signed=part.out_signed, lanes=1)
        super().__init__({"i": In(stream.Signature(samples)), "o": Out(stream.Signature(results))})

    def elaborate(self, platform):
        m = Module()
        part = self.part
        self.layout = LogMelWords.of(self.requant)
        places = (part.half - 1).bit_length()
        m.submodules.data = self.data = TiledMemory(part.data_memory, writable=True)
        m.submodules.words = self.words = TiledMemory(part.word_memory, words=self.layout.words)
        m.d.comb += [self.data.read_enable.eq(1), self.words.read_enable.eq(1)]
        self._declare(places)
        self._count(m, places)
        self._compute(m, platform)
        self._write(m)
        self._take(m)
        self._address(m, places)
        self._run(m, places)
        self._give(m)
        return m

    def _declare(self, places):
        """Make what passes say of a cycle, and registers that several of them use."""
        # a cycle of a pass: its step, and the element that it is at, without a stage's digit
        self.count = Signal(6)
        self.steps = Signal()
        self.inner_end = Signal()
        self.base = Signal(places)
        self.skip = Signal(places)
        self.wraps = Signal()
        # the digit of a stage: one bit, or the lower one of two
        self.low_digit, self.high_digit = Signal(places), Signal(places)
        self.is_pair = Signal()
        self.is_apart = Signal()
        self.low_bit, self.high_bit = Signal(), Signal()
        self.to_low, self.to_high = Signal(), Signal()
        # numbers that are read and written
        self.reads_samples = Signal()
        self.is_mirrored, self.to_mirrored = Signal(), Signal()
        self.is_whole, self.to_whole = Signal(), Signal()
        self.to_element = Signal(places)
        self.piece, self.to_piece = Signal(), Signal()
        self.is_written = Signal()
        # products and sums
        self.by = Signal(2)
        self.kind = Signal(2)
        self.is_first = Signal()
        self.begin = Signal(2)
        self.is_less = Signal()
        self.slice = Signal(2)
        # factors
        self.table = Signal(3)
        self.constant = Signal(3)
        self.angle = Signal(places + 1)
        self.takes_sine = Signal()
        self.turn = Signal(places)
        self.weight = Signal(range(self.part.word_memory.depth))
        self.segment = Signal(SEGMENT_BITS)
        self.takes_base = Signal()
        self.is_power = Signal()
        self.is_idle = Signal()
        self.clears = Signal(init=int(not self.part.frames))
        self.places_left = Signal(range(TOP_BIT + 1))
        self.missing = Signal(range(self.part.window + 1), init=(
            self.part.window if self.part.frames else self.part.hop))
        self.ends = Signal()
        self.takes = Signal()

    def _count(self, m, places):
        """Let an element follow another: bits of a stage's digit are left out."""
        following = Signal(places + 1)
        self.following = Signal(places)
        m.d.comb += [
            following.eq((self.base | self.skip) + 1),
            self.following.eq(following[:places] & ~self.skip),
            self.wraps.eq(following[places]),
        ]
        with m.If(self.steps):
            m.d.sync += self.count.eq(Mux(self.inner_end, 0, self.count + 1))
            with m.If(self.inner_end):
                m.d.sync += self.base.eq(self.following)

    def _compute(self, m, platform):
        """Multiply, a cycle after numbers were addressed, and add, two cycles after that."""
        number = Signal(signed(NUMBER_BITS))
        m.d.comb += number.eq(self.data.read_data)
        by = delayed(m, self.by, 1, name="by")
        is_weight = delayed(m, self.table == WEIGHT, 1, name="weighs")
        factor = Signal(FACTOR_BITS)
        word = self.words.read_data
        high = number[LOW_BITS:-1]
        with m.Switch(by):
            with m.Case(FACTOR):
                m.d.comb += factor.eq(Cat(word[:-2], word[-2:] & ~is_weight.replicate(2)))
            with m.Case(LOW):
                m.d.comb += factor.eq(number[:LOW_BITS])
            with m.Case(HIGH):
                m.d.comb += factor.eq(high)
            with m.Case(SIGN):
                m.d.comb += factor.eq(number[-1] << len(high))
        m.submodules.multiplier = multiplier = WideProduct(
            a_bits=NUMBER_BITS, b_bits=FACTOR_BITS, in_dsp=self.part.in_dsp)
        m.d.comb += [multiplier.a.eq(number), multiplier.b.eq(factor)]

        kind = delayed(m, self.kind, 2, name="kind")
        is_first = delayed(m, self.is_first, 2, name="first")
        begin = delayed(m, self.begin, 2, name="begin")
        is_less = delayed(m, self.is_less, 2, name="less")
        self.sum = total = Signal(signed(SUM_BITS), reset_less=True)
        self.bias = self.requant.bias + (self.requant.zero_point << self.requant.shift)
        start, added = Signal(signed(SUM_BITS)), Signal(signed(SUM_BITS))
        beginnings = {
            FROM_ZERO: 0, FROM_HALF: 1 << HALF_BITS, FROM_BIAS: self.bias,
            FROM_PLACES: self.places_left << LOG_BITS + LOW_BITS,
        }
        m.d.comb += start.eq(total)
        with m.If(is_first):
            with m.Switch(begin):
                for which, value in beginnings.items():
                    with m.Case(which):
                        m.d.comb += start.eq(value)
        doubles = kind[1]
        product = Signal(signed(SUM_BITS))
        m.d.comb += [
            product.eq(multiplier.p),
            added.eq(Mux(doubles, total, product ^ is_less.replicate(SUM_BITS))),
        ]
        is_there = Signal()
        m.d.comb += is_there.eq(total[TOP_BIT])
        normalizes = kind == NORMALIZE
        with m.If((kind != HOLD) & ~(normalizes & is_there)):
            m.d.sync += total.eq(start + added + is_less)
        with m.If(normalizes & ~is_there):
            m.d.sync += self.places_left.eq(self.places_left - 1)

    def _write(self, m):
        """Write the sum, four cycles after its last number was addressed."""
        total = self.sum
        chosen = Signal(2)
        m.d.comb += chosen.eq(Mux(self.is_idle, GIVEN, delayed(m, self.slice, 3, name="slice")))
        self.sample = Signal(signed(NUMBER_BITS))
        # it stays 0 while samples are cleared
        self.result = result = Signal(NUMBER_BITS)
        low = LOW_BITS + LIMB_BITS
        with m.If(~self.clears), m.Switch(chosen):
            with m.Case(ROUNDED):
                m.d.sync += result.eq(Cat(total[LOW_BITS:low], total[low] & ~self.is_power))
            with m.Case(WHOLE):
                m.d.sync += result.eq(total[HALF_BITS:])
            with m.Case(TOP):
                m.d.sync += result.eq(
                    Cat(total[low:TOP_BIT], total[TOP_BIT:] & self.is_power.replicate(2)))
            with m.Case(GIVEN):
                m.d.sync += result.eq(self.sample)

    def _take(self, m):
        """Take samples, less their part of the one before, into a ring."""
        part, requant = self.part, self.requant
        sample = self.i.p.data[0]
        self.place = place = Signal((part.kept - 1).bit_length())
        takes, missing = self.takes, self.missing
        p, e = requant.emphasis
        emphasized = Signal(signed(17 + e))
        if p:
            previous = Signal(signed(16))
            m.d.comb += emphasized.eq(((sample - previous) << e) + ((1 << e) - p) * previous)
            with m.If(takes):
                m.d.sync += previous.eq(Mux(self.i.p.last, 0, sample) if part.frames else sample)
        else:
            m.d.comb += emphasized.eq(sample)
        arrived = Signal()
        m.d.sync += arrived.eq(takes)
        m.d.comb += [
            self.sample.eq(emphasized << LOW_BITS - requant.input_shift),
            self.i.ready.eq(self.is_idle & ~self.clears),
            takes.eq(self.i.valid & self.i.ready),
        ]
        stored = delayed(m, Cat(self.to_piece, self.to_element), 4, name="to")
        stores = delayed(m, self.is_written, 4, name="stores", is_flag=True)
        into_ring = arrived | self.clears
        m.d.comb += [
            self.data.write_enable.eq(stores | into_ring),
            self.data.write_data.eq(self.result),
            self.data.write_address.eq(Mux(into_ring, part.points | place, stored)),
        ]
        with m.If(into_ring):
            m.d.sync += place.eq(place + 1)
        with m.If(self.clears & (place == part.kept - 1)):
            m.d.sync += self.clears.eq(0)
        with m.If(takes):
            m.d.sync += [missing.eq(missing - 1), self.ends.eq(self.i.p.last)]

    def _address(self, m, places):
        """Address a number, a factor, and where a result goes."""
        part, layout = self.part, self.layout
        low, high = self.low_digit, self.high_digit
        self.digits = high | low
        mirror = Signal(places)
        m.d.comb += mirror.eq(-self.base)

        def element(low_bit, high_bit, is_mirrored, is_whole):
            """Return an element: of a stage, or of a pair, whose middle one has its first as 0."""
            plain = self.base | (high & high_bit.replicate(places)) | (
                low & low_bit.replicate(places))
            first = Cat(plain[:-1], plain[-1] & is_whole)
            return Mux(is_mirrored, mirror, first)

        number = Signal(places)
        m.d.comb += [
            number.eq(element(self.low_bit, self.high_bit, self.is_mirrored, self.is_whole)),
            self.to_element.eq(element(self.to_low, self.to_high, self.to_mirrored,
                                       self.to_whole)),
        ]
        order = self.requant.fft.order
        half = Signal(places)
        for bit in range(places):
            m.d.comb += half[int(order[1 << bit]).bit_length() - 1].eq(self.base[bit])
        sample = Signal(places + 1)
        m.d.comb += sample.eq(Cat(self.count[0], half))
        oldest = Signal(range(part.kept))
        m.d.comb += [
            oldest.eq(self.place + sample + (part.kept - part.window)),
            self.data.read_address.eq(Mux(
                self.reads_samples, part.points | oldest, Cat(self.piece, number))),
        ]

        # a sine is the cosine of a quarter before; magnitudes repeat after a half
        quarter = Signal(2)
        m.d.comb += quarter.eq(self.angle[-2:] - self.takes_sine)
        self.is_negative = quarter[0] ^ quarter[1]
        cosine = Cat(self.angle[:-2], quarter[0])
        addresses = {
            WINDOW: sample, COSINE: layout.cosines | cosine, WEIGHT: self.weight,
            LOGARITHM: layout.logarithms | Cat(self.segment, self.takes_base),
            CONSTANT: layout.constants | self.constant,
        }
        with m.Switch(self.table):
            for table, address in addresses.items():
                with m.Case(table):
                    m.d.comb += self.words.read_address.eq(address)

    def _run(self, m, places):
        """Go from pass to pass: what is read, multiplied, added and written in each cycle."""
        part, layout = self.part, self.layout
        count = self.count
        last = [Signal(name=f"is_end{bits}") for bits in (1, 2, 3, 4, 5)]
        for bits, flag in enumerate(last, 1):
            m.d.comb += flag.eq(count[:bits].all())
        drains = Signal()
        drain = Signal(range(DRAIN))
        drained = Signal()
        m.d.comb += drained.eq(drains & (drain == DRAIN - 1))
        with m.If(drains):
            m.d.sync += drain.eq(Mux(drained, 0, drain + 1))
        with m.If(drained):
            m.d.sync += drains.eq(0)
        first_band = self.requant.bank.filters[0].first
        in_middle = self.base[-1]

        def steps(inner_end, ends):
            """Count the steps of a pass, and drain it behind the last one."""
            m.d.comb += [self.steps.eq(~drains), self.inner_end.eq(inner_end)]
            with m.If(self.steps & inner_end & ends):
                m.d.sync += drains.eq(1)

        def add(*, first, begin=FROM_ZERO, less=0, written=None, piece=0):
            """Multiply and add, if the pass has a step."""
            m.d.comb += [
                self.kind.eq(Mux(drains, HOLD, ADD)), self.is_first.eq(first),
                self.begin.eq(begin), self.is_less.eq(less), self.to_piece.eq(piece),
                self.is_written.eq(~drains & (written if written is not None else 1)),
            ]

        def turned():
            """Multiply by a root: the real part in two steps, the imaginary part in two."""
            k = count[:2]
            m.d.comb += [
                self.table.eq(COSINE), self.takes_sine.eq(k[0]), self.piece.eq(k[0] ^ k[1]),
                self.slice.eq(ROUNDED),
            ]
            return {"first": ~k[0], "begin": FROM_HALF, "less": self.is_negative ^ k.all(),
                    "piece": k[1]}

        in_four = count[2:4].any()
        root = Signal.like(self.angle)
        m.d.comb += root.eq(self.angle + self.turn)
        m.d.comb += [self.is_whole.eq(1), self.to_whole.eq(1)]
        band = Signal(range(len(part.lengths)))
        start = Signal(places)
        first_weight = Signal.like(self.weight)
        walks = Signal()
        stops = Signal()
        begins = Signal()
        m.d.comb += [
            stops.eq(walks & self.words.read_data[15]),
            begins.eq(walks & self.words.read_data[14]),
        ]
        self.band_end = Signal()
        m.d.comb += self.band_end.eq(band == len(part.lengths) - 1)
        self.gives = Signal()

        def walk(first, piece, following, and_then=()):
            """Multiply a band's powers by its weights, until one that is marked."""
            m.d.comb += [self.table.eq(WEIGHT), self.piece.eq(piece)]
            with m.If(stops):
                m.d.sync += [walks.eq(0), self.count.eq(0), *and_then]
                m.next = following
            with m.Else():
                m.d.comb += [self.kind.eq(ADD), self.is_first.eq(first)]
                m.d.sync += [
                    walks.eq(1), self.base.eq(self.following), self.weight.eq(self.weight + 1),
                ]

        def shifts(kind, number, following, and_then=()):
            """Shift the sum so many times."""
            m.d.comb += self.kind.eq(kind)
            m.d.sync += self.count.eq(self.count + 1)
            with m.If(count == number - 1):
                m.d.sync += [self.count.eq(0), *and_then]
                m.next = following

        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.is_idle.eq(1)
                with m.If(self.takes & (self.missing == 1)):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.sync += [self.base.eq(0), self.missing.eq(part.hop)]
                if part.frames:
                    with m.If(self.ends):
                        m.d.sync += self.missing.eq(part.window)
                m.next = "WINDOW"
            with m.State("WINDOW"):
                m.d.comb += [self.reads_samples.eq(1), self.table.eq(WINDOW),
                             self.slice.eq(ROUNDED)]
                steps(last[0], self.wraps)
                add(first=1, begin=FROM_HALF, piece=count[0])
                with m.If(drained):
                    m.d.sync += [
                        self.low_digit.eq(int(not part.is_odd)),
                        self.high_digit.eq(1 if part.is_odd else 2),
                        self.is_pair.eq(int(part.is_odd)), self.is_apart.eq(0),
                    ]
                    m.next = "DIVIDE"
            with m.State("DIVIDE"):
                m.d.comb += [
                    self.table.eq(CONSTANT), self.piece.eq(count[0]), self.slice.eq(ROUNDED),
                    self.constant.eq(Mux(self.is_pair | self.is_apart, HALVES, QUARTERS)),
                ]
                steps(last[0], self.wraps)
                add(first=1, begin=FROM_HALF, piece=count[0])
                with m.If(drained):
                    m.d.sync += [self.angle.eq(0), self.turn.eq(0)]
                    m.next = "TURN"
                    with m.If(self.is_apart):
                        m.d.sync += self.base.eq(1)
                        m.next = "PAIR"
            with m.State("TURN"):
                m.d.comb += [
                    self.skip.eq(self.digits),
                    self.low_bit.eq(count[2]), self.to_low.eq(count[2]),
                    self.high_bit.eq(Mux(self.is_pair, count[2], count[3])),
                    self.to_high.eq(self.high_bit),
                ]
                steps(Mux(self.is_pair, last[2], last[3]), self.wraps)
                add(**turned(), written=count[0] & in_four)
                with m.If(self.steps & last[1]):
                    m.d.sync += self.angle.eq(root)
                with m.If(self.steps & self.inner_end):
                    # a quarter of a turn over the span of a stage
                    unit = Cat(self.low_digit[bit] for bit in reversed(range(places)))
                    m.d.sync += [self.angle.eq(0),
                                 self.turn.eq((self.turn + unit)[:places - 1])]
                with m.If(drained):
                    m.next = "FOLD"
                    with m.If(self.is_pair):
                        m.next = "JOIN"
            with m.State("FOLD"):
                term, which = count[0], count[1:3]
                m.d.comb += [
                    self.skip.eq(self.digits), self.table.eq(CONSTANT), self.constant.eq(UNIT),
                    self.piece.eq(count[3]), self.slice.eq(WHOLE),
                    self.low_bit.eq(which[0]), self.high_bit.eq(term),
                    self.to_low.eq(which[1]), self.to_high.eq(which[0]),
                ]
                steps(last[3], self.wraps)
                add(first=~term, less=term & which[1], written=term, piece=count[3])
                with m.If(drained):
                    m.next = "JOIN"
            with m.State("JOIN"):
                term, which = count[0], count[1:3]
                rotates = count[3] & ~self.is_pair
                m.d.comb += [
                    self.skip.eq(self.digits), self.table.eq(CONSTANT), self.constant.eq(UNIT),
                    self.slice.eq(WHOLE), self.low_bit.eq(rotates), self.to_low.eq(rotates),
                    self.high_bit.eq(term), self.to_high.eq(which[1]),
                    self.piece.eq(which[0] ^ (term & rotates)),
                ]
                steps(Mux(self.is_pair, last[2], last[3]), self.wraps)
                add(first=~term, less=term & (which[1] ^ (rotates & which[0])), written=term,
                    piece=which[0])
                with m.If(drained):
                    m.d.sync += [
                        self.is_pair.eq(0),
                        self.is_apart.eq(self.high_digit[-1]),
                        self.low_digit.eq(self.low_digit << 2),
                        self.high_digit.eq(self.high_digit << 2),
                    ]
                    if part.is_odd:
                        with m.If(self.is_pair):
                            m.d.sync += self.low_digit.eq(2)
                    m.next = "DIVIDE"
            for state, following in (("PAIR", "TWIST"), ("HALVE", "POWER")):
                with m.State(state):
                    term, which = count[0], count[1:3]
                    is_pair = state == "PAIR"
                    less = term & (which[0] ^ which[1])
                    if not is_pair:
                        less = Mux(term, which == 2, which == 3)
                    m.d.comb += [
                        self.table.eq(CONSTANT), self.constant.eq(UNIT),
                        self.slice.eq(WHOLE if is_pair else ROUNDED),
                        self.piece.eq(which[0]), self.is_mirrored.eq(term),
                        self.is_whole.eq(int(is_pair)), self.to_whole.eq(0),
                        self.to_mirrored.eq(which[1]),
                    ]
                    steps(last[2], in_middle)
                    add(first=~term, less=less, written=term, piece=which[0])
                    with m.If(drained):
                        m.d.sync += [self.base.eq(1), self.turn.eq(1),
                                     self.angle.eq(part.points // 4 + 1)]
                        m.next = following
            with m.State("TWIST"):
                m.d.comb += [self.is_mirrored.eq(1), self.to_mirrored.eq(1)]
                steps(last[1], in_middle)
                add(**turned(), written=count[0])
                with m.If(self.steps & last[1]):
                    m.d.sync += self.angle.eq(root)
                with m.If(drained):
                    m.d.sync += self.base.eq(1)
                    m.next = "HALVE"
            with m.State("POWER"):
                self._square(m, count)
                steps(last[4], self.wraps)
                with m.If(drains):
                    m.d.comb += [self.kind.eq(HOLD), self.is_written.eq(0)]
                with m.If(drained):
                    m.d.sync += [
                        self.base.eq(first_band), start.eq(first_band),
                        self.weight.eq(layout.weights), first_weight.eq(layout.weights),
                    ]
                    m.next = "UPPER"
            with m.State("UPPER"):
                walk(~walks, 0, "JOIN_HALVES", [self.base.eq(start), self.weight.eq(first_weight)])
            with m.State("JOIN_HALVES"):
                m.d.sync += self.places_left.eq(TOP_BIT)
                shifts(SHIFT, LIMB_BITS, "LOWER")
            with m.State("LOWER"):
                walk(0, 1, "NORMALIZE", [self.base.eq(0), first_weight.eq(self.weight)])
                with m.If(begins):
                    m.d.sync += start.eq(self.base)
            with m.State("NORMALIZE"):
                shifts(NORMALIZE, TOP_BIT, "LOG")
            with m.State("LOG"):
                self._look_up(m, count)
                m.d.sync += self.count.eq(self.count + 1)
                with m.If(count == LOG_STEPS - 1):
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += self.gives.eq(1)
                m.d.sync += [self.count.eq(0), self.base.eq(start)]
                with m.If(self.o.ready):
                    m.d.sync += band.eq(Mux(self.band_end, 0, band + 1))
                    m.next = "UPPER"
                    with m.If(self.band_end):
                        m.next = "TAKE"

    def _square(self, m, count):
        """Square both pieces of a number, add them up, and write the halves of the sum."""
        m.d.comb += [self.is_power.eq(1), self.table.eq(CONSTANT)]
        # upper bits first: they are shifted before the lower ones are added
        products = {0: (0, HIGH), 1: (0, SIGN), 2: (1, HIGH), 3: (1, SIGN),
                    4 + LOW_BITS: (0, LOW), 5 + LOW_BITS: (1, LOW)}
        shifted = 6 + LOW_BITS + LOW_BITS - POWER_SHIFT
        with m.Switch(count):
            for step, (piece, by) in products.items():
                with m.Case(step):
                    m.d.comb += [
                        self.kind.eq(ADD), self.piece.eq(piece), self.by.eq(by),
                        self.is_first.eq(step == 0), self.is_less.eq(by == SIGN),
                    ]
            for step in range(4, shifted):
                if step not in products:
                    with m.Case(step):
                        m.d.comb += self.kind.eq(SHIFT)
        with m.Switch(count):
            with m.Case(shifted - 1):
                m.d.comb += [self.slice.eq(TOP), self.is_written.eq(1)]
            with m.Case(shifted):
                m.d.comb += [self.slice.eq(ROUNDED), self.to_piece.eq(1), self.is_written.eq(1)]

    def _look_up(self, m, count):
        """Find the logarithm of the sum, and the code of it."""
        m.d.comb += [self.table.eq(CONSTANT), self.constant.eq(ZERO)]
        with m.If(count == 3):
            m.d.sync += self.segment.eq(self.sum[TOP_BIT - SEGMENT_BITS:TOP_BIT])
        with m.Switch(count):
            with m.Case(0):  # the mantissa
                m.d.comb += [self.slice.eq(TOP), self.is_written.eq(1)]
            with m.Case(1):  # a one
                m.d.comb += [
                    self.kind.eq(ADD), self.is_first.eq(1), self.begin.eq(FROM_HALF),
                    self.slice.eq(WHOLE), self.to_piece.eq(1), self.is_written.eq(1),
                ]
            with m.Case(6):
                m.d.comb += [
                    self.kind.eq(ADD), self.is_first.eq(1), self.piece.eq(1),
                    self.table.eq(LOGARITHM), self.takes_base.eq(1),
                ]
            with m.Case(*range(7, 7 + SLOPE_BITS)):
                m.d.comb += self.kind.eq(SHIFT)
            with m.Case(16):
                m.d.comb += [self.kind.eq(ADD), self.table.eq(LOGARITHM)]
            with m.Case(*range(17, 24)):
                m.d.comb += self.kind.eq(SHIFT)
            with m.Case(24):  # the logarithm below 1
                m.d.comb += [self.slice.eq(ROUNDED), self.is_written.eq(1)]
            with m.Case(25):  # the places above
                m.d.comb += [
                    self.kind.eq(ADD), self.is_first.eq(1), self.begin.eq(FROM_PLACES),
                    self.slice.eq(ROUNDED), self.to_piece.eq(1), self.is_written.eq(1),
                ]
            with m.Case(30, 31):
                m.d.comb += [
                    self.kind.eq(ADD), self.is_first.eq(~count[0]), self.begin.eq(FROM_BIAS),
                    self.constant.eq(MULT), self.piece.eq(count[0]),
                ]

    def _give(self, m):
        """Give the code of the sum, within its limits."""
        requant = self.requant
        # what no logarithm reaches needs no bits
        highest = ((TOP_BIT + 1) << LOG_BITS) * requant.mult + self.bias
        bits = signed_bits(min(self.bias, highest), max(self.bias, highest)) - requant.shift
        code = Signal(signed(max(bits, 1)))
        m.d.comb += code.eq(self.sum >> requant.shift)
        limited = Mux(code < requant.lo, requant.lo, Mux(code > requant.hi, requant.hi, code))
        m.d.comb += [
            self.o.valid.eq(self.gives),
            self.o.p.data[0].eq(limited),
            self.o.p.last.eq(self.ends & self.band_end),
        ]
