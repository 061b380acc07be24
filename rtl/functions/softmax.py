"""Softmax over the channels of a pixel, in integers."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import beat_layout, code_range

__all__ = [
    "ExponentialLookup", "PixelSum", "Softmax", "dividend", "last_beat", "layer_ports",
    "saturated",
]


def layer_ports(part):
    """Return the members by which a softmax gets its tables, if these are written, and a layer's.

    ``table_number`` is that of the table that it takes, of several; ``last_channel`` that of the
    last code of a pixel, ``masks`` whether the lowest code is hidden, ``fewer`` by how many its
    places are fewer than the part's. They stay from a layer's first code to its last result.
    """
    own = {"table_number": In(range(part.tables))} if part.tables > 1 else {}
    if part.is_shared:
        own |= {"last_channel": In(range(part.channels)), "masks": In(1)}
        own |= {"fewer": In(range(part.fewer_places + 1))} if part.fewer_places else {}
    if not part.is_written:
        return own
    return {
        **own,
        "table_address": In(range(part.table_memory.depth)),
        "table_data": In(part.exponential_bits),
        "table_enable": In(1),
    }


def last_beat(part, owner):
    """Return the index of the last beat of a pixel."""
    if not part.is_shared:
        return part.beats - 1
    return owner.last_channel[part.lane_bits :]


def dividend(part, owner, exponential, total):
    """Return the dividend of a division by twice the sum, as the part rounds."""
    scaled = exponential << part.quotient_bits
    if part.fewer_places:
        scaled = scaled >> owner.fewer
    return scaled - (exponential << 1) if part.rounds_down else scaled + total


def saturated(part, quotient):
    """Return a quotient in the bits of a probability."""
    above = quotient[part.out_bits:]
    return Mux(above if len(above) == 1 else above.any(), (1 << part.out_bits) - 1, quotient)


class ExponentialLookup:
    """Exponentials of codes in a memory, from a table addressed by what the greatest is above them.

    Words of several codes have a copy of the table for each.

    Parameters
    ----------
    m : Module
        Gets the table.
    part : parts.softmax.SoftmaxPart
        The softmax that it belongs to.
    table : list[int]
        The exponentials.
    codes : TiledMemory
        The codes; its read address is the user's business.
    code_shape : Shape
        Shape of a code.
    owner : Component
        The softmax, whose :func:`layer_ports` write and choose tables, if there are any.
    is_masked : bool
        The lowest code is hidden: its exponential is 0, unless it is the greatest one. A part that
        is shared has a port that tells.
    lanes : int
        Codes of a word.

    Attributes
    ----------
    read : Signal
        The user sets it with the address of a word.
    maximum : Signal
        The user sets it to the greatest code of the pixel, in the cycle after the address.
    exponentials : list[Signal]
        Those of the word that was read three cycles before.
    valid : Signal
        Whether one was.
    idle : Value
        Whether no exponential is on its way.
    """

    def __init__(self, m, part, table, codes, code_shape, owner, *, is_masked=False, lanes=1):
        self.part, self.owner, self.is_masked = part, owner, is_masked
        self.read = Signal(name="read_code")
        self.maximum = Signal(code_shape, name="greatest_code")
        reading = Signal(3)
        m.d.comb += codes.read_enable.eq(1)
        m.d.sync += reading.eq(Cat(self.read, reading))
        self.exponentials = [
            self._look_up(m, table, codes.read_data.word_select(lane, part.bits),
                          str(lane) if lanes > 1 else "")
            for lane in range(lanes)
        ]
        self.valid = reading[-1]
        self.idle = ~reading.any()

    def _look_up(self, m, table, code, lane):
        """Return the exponential of a code that was read, with a table of its own."""
        part, owner = self.part, self.owner
        exponentials = TiledMemory(part.table_memory, words=table, writable=part.is_written)
        m.submodules[f"table{lane}"] = exponentials
        if part.is_written:
            m.d.comb += [
                exponentials.write_address.eq(owner.table_address),
                exponentials.write_data.eq(owner.table_data),
                exponentials.write_enable.eq(owner.table_enable),
            ]
        exponential = Signal(part.exponential_bits, name=f"exponential{lane}", reset_less=True)
        stored = Signal(self.maximum.shape(), name=f"stored_code{lane}")
        m.d.comb += [
            stored.eq(code),
            exponentials.read_address.eq(self._entry(part, owner, self.maximum - stored)),
            exponentials.read_enable.eq(1),
        ]
        found = exponentials.read_data
        if part.is_shared or self.is_masked:
            masks = owner.masks if part.is_shared else Const(1)
            lowest = code_range(part.bits, part.signed)[0]
            hidden = Signal(name=f"is_hidden{lane}", reset_less=True)
            m.d.sync += hidden.eq(masks & (stored == lowest) & (self.maximum != lowest))
            found = Mux(hidden, 0, found)
        m.d.sync += exponential.eq(found)
        return exponential

    @staticmethod
    def _entry(part, owner, difference):
        """Return the place of a difference in the table that is chosen."""
        if part.tables == 1:
            return difference
        return Cat(difference[: part.bits], owner.table_number)


class PixelSum:
    """Takes the codes of a pixel and sums their exponentials, one pixel at a time.

    Parameters
    ----------
    m : Module
        Gets the memories and registers.
    part : parts.softmax.SerialSoftmax
        The softmax that it belongs to.
    table : list[int]
        The exponentials.
    owner : Component
        The softmax, with the codes that come at ``i``, and :func:`layer_ports`.
    summand : function
        Function that tells what an exponential adds to the sum.

    Attributes
    ----------
    total, exponential : Signal
        The sum; the exponential of the code at ``index``, three cycles after it became that.
    index, final, following : Value
        A code of the pixel, whether it is the last one, and the one that follows it.
    last : Signal
        Whether the pixel is the last of its frame.
    """

    def __init__(
        self, m, part, table, owner, *, summand=lambda exponential: exponential, is_masked=False
    ):
        i = owner.i
        code = i.payload.data[0]
        style = "distributed" if part.holds_few else "block"
        self.codes = codes = TiledMemory(part.code_memory, writable=True, style=style)
        m.submodules.codes = codes
        self.i = i
        self.lookup = lookup = ExponentialLookup(
            m, part, table, codes, code.shape(), owner, is_masked=is_masked,
        )
        [self.exponential] = lookup.exponentials
        self.index = index = Signal(range(part.channels), name="index")
        self.maximum = Signal.like(code, name="maximum", reset_less=True)
        self.last = Signal(name="last", reset_less=True)
        self.total = Signal(part.sum_bits, name="total")
        self.final = index == last_beat(part, owner)
        self.following = Mux(self.final, 0, index + 1)
        m.d.comb += [
            codes.write_address.eq(index),
            codes.write_data.eq(code),
            codes.read_address.eq(index),
            lookup.maximum.eq(self.maximum),
        ]
        with m.If(lookup.valid):
            m.d.sync += self.total.eq(self.total + summand(self.exponential))

    def add_states(self, m, *, clear=(), done):
        """Add the states in which a pixel is taken and summed; ``done`` follows.

        The first one, LOAD, executes the statements ``clear``.
        """
        code = self.i.payload.data[0]
        with m.State("LOAD"):
            m.d.comb += [self.i.ready.eq(1), self.codes.write_enable.eq(self.i.valid)]
            m.d.sync += [self.total.eq(0), *clear]
            with m.If(self.i.valid):
                m.d.sync += self.index.eq(self.following)
                with m.If((self.index == 0) | (code > self.maximum)):
                    m.d.sync += self.maximum.eq(code)
                with m.If(self.final):
                    m.d.sync += self.last.eq(self.i.payload.last)
                    m.next = "SUM"
        with m.State("SUM"):
            m.d.comb += self.lookup.read.eq(1)
            m.d.sync += self.index.eq(self.following)
            with m.If(self.final):
                m.next = "SETTLE"
        with m.State("SETTLE"):
            with m.If(self.lookup.idle):
                m.next = done

    def add_output_states(self, m, o, code):
        """Add those that read an exponential again for START, and OUTPUT, which gives ``code``."""
        for state, following in (("READ", "LOOK_UP"), ("LOOK_UP", "LATCH"), ("LATCH", "START")):
            with m.State(state):
                m.next = following
        with m.State("OUTPUT"):
            m.d.comb += [
                o.valid.eq(1),
                o.payload.data[0].eq(code),
                o.payload.last.eq(self.last & self.final),
            ]
            with m.If(o.ready):
                m.d.sync += self.index.eq(self.following)
                with m.If(self.final):
                    m.next = "LOAD"
                with m.Else():
                    m.next = "READ"


class Softmax(wiring.Component):
    """Softmax of the codes of a pixel, to unsigned 8-bit probabilities in 1/256.

    Or to others, if the part says so: of ``out_bits``, in steps of ``2**-places``.

    Golden model: :func:`nnef_hw.arithmetic.softmax.softmax_codes`, and of parts that round down
    :func:`nnef_hw.arithmetic.integer_functions.integer_softmax_codes`. One pixel takes
    ``pixel_cycles`` of its part: load and find the maximum, sum the exponentials, then one serial
    division per code.

    Parameters
    ----------
    table : list[int]
        :func:`nnef_hw.arithmetic.softmax.exp_table`, of several one behind the other; not needed
        if they are written.
    is_masked : bool
        The lowest code is hidden.

    Members
    -------
    table_number, last_channel, masks, fewer, table_address, table_data, table_enable : In
        See :func:`layer_ports`.
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))
    """

    def __init__(self, part: parts.Softmax, *, table=(), is_masked=False):
        self.part = part
        self.table = table
        self.is_masked = is_masked
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "o": Out(stream.Signature(beat_layout(bits=part.out_bits, signed=False, lanes=1))),
            **layer_ports(part),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        pixel = PixelSum(m, part, self.table, self, is_masked=self.is_masked)
        remainder = Signal(part.sum_bits + part.quotient_bits + 1, reset_less=True)
        divisor = Signal(part.sum_bits + part.quotient_bits)
        quotient = Signal(part.quotient_bits)
        step = Signal(range(part.quotient_bits))
        m.d.comb += divisor.eq(pixel.total << part.quotient_bits)
        with m.FSM():
            pixel.add_states(m, done="READ")
            pixel.add_output_states(m, self.o, saturated(part, quotient))
            with m.State("START"):
                m.d.sync += [
                    remainder.eq(dividend(part, self, pixel.exponential, pixel.total)),
                    step.eq(0),
                ]
                m.next = "DIVIDE"
            with m.State("DIVIDE"):
                fits = remainder >= divisor
                m.d.sync += [
                    remainder.eq(Mux(fits, remainder - divisor, remainder) << 1),
                    quotient.eq(Cat(fits, quotient)),
                    step.eq(step + 1),
                ]
                with m.If(step == part.quotient_bits - 1):
                    m.next = "OUTPUT"
        return m
