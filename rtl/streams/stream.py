"""Payload shapes of streams, elastic pipelines, and the FIFO that registers both directions."""

from operator import and_

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.rtl.base.primitives import own_lut

__all__ = [
    "Fifo", "beat_layout", "beat_words", "check_limits", "code_range", "code_shape", "code_streams",
    "elastic_stages", "join_beats", "operand_streams",
]


def code_shape(bits, signed):
    """Shape of one activation code."""
    return Shape(bits, signed)


def code_range(bits, signed):
    """All codes of a format."""
    lowest = -(1 << bits - 1) if signed else 0
    return range(lowest, lowest + (1 << bits))


def check_limits(part, requant):
    """Raise ValueError if the limits of a requantizer are not codes of the part's output."""
    codes = code_range(part.out_bits, part.out_signed)
    if not codes[0] <= requant.lo <= requant.hi <= codes[-1]:
        raise ValueError(f"{type(part).__name__} limits {requant.lo}..{requant.hi} must lie within "
                         f"{codes[0]}..{codes[-1]}")


def beat_layout(*, bits, signed, lanes):
    """Payload of an activation stream: ``lanes`` codes of consecutive channels, and ``last``.

    ``last`` marks the final beat of a frame; beats run by row, column, channel block (NHWC).
    """
    return data.StructLayout({
        "data": data.ArrayLayout(code_shape(bits, signed), lanes),
        "last": 1,
    })


def beat_words(codes, *, bits, lanes):
    """Return the data of beats of so many codes each as integers, the first code lowest."""
    below = [code % (1 << bits) for code in codes]
    return [
        sum(code << n * bits for n, code in enumerate(below[first:first + lanes]))
        for first in range(0, len(below), lanes)
    ]


def code_streams(part, *, lanes=1):
    """Ports ``i`` and ``o`` of a part that leaves codes in their format."""
    beat = stream.Signature(beat_layout(bits=part.bits, signed=part.signed, lanes=lanes))
    return {"i": In(beat), "o": Out(beat)}


def operand_streams(part, *, lanes=1):
    """Ports ``a`` and ``b`` of a part of two operands, each of its own format."""
    return {
        name: In(stream.Signature(beat_layout(bits=bits, signed=signed, lanes=lanes)))
        for name, bits, signed in zip("ab", part.in_bits, part.in_signed, strict=True)
    }


def elastic_stages(m, present, o, *, stages, platform=None):
    """Let items move through register stages, of which ``o`` is the last; none is skipped.

    A stage takes what comes as soon as it is empty or the next one takes what it holds.

    Parameters
    ----------
    m : Module
        Gets the ``valid`` registers.
    present : Value
        An item stands before the first stage; it moves in while ``enables[0]``.
    o : stream.Interface
        Its ``valid`` is the last stage's.
    stages : int
        How many, at least 1.
    platform : object or None
        Where it is given, ``o.ready`` passes one LUT to each enable; else synthesis may lead it
        from stage to stage, which takes fewer.

    Returns
    -------
    enables, valid : list[Signal]
        Per stage: its registers take what is before them; it holds an item.
    """
    valid = [*(Signal(name=f"valid{n}") for n in range(stages - 1)), o.valid]
    enables = [Signal(name=f"enable{n}") for n in range(stages)]
    for n, enable in enumerate(enables):
        full = Cat(*valid[n:]).all()
        m.d.comb += enable.eq(own_lut(m, platform, _moves, o.ready, full, name=f"moves{n}"))
        with m.If(enable):
            m.d.sync += valid[n].eq(valid[n - 1] if n else present)
    return enables, valid


def _moves(ready, full):
    """Whether a stage takes what is before it: the next part does, or not all behind it is full."""
    return ready | (full ^ 1)


def join_beats(m, platform, a, b, o, *, stages):
    """Accept beats of both streams together; return the enable of every stage of a pipeline.

    The registers of stage n take what comes in while their enable is set; ``valid`` and ``last``
    accompany them, and the last stage is ``o``. Placers spread the stages between where the beats
    come from and where they go, with ``o.ready`` on the way back to every one.
    """
    enables, _ = elastic_stages(m, a.valid & b.valid, o, stages=stages, platform=platform)
    m.d.comb += [
        a.ready.eq(enables[0] & b.valid),
        b.ready.eq(enables[0] & a.valid),
    ]
    last = [a.payload.last, *(Signal(name=f"last{n}", reset_less=True) for n in range(stages - 1)),
            o.payload.last]
    for enable, earlier, later in zip(enables, last, last[1:], strict=False):
        with m.If(enable):
            m.d.sync += later.eq(earlier)
    return enables


class Fifo(wiring.Component):
    """Queue of registers; golden model: the identity.

    One item per cycle. ``i.ready`` and ``o.valid`` come from registers, so two FIFOs of depth 2
    cut every combinational path between blocks (a *skid buffer*).

    Parameters
    ----------
    shape : ShapeLike
        Payload.
    depth : int
        Items held, at least 2.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))

    Attributes
    ----------
    latency : int
        Cycles from an accepted ``i`` to the matching ``o.valid``.
    """

    latency = 1

    def __init__(self, shape, *, depth=2):
        if depth < 2:
            raise ValueError(f"Fifo depth must be at least 2, not {depth!r}")
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        slots = [Signal.like(self.i.payload, name=f"slot{n}", reset_less=True)
                 for n in range(self.depth)]
        held = [Signal(name=f"held{n}") for n in range(self.depth - 1)]
        free = Signal(init=1)
        holds = [*held, ~free]
        accept = Signal()
        release = Signal()

        m.d.comb += [
            self.i.ready.eq(free),
            self.o.valid.eq(held[0]),
            self.o.payload.eq(slots[0]),
            accept.eq(self.i.valid & self.i.ready),
            # not that of the part behind, which is far
            release.eq(own_lut(m, platform, and_, self.o.valid, self.o.ready, name="releases")),
        ]
        with m.If(accept != release):
            m.d.sync += Cat(*held).eq(Mux(accept, Cat(1, *held), Cat(*holds[1:])))
            m.d.sync += free.eq(release | ~holds[-2])

        # What a slot takes depends on nothing but registers; one that is free may take anything.
        for n, slot in enumerate(slots):
            with m.If(release | ~holds[n]):
                if n + 1 < self.depth:
                    m.d.sync += slot.eq(Mux(holds[n + 1], slots[n + 1], self.i.payload))
                else:
                    m.d.sync += slot.eq(self.i.payload)
        return m
