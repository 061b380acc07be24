"""Passes of log-mel features: what is read, multiplied, added and written in each cycle."""

from amaranth import *

from nnef_hw.arithmetic.audio.log_mel import POWER_SHIFT
from nnef_hw.arithmetic.audio.logarithm import SEGMENT_BITS, SLOPE_BITS
from nnef_hw.parts.functions.log_mel import DRAIN, LIMB_BITS, LOG_STEPS, TOP_BIT
from nnef_hw.rtl.functions.log_mel_signals import (
    LOW_BITS,
    By,
    Constant,
    First,
    Operation,
    Table,
    Written,
)

__all__ = ["run_passes"]


def run_passes(m, w, leaves):
    """Go from pass to pass: what is read, multiplied, added and written in each cycle."""
    part, layout, places = w.part, w.layout, w.places
    count = w.count
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
    first_band = w.requant.bank.filters[0].first
    in_middle = w.base[-1]

    def steps(inner_end, ends):
        """Count the steps of a pass, and drain it behind the last one."""
        m.d.comb += [w.steps.eq(~drains), w.inner_end.eq(inner_end)]
        with m.If(w.steps & inner_end & ends):
            m.d.sync += drains.eq(1)

    def add(*, first, begin=First.ZERO, less=0, written=None, piece=0):
        """Multiply and add, if the pass has a step."""
        m.d.comb += [
            w.kind.eq(Mux(drains, Operation.HOLD, Operation.ADD)), w.is_first.eq(first),
            w.begin.eq(begin), w.is_less.eq(less), w.to_piece.eq(piece),
            w.is_written.eq(~drains & (written if written is not None else 1)),
        ]

    def turned():
        """Multiply by a root: the real part in two steps, the imaginary part in two."""
        k = count[:2]
        m.d.comb += [
            w.table.eq(Table.COSINE), w.takes_sine.eq(k[0]), w.piece.eq(k[0] ^ k[1]),
            w.slice.eq(Written.ROUNDED),
        ]
        return {"first": ~k[0], "begin": First.HALF, "less": w.is_negative ^ k.all(),
                "piece": k[1]}

    in_four = count[2:4].any()
    root = Signal.like(w.angle)
    m.d.comb += root.eq(w.angle + w.turn)
    m.d.comb += [w.is_whole.eq(1), w.to_whole.eq(1)]
    band = Signal(range(len(part.lengths)))
    start = Signal(places)
    first_weight = Signal.like(w.weight)
    walks = Signal()
    stops = Signal()
    begins = Signal()
    m.d.comb += [
        stops.eq(walks & w.words.read_data[15]),
        begins.eq(walks & w.words.read_data[14]),
    ]
    m.d.comb += w.band_end.eq(band == len(part.lengths) - 1)

    def walk(first, piece, following, and_then=()):
        """Multiply a band's powers by its weights, until one that is marked."""
        m.d.comb += [w.table.eq(Table.WEIGHT), w.piece.eq(piece)]
        with m.If(stops):
            m.d.sync += [walks.eq(0), w.count.eq(0), *and_then]
            m.next = following
        with m.Else():
            m.d.comb += [w.kind.eq(Operation.ADD), w.is_first.eq(first)]
            m.d.sync += [
                walks.eq(1), w.base.eq(w.following), w.weight.eq(w.weight + 1),
            ]

    def shifts(kind, number, following, and_then=()):
        """Shift the sum so many times."""
        m.d.comb += w.kind.eq(kind)
        m.d.sync += w.count.eq(w.count + 1)
        with m.If(count == number - 1):
            m.d.sync += [w.count.eq(0), *and_then]
            m.next = following

    with m.FSM():
        with m.State("TAKE"):
            m.d.comb += w.is_idle.eq(1)
            with m.If(w.takes & (w.missing == 1)):
                m.next = "BEGIN"
        with m.State("BEGIN"):
            m.d.sync += [w.base.eq(0), w.missing.eq(part.hop)]
            if part.frames:
                with m.If(w.ends):
                    m.d.sync += w.missing.eq(part.window)
            m.next = "Table.WINDOW"
        with m.State("Table.WINDOW"):
            m.d.comb += [w.reads_samples.eq(1), w.table.eq(Table.WINDOW),
                         w.slice.eq(Written.ROUNDED)]
            steps(last[0], w.wraps)
            add(first=1, begin=First.HALF, piece=count[0])
            with m.If(drained):
                m.d.sync += [
                    w.low_digit.eq(int(not part.is_odd)),
                    w.high_digit.eq(1 if part.is_odd else 2),
                    w.is_pair.eq(int(part.is_odd)), w.is_apart.eq(0),
                ]
                m.next = "DIVIDE"
        with m.State("DIVIDE"):
            m.d.comb += [
                w.table.eq(Table.CONSTANT), w.piece.eq(count[0]), w.slice.eq(Written.ROUNDED),
                w.constant.eq(Mux(w.is_pair | w.is_apart, Constant.HALVES, Constant.QUARTERS)),
            ]
            steps(last[0], w.wraps)
            add(first=1, begin=First.HALF, piece=count[0])
            with m.If(drained):
                m.d.sync += [w.angle.eq(0), w.turn.eq(0)]
                m.next = "TURN"
                with m.If(w.is_apart):
                    m.d.sync += w.base.eq(1)
                    m.next = "PAIR"
        with m.State("TURN"):
            m.d.comb += [
                w.skip.eq(w.digits),
                w.low_bit.eq(count[2]), w.to_low.eq(count[2]),
                w.high_bit.eq(Mux(w.is_pair, count[2], count[3])),
                w.to_high.eq(w.high_bit),
            ]
            steps(Mux(w.is_pair, last[2], last[3]), w.wraps)
            add(**turned(), written=count[0] & in_four)
            with m.If(w.steps & last[1]):
                m.d.sync += w.angle.eq(root)
            with m.If(w.steps & w.inner_end):
                # a quarter of a turn over the span of a stage
                unit = Cat(w.low_digit[bit] for bit in reversed(range(places)))
                m.d.sync += [w.angle.eq(0),
                             w.turn.eq((w.turn + unit)[:places - 1])]
            with m.If(drained):
                m.next = "FOLD"
                with m.If(w.is_pair):
                    m.next = "JOIN"
        with m.State("FOLD"):
            term, which = count[0], count[1:3]
            m.d.comb += [
                w.skip.eq(w.digits), w.table.eq(Table.CONSTANT), w.constant.eq(Constant.UNIT),
                w.piece.eq(count[3]), w.slice.eq(Written.WHOLE),
                w.low_bit.eq(which[0]), w.high_bit.eq(term),
                w.to_low.eq(which[1]), w.to_high.eq(which[0]),
            ]
            steps(last[3], w.wraps)
            add(first=~term, less=term & which[1], written=term, piece=count[3])
            with m.If(drained):
                m.next = "JOIN"
        with m.State("JOIN"):
            term, which = count[0], count[1:3]
            rotates = count[3] & ~w.is_pair
            m.d.comb += [
                w.skip.eq(w.digits), w.table.eq(Table.CONSTANT), w.constant.eq(Constant.UNIT),
                w.slice.eq(Written.WHOLE), w.low_bit.eq(rotates), w.to_low.eq(rotates),
                w.high_bit.eq(term), w.to_high.eq(which[1]),
                w.piece.eq(which[0] ^ (term & rotates)),
            ]
            steps(Mux(w.is_pair, last[2], last[3]), w.wraps)
            add(first=~term, less=term & (which[1] ^ (rotates & which[0])), written=term,
                piece=which[0])
            with m.If(drained):
                m.d.sync += [
                    w.is_pair.eq(0),
                    w.is_apart.eq(w.high_digit[-1]),
                    w.low_digit.eq(w.low_digit << 2),
                    w.high_digit.eq(w.high_digit << 2),
                ]
                if part.is_odd:
                    with m.If(w.is_pair):
                        m.d.sync += w.low_digit.eq(2)
                m.next = "DIVIDE"
        for state, following in (("PAIR", "TWIST"), ("HALVE", "POWER")):
            with m.State(state):
                term, which = count[0], count[1:3]
                is_pair = state == "PAIR"
                less = term & (which[0] ^ which[1])
                if not is_pair:
                    less = Mux(term, which == 2, which == 3)
                m.d.comb += [
                    w.table.eq(Table.CONSTANT), w.constant.eq(Constant.UNIT),
                    w.slice.eq(Written.WHOLE if is_pair else Written.ROUNDED),
                    w.piece.eq(which[0]), w.is_mirrored.eq(term),
                    w.is_whole.eq(int(is_pair)), w.to_whole.eq(0),
                    w.to_mirrored.eq(which[1]),
                ]
                steps(last[2], in_middle)
                add(first=~term, less=less, written=term, piece=which[0])
                with m.If(drained):
                    m.d.sync += [w.base.eq(1), w.turn.eq(1),
                                 w.angle.eq(part.points // 4 + 1)]
                    m.next = following
        with m.State("TWIST"):
            m.d.comb += [w.is_mirrored.eq(1), w.to_mirrored.eq(1)]
            steps(last[1], in_middle)
            add(**turned(), written=count[0])
            with m.If(w.steps & last[1]):
                m.d.sync += w.angle.eq(root)
            with m.If(drained):
                m.d.sync += w.base.eq(1)
                m.next = "HALVE"
        with m.State("POWER"):
            _square(m, w, count)
            steps(last[4], w.wraps)
            with m.If(drains):
                m.d.comb += [w.kind.eq(Operation.HOLD), w.is_written.eq(0)]
            with m.If(drained):
                m.d.sync += [
                    w.base.eq(first_band), start.eq(first_band),
                    w.weight.eq(layout.weights), first_weight.eq(layout.weights),
                ]
                m.next = "UPPER"
        with m.State("UPPER"):
            walk(~walks, 0, "JOIN_HALVES", [w.base.eq(start), w.weight.eq(first_weight)])
        with m.State("JOIN_HALVES"):
            m.d.sync += w.places_left.eq(TOP_BIT)
            shifts(Operation.SHIFT, LIMB_BITS, "LOWER")
        with m.State("LOWER"):
            walk(0, 1, "Operation.NORMALIZE", [w.base.eq(0), first_weight.eq(w.weight)])
            with m.If(begins):
                m.d.sync += start.eq(w.base)
        with m.State("Operation.NORMALIZE"):
            shifts(Operation.NORMALIZE, TOP_BIT, "LOG")
        with m.State("LOG"):
            _look_up(m, w, count)
            m.d.sync += w.count.eq(w.count + 1)
            with m.If(count == LOG_STEPS - 1):
                m.next = "GIVE"
        with m.State("GIVE"):
            m.d.comb += w.gives.eq(1)
            m.d.sync += [w.count.eq(0), w.base.eq(start)]
            with m.If(leaves):
                m.d.sync += band.eq(Mux(w.band_end, 0, band + 1))
                m.next = "UPPER"
                with m.If(w.band_end):
                    m.next = "TAKE"


def _square(m, w, count):
    """Square both pieces of a number, add them up, and write the halves of the sum."""
    m.d.comb += [w.is_power.eq(1), w.table.eq(Table.CONSTANT)]
    # upper bits first: they are shifted before the lower ones are added
    products = {0: (0, By.HIGH), 1: (0, By.SIGN), 2: (1, By.HIGH), 3: (1, By.SIGN),
                4 + LOW_BITS: (0, By.LOW), 5 + LOW_BITS: (1, By.LOW)}
    shifted = 6 + LOW_BITS + LOW_BITS - POWER_SHIFT
    with m.Switch(count):
        for step, (piece, by) in products.items():
            with m.Case(step):
                m.d.comb += [
                    w.kind.eq(Operation.ADD), w.piece.eq(piece), w.by.eq(by),
                    w.is_first.eq(step == 0), w.is_less.eq(by == By.SIGN),
                ]
        for step in range(4, shifted):
            if step not in products:
                with m.Case(step):
                    m.d.comb += w.kind.eq(Operation.SHIFT)
    with m.Switch(count):
        with m.Case(shifted - 1):
            m.d.comb += [w.slice.eq(Written.TOP), w.is_written.eq(1)]
        with m.Case(shifted):
            m.d.comb += [w.slice.eq(Written.ROUNDED), w.to_piece.eq(1), w.is_written.eq(1)]


def _look_up(m, w, count):
    """Find the logarithm of the sum, and the code of it."""
    m.d.comb += [w.table.eq(Table.CONSTANT), w.constant.eq(Constant.ZERO)]
    with m.If(count == 3):
        m.d.sync += w.segment.eq(w.sum[TOP_BIT - SEGMENT_BITS:TOP_BIT])
    with m.Switch(count):
        with m.Case(0):  # the mantissa
            m.d.comb += [w.slice.eq(Written.TOP), w.is_written.eq(1)]
        with m.Case(1):  # a one
            m.d.comb += [
                w.kind.eq(Operation.ADD), w.is_first.eq(1), w.begin.eq(First.HALF),
                w.slice.eq(Written.WHOLE), w.to_piece.eq(1), w.is_written.eq(1),
            ]
        with m.Case(6):
            m.d.comb += [
                w.kind.eq(Operation.ADD), w.is_first.eq(1), w.piece.eq(1),
                w.table.eq(Table.LOGARITHM), w.takes_base.eq(1),
            ]
        with m.Case(*range(7, 7 + SLOPE_BITS)):
            m.d.comb += w.kind.eq(Operation.SHIFT)
        with m.Case(16):
            m.d.comb += [w.kind.eq(Operation.ADD), w.table.eq(Table.LOGARITHM)]
        with m.Case(*range(17, 24)):
            m.d.comb += w.kind.eq(Operation.SHIFT)
        with m.Case(24):  # the logarithm below 1
            m.d.comb += [w.slice.eq(Written.ROUNDED), w.is_written.eq(1)]
        with m.Case(25):  # the places above
            m.d.comb += [
                w.kind.eq(Operation.ADD), w.is_first.eq(1), w.begin.eq(First.PLACES),
                w.slice.eq(Written.ROUNDED), w.to_piece.eq(1), w.is_written.eq(1),
            ]
        with m.Case(30, 31):
            m.d.comb += [
                w.kind.eq(Operation.ADD), w.is_first.eq(~count[0]), w.begin.eq(First.BIAS),
                w.constant.eq(Constant.MULT), w.piece.eq(count[0]),
            ]

