"""Bilinear interpolation: codes at places between the pixels of an image."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.arithmetic.interpolation import FRACTION_BITS
from nnef_hw.parts.images.interpolate import LINES, SUM_STAGES, TAPS
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import lut_product
from nnef_hw.rtl.streams.stream import code_streams

__all__ = ["Interpolate"]

ONE = 1 << FRACTION_BITS
SUM_BITS = 2 * FRACTION_BITS


class Axis:
    """Walks over the places of an axis: the element before each, and the fraction behind that.

    Attributes
    ----------
    place, fraction : Signal
        The first of the two elements; the second one's weight, of 1024.
    has_second : Value
        Whether the second element is another one.
    advance : Signal
        How many elements behind the first one the next place's first one is; that of the first
        place of the next image, at the last place.
    first : int
        The element before the first place.
    final : Value
        Whether this is the last place.
    """

    def __init__(self, m, places, name):
        self.places = places
        whole, self._part = divmod(places.step, ONE)
        is_before = places.start < 0
        self.first = max(places.start // ONE, 0)
        self.place = Signal(range(places.extent), init=self.first, name=f"{name}_place")
        self.fraction = Signal(FRACTION_BITS, init=places.start % ONE, name=f"{name}_fraction")
        self._index = Signal(range(places.count), name=f"{name}_index")
        self._before_first = Signal(init=is_before, name=f"{name}_before_first")
        most = max(whole + 1, places.extent + self.first)
        self.advance = Signal(range(most + 1), name=f"{name}_advance")
        self.final = self._index == places.count - 1
        inside = ~self._before_first & (self.place != places.extent - 1)
        self.has_second = inside & self.fraction.any()
        self._sum = Signal(FRACTION_BITS + 1, name=f"{name}_sum")
        self._whole = Signal(range(whole + 2), name=f"{name}_whole")
        m.d.comb += [
            self._sum.eq(self.fraction + self._part),
            self._whole.eq(whole + self._sum[-1]),
        ]
        with m.If(self.final):
            m.d.comb += self.advance.eq(places.extent + self.first - self.place)
        with m.Elif(self._before_first & self._whole.any()):
            m.d.comb += self.advance.eq(self._whole - 1)
        with m.Elif(~self._before_first):
            m.d.comb += self.advance.eq(self._whole)

    def step(self, m):
        """Go to the next place, or back to the first one."""
        m.d.sync += [
            self._index.eq(self._index + 1),
            self.place.eq(self.place + self.advance),
            self.fraction.eq(self._sum),
            self._before_first.eq(self._before_first & ~self._whole.any()),
        ]
        with m.If(self.final):
            m.d.sync += [
                self._index.eq(0),
                self.place.eq(self.first),
                self.fraction.eq(self.fraction.init),
                self._before_first.eq(self._before_first.init),
            ]


class Interpolate(wiring.Component):
    """Interpolate between codes.

    Golden model: :func:`nnef_hw.arithmetic.interpolation.interpolate_codes`.

    Four codes of a result are read one after the other, each times the weight of its row and that
    of its column; the sum is rounded once, halves away from 0. A stage waits only if the next one
    does; a sum that is not complete waits for nothing. Rows of the image make room in the cycle
    after the last code of the last row of results that needs them was read.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    unproved = "the solver finds no invariant in 150 s; tests simulate it under stalls"

    def __init__(self, part: parts.Interpolate):
        self.part = part
        super().__init__(code_streams(part))

    def elaborate(self, platform):
        m = Module()
        m.submodules.storage = storage = TiledMemory(self.part.memory, writable=True)
        # Whole rows in memory, less those that go without having come.
        rows = Axis(m, self.part.rows, "row")
        most = 2 * self.part.rows.extent
        stored = Signal(range(-most, LINES + 1), init=-rows.first)
        row_written, freed = Signal(), Signal(range(most + 1))
        self._write(m, storage, stored, row_written)
        m.d.sync += stored.eq(stored + row_written - freed)
        self._read(m, platform, storage, rows, stored, freed)
        return m

    def _write(self, m, storage, stored, row_written):
        accept, place = Signal(), Signal(range(self.part.line))
        newest = Signal(range(self.part.memory.depth))
        m.d.comb += [
            self.i.ready.eq(stored != LINES),
            accept.eq(self.i.valid & self.i.ready),
            row_written.eq(accept & (place == self.part.line - 1)),
            storage.write_address.eq(newest),
            storage.write_enable.eq(accept),
            storage.write_data.eq(self.i.payload.data),
        ]
        with m.If(accept):
            m.d.sync += [
                place.eq(Mux(row_written, 0, place + 1)),
                newest.eq(Mux(newest == self.part.memory.depth - 1, 0, newest + 1)),
            ]

    def _read(self, m, platform, storage, rows, stored, freed):
        """Read the codes of every result, and add them up."""
        part = self.part
        columns = Axis(m, part.columns, "column")
        tap, channel = Signal(range(TAPS)), Signal(range(part.channels))
        slot = Signal(range(LINES), init=rows.first % LINES)
        begin = columns.first * part.channels
        pixel, inner = (Signal(range(part.line), init=begin, name=name)
                        for name in ("pixel", "inner"))
        enables = [Signal(name=f"enable{n}") for n in range(SUM_STAGES)]
        present, read = Signal(), Signal()
        ends = {name: Signal(name=f"{name}_end") for name in ("result", "pixel", "row", "frame")}
        m.d.comb += [
            present.eq(stored > rows.has_second),
            read.eq(present & enables[0]),
            ends["result"].eq(tap == TAPS - 1),
            ends["pixel"].eq(ends["result"] & (channel == part.channels - 1)),
            ends["row"].eq(ends["pixel"] & columns.final),
            ends["frame"].eq(ends["row"] & rows.final),
            freed.eq(Mux(read & ends["row"], rows.advance, 0)),
        ]
        following = Signal.like(pixel)
        m.d.comb += following.eq(Mux(columns.final, begin, pixel + columns.advance * part.channels))
        with m.If(read):
            m.d.sync += tap.eq(tap + 1)
            with m.If(ends["result"]):
                m.d.sync += [channel.eq(channel + 1), inner.eq(inner + 1)]
            with m.If(ends["pixel"]):
                m.d.sync += [channel.eq(0), pixel.eq(following), inner.eq(following)]
                columns.step(m)
            with m.If(ends["row"]):
                m.d.sync += slot.eq(slot + rows.advance)
                rows.step(m)
        line = Signal(range(LINES))
        right = Mux(tap[0] & columns.has_second, part.channels, 0)
        m.d.comb += [
            line.eq(slot + (tap[1] & rows.has_second)),
            storage.read_address.eq(line * part.line + inner + right),
            storage.read_enable.eq(read),
        ]
        weights = [
            Mux(second, axis.fraction, ONE - axis.fraction)[:FRACTION_BITS + 1]
            for second, axis in ((tap[1], rows), (tap[0], columns))
        ]
        self._sum(m, platform, storage, present, enables, weights, ends, tap)

    def _sum(self, m, platform, storage, present, enables, weights, ends, tap):
        """Weigh the codes that were read, and add up those of a result."""
        part = self.part
        valid = [Signal(name=f"valid{n}") for n in range(SUM_STAGES)]
        flags = [Signal(3, name=f"flags{n}", reset_less=True) for n in range(SUM_STAGES)]
        complete, room = Signal(), Signal()
        m.d.comb += [
            room.eq(~self.o.valid | self.o.ready),
            complete.eq(valid[-1] & flags[-1][1]),
            enables[-1].eq(~complete | room),
        ]
        for n in range(SUM_STAGES - 1):
            m.d.comb += enables[n].eq(~valid[n] | enables[n + 1])
        arriving = Cat(tap == 0, ends["result"], ends["frame"])
        for n, enable in enumerate(enables):
            with m.If(enable):
                m.d.sync += [
                    valid[n].eq(valid[n - 1] if n else present),
                    flags[n].eq(flags[n - 1] if n else arriving),
                ]

        def stage(n, value, name):
            register = Signal.like(value, name=name, reset_less=True)
            with m.If(enables[n]):
                m.d.sync += register.eq(value)
            return register

        row, column = (
            stage(0, weight, name) for weight, name in zip(weights, ("row_weight", "column_weight"),
                                                           strict=True))
        code = storage.read_data if not part.signed else storage.read_data.as_signed()
        code = stage(1, code, "code1")
        row = Cat(stage(1, row, "row_weight1"), Const(0)).as_signed()
        column = stage(1, column, "column_weight1")
        split = FRACTION_BITS // 2
        halves = [
            stage(2, lut_product(m, platform, half, row, name=f"{name}_weights"), f"{name}_weight")
            for name, half in (("low", column[:split]), ("high", column[split:]))
        ]
        code = stage(2, code, "code2")
        weight = stage(3, (halves[0] + (halves[1] << split))[:SUM_BITS + 1], "weight")
        code = stage(3, code, "code3")
        split = max(1, part.bits // 2)
        upper = code[split:].as_signed() if part.signed else code[split:]
        operand = Cat(weight, Const(0)).as_signed()
        low, high = (
            stage(4, lut_product(m, platform, half, operand, name=f"{name}_products"),
                  f"{name}_product")
            for name, half in (("low", code[:split]), ("high", upper))
        )
        width = part.bits + SUM_BITS + 3
        product = Signal(signed(width), name="product", reset_less=True)
        total = Signal.like(product, name="total", reset_less=True)
        with m.If(enables[5]):
            m.d.sync += product.eq(low + (high << split))
        with m.If(enables[6] & valid[5]):
            m.d.sync += total.eq(Mux(flags[5][0], 0, total) + product)
        rounded = Signal(signed(part.bits + 3))
        m.d.comb += rounded.eq((total + (1 << SUM_BITS - 1) - total[-1]) >> SUM_BITS)
        with m.If(room):
            m.d.sync += [
                self.o.valid.eq(complete),
                self.o.payload.data.eq(rounded),
                self.o.payload.last.eq(flags[-1][2]),
            ]
