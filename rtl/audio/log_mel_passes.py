"""Passes of log-mel features: what is read, multiplied, added and written in each cycle."""

from amaranth import *

from nnef_hw.arithmetic.audio.logarithm import LOG_BITS, SEGMENT_BITS, SLOPE_BITS
from nnef_hw.parts.audio.log_mel import (
    DRAIN,
    JOIN_STEPS,
    LOG_STEPS,
    NORMALIZE_STEPS,
    ROOT_BEGIN,
    TOP_BIT,
    WIDE_JOINS,
    WIDE_NORMALIZES,
)
from nnef_hw.rtl.audio.log_mel_signals import (
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
    last = [Signal(name=f"is_end{bits}") for bits in (1, 2, 3, 4)]
    for bits, flag in enumerate(last, 1):
        m.d.comb += flag.eq(count[:bits].all())
    # a sum of two numbers is written, then their difference: the second one is subtracted twice
    is_later, is_difference = count[:2].any(), count[1]
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
    has_floor = w.requant.floor > 0

    def steps(inner_end, ends):
        """Count the steps of a pass, and drain it behind the last one."""
        m.d.comb += [w.steps.eq(~drains), w.inner_end.eq(inner_end)]
        with m.If(w.steps & inner_end & ends):
            m.d.sync += drains.eq(1)

    def add(*, first, begin=First.ZERO, less=0, reads=1, written=1, piece=0):
        """Multiply and add, if the pass has a step."""
        m.d.comb += [
            w.kind.eq(Mux(drains, Operation.HOLD, Operation.ADD)), w.is_first.eq(first),
            w.begin.eq(begin), w.is_less.eq(less), w.to_piece.eq(piece),
            w.reads.eq(~drains & reads), w.is_written.eq(~drains & written),
        ]

    def combine(*, less, piece):
        """Write the sum of two numbers, or their difference if it is ``less``, then the other."""
        m.d.comb += [
            w.in_three.eq(1), w.table.eq(Table.CONSTANT), w.slice.eq(Written.WHOLE),
            w.constant.eq(Mux(is_difference, Constant.TWICE, Constant.UNIT)),
        ]
        add(first=~is_later, less=is_later & (less ^ is_difference), reads=~is_difference,
            written=is_later, piece=piece)

    def turned():
        """Multiply by a root: the real part in two steps, the imaginary part in two."""
        k = count[:2]
        m.d.comb += [
            w.table.eq(Table.COSINE), w.takes_sine.eq(k[0]), w.piece.eq(k[0] ^ k[1]),
            w.slice.eq(Written.ROUNDED),
        ]
        # the third step multiplies what the second one has read
        return {"first": ~k[0], "begin": First.HALF, "less": w.is_negative ^ k.all(),
                "reads": k != 2, "written": k[0], "piece": k[1]}

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
            m.d.comb += [w.kind.eq(Operation.ADD), w.is_first.eq(first), w.reads.eq(1)]
            m.d.sync += [
                walks.eq(1), w.base.eq(w.following), w.weight.eq(w.weight + 1),
            ]

    def shifts(kind, first, wide, number, following, begin=First.SHIFTED):
        """Shift the sum by one place in each step, but by many in the first ones."""
        m.d.comb += [w.kind.eq(kind), w.table.eq(Table.CONSTANT), w.constant.eq(Constant.ZERO)]
        with m.If(count < wide):
            m.d.comb += [w.kind.eq(first), w.is_first.eq(1), w.begin.eq(begin)]
        m.d.sync += w.count.eq(w.count + 1)
        with m.If(count == number - 1):
            m.d.sync += w.count.eq(0)
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
            m.next = "WINDOW"
        with m.State("WINDOW"):
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
                m.d.sync += [w.angle.eq(0), w.turn.eq(0), w.count.eq(4)]
                m.next = "TURN"
                with m.If(w.is_apart):
                    m.d.sync += [w.base.eq(1), w.count.eq(0)]
                    m.next = "PAIR"
        with m.State("TURN"):
            m.d.comb += [
                w.skip.eq(w.digits), w.in_turn.eq(1),
                w.low_bit.eq(count[2]), w.to_low.eq(count[2]),
                w.high_bit.eq(Mux(w.is_pair, count[2], count[3])),
                w.to_high.eq(w.high_bit),
            ]
            steps(Mux(w.is_pair, last[2], last[3]), w.wraps)
            add(**turned())
            with m.If(w.steps & last[1]):
                m.d.sync += w.angle.eq(root)
            with m.If(w.steps & w.inner_end):
                # a quarter of a turn over the span of a stage
                unit = Cat(w.low_digit[bit] for bit in reversed(range(places)))
                following = (w.turn + unit)[:places - 1]
                m.d.sync += [w.angle.eq(following), w.turn.eq(following)]
            with m.If(drained):
                m.d.sync += w.count.eq(0)
                m.next = "FOLD"
                with m.If(w.is_pair):
                    m.next = "JOIN"
        with m.State("FOLD"):
            which = count[2]
            m.d.comb += [
                w.skip.eq(w.digits), w.piece.eq(count[3]),
                w.low_bit.eq(which), w.high_bit.eq(is_later),
                w.to_low.eq(is_difference), w.to_high.eq(which),
            ]
            steps(count[1:4].all(), w.wraps)
            combine(less=0, piece=count[3])
            with m.If(drained):
                m.next = "JOIN"
        with m.State("JOIN"):
            piece, rotates = count[2], count[3] & ~w.is_pair
            m.d.comb += [
                w.skip.eq(w.digits), w.low_bit.eq(rotates), w.to_low.eq(rotates),
                w.high_bit.eq(is_later), w.to_high.eq(is_difference),
                w.piece.eq(piece ^ (is_later & rotates)),
            ]
            steps(count[1:3].all() & (count[3] | w.is_pair), w.wraps)
            combine(less=rotates & piece, piece=piece)
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
        with m.State("PAIR"):
            piece = count[2]
            m.d.comb += [
                w.piece.eq(piece), w.is_mirrored.eq(is_later), w.to_whole.eq(0),
                w.to_mirrored.eq(is_difference),
            ]
            steps(count[1:3].all(), in_middle)
            combine(less=piece, piece=piece)
            with m.If(drained):
                m.d.sync += [w.base.eq(1), w.turn.eq(1), w.angle.eq(part.points // 4 + 1)]
                m.next = "TWIST"
        with m.State("TWIST"):
            m.d.comb += [w.is_mirrored.eq(1), w.to_mirrored.eq(1)]
            steps(last[1], in_middle)
            add(**turned())
            with m.If(w.steps & last[1]):
                m.d.sync += w.angle.eq(root)
            with m.If(drained):
                m.d.sync += w.base.eq(1)
                m.next = "HALVE"
        with m.State("HALVE"):
            # half of the sum of two numbers, then of their difference: one is subtracted twice
            piece = count[2]
            m.d.comb += [
                w.table.eq(Table.CONSTANT), w.constant.eq(Constant.TWICE),
                w.slice.eq(Written.ROUNDED), w.piece.eq(piece),
                w.is_mirrored.eq(is_later ^ piece), w.is_whole.eq(0), w.to_whole.eq(0),
                w.to_mirrored.eq(is_difference),
            ]
            steps(last[2], in_middle)
            add(first=~is_later, less=is_difference, reads=~is_difference, written=count[0],
                piece=piece)
            with m.If(drained):
                m.d.sync += w.base.eq(1)
                m.next = "POWER"
        with m.State("POWER"):
            _square(m, w, count)
            steps(count[:5].all() if part.magnitudes else count[3], w.wraps)
            with m.If(drains):
                m.d.comb += [w.kind.eq(Operation.HOLD), w.reads.eq(0), w.is_written.eq(0)]
            with m.If(drained):
                m.d.sync += [
                    w.base.eq(first_band), start.eq(first_band),
                    w.weight.eq(layout.weights), first_weight.eq(layout.weights),
                ]
                m.next = "UPPER"
        with m.State("UPPER"):
            m.d.comb += w.begin.eq(First.FLOOR if has_floor else First.ZERO)
            walk(~walks, 0, "JOIN_HALVES", [w.base.eq(start), w.weight.eq(first_weight)])
        with m.State("JOIN_HALVES"):
            m.d.sync += w.places_left.eq(TOP_BIT)
            shifts(Operation.SHIFT, Operation.ADD, WIDE_JOINS, JOIN_STEPS, "LOWER",
                   begin=First.JOINED if has_floor else First.SHIFTED)
        with m.State("LOWER"):
            walk(0, 1, "NORMALIZE", [w.base.eq(0), first_weight.eq(w.weight)])
            with m.If(begins):
                m.d.sync += start.eq(w.base)
        with m.State("NORMALIZE"):
            shifts(Operation.NORMALIZE, Operation.NORMALIZE, WIDE_NORMALIZES, NORMALIZE_STEPS,
                   "LOG")
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
    """Square both pieces of a number, add them up, and write the halves of the sum, or its root."""
    m.d.comb += [w.is_power.eq(1), w.table.eq(Table.CONSTANT)]
    # upper bits first: they are shifted before the lower ones are added
    products = enumerate([(0, By.HIGH), (0, By.SIGN), (1, By.HIGH), (1, By.SIGN), (1, By.LOW),
                          (0, By.LOW)])
    before = None
    with m.Switch(count):
        for step, (piece, by) in products:
            with m.Case(step):
                m.d.comb += [
                    w.kind.eq(Operation.ADD), w.piece.eq(piece), w.by.eq(by),
                    w.reads.eq(piece != before), w.is_less.eq(by == By.SIGN),
                    w.is_first.eq(step in {0, 4}), w.begin.eq(First.SHIFTED if step else 0),
                ]
            before = piece
        last = w.part.bin_steps - 1
        if w.part.magnitudes:
            with m.Case(ROOT_BEGIN):
                m.d.comb += w.takes_root.eq(1)
            with m.Case(last - 1):
                m.d.comb += [w.slice.eq(Written.TOP), w.is_written.eq(1)]
        else:
            with m.Case(last - 2):
                m.d.comb += w.kind.eq(Operation.SHIFT)
            with m.Case(last - 1):
                m.d.comb += [
                    w.kind.eq(Operation.SHIFT), w.slice.eq(Written.TOP), w.is_written.eq(1),
                ]
        with m.Case(last):
            m.d.comb += [w.slice.eq(Written.ROUNDED), w.to_piece.eq(1), w.is_written.eq(1)]


def _look_up(m, w, count):
    """Find the logarithm of the sum, and the code of it."""
    m.d.comb += [w.table.eq(Table.CONSTANT), w.constant.eq(Constant.ZERO)]
    with m.If(count == 3):
        m.d.sync += w.segment.eq(w.sum[TOP_BIT - SEGMENT_BITS:TOP_BIT])
    slope, fraction = 7 + SLOPE_BITS + 1, 7 + LOG_BITS + 1
    with m.Switch(count):
        with m.Case(0):  # the mantissa
            m.d.comb += [w.slice.eq(Written.TOP), w.is_written.eq(1)]
        with m.Case(1):  # a one
            m.d.comb += [
                w.kind.eq(Operation.ADD), w.is_first.eq(1), w.begin.eq(First.HALF),
            ]
        with m.Case(2):
            m.d.comb += [
                w.kind.eq(Operation.SHIFT), w.slice.eq(Written.ROUNDED), w.to_piece.eq(1),
                w.is_written.eq(1),
            ]
        with m.Case(7):
            m.d.comb += [
                w.kind.eq(Operation.ADD), w.is_first.eq(1), w.piece.eq(1), w.reads.eq(1),
                w.table.eq(Table.LOGARITHM), w.takes_base.eq(1),
            ]
        with m.Case(*range(8, slope)):
            m.d.comb += w.kind.eq(Operation.SHIFT)
        with m.Case(slope):
            m.d.comb += [w.kind.eq(Operation.ADD), w.table.eq(Table.LOGARITHM), w.reads.eq(1)]
        with m.Case(*range(slope + 1, fraction)):
            m.d.comb += w.kind.eq(Operation.SHIFT)
        with m.Case(fraction):  # the logarithm below 1
            m.d.comb += [
                w.kind.eq(Operation.SHIFT), w.slice.eq(Written.ROUNDED), w.is_written.eq(1),
            ]
        with m.Case(fraction + 1):  # the places above
            m.d.comb += [
                w.kind.eq(Operation.ADD), w.is_first.eq(1), w.begin.eq(First.PLACES),
                w.slice.eq(Written.ROUNDED), w.to_piece.eq(1), w.is_written.eq(1),
            ]
        with m.Case(LOG_STEPS - 4, LOG_STEPS - 3):
            m.d.comb += [
                w.kind.eq(Operation.ADD), w.is_first.eq(count[0]), w.begin.eq(First.BIAS),
                w.constant.eq(Constant.MULT), w.piece.eq(~count[0]), w.reads.eq(1),
            ]
