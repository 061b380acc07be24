"""Fork: one stream into several."""

from functools import reduce
from operator import and_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Fork"]


class Fork(wiring.Component):
    """Give every item to every branch; golden model: the identity, once per branch.

    One item per cycle. A branch takes an item as soon as it likes; a flag per branch remembers who
    has taken the current one, which leaves when the last has. So no branch's ``valid`` depends on
    any ``ready``; ``i.ready`` depends on the ``ready`` of all branches.

    Where branches meet again, each needs room for the items by which its path is ahead of the
    slowest one, or nothing moves.

    Parameters
    ----------
    shape : ShapeLike
        Payload.
    branches : int
        How many, at least 2.

    Members
    -------
    i : In(stream.Signature(shape))
    o0, o1, ... : Out(stream.Signature(shape))
        One per branch.

    Attributes
    ----------
    latency : int
        Cycles from an offered ``i`` to the branches' ``valid``.
    """

    latency = 0

    def __init__(self, shape, *, branches):
        if branches < 2:
            raise ValueError(f"Fork needs at least 2 branches, not {branches!r}")
        self.branches = branches
        super().__init__({
            "i": In(stream.Signature(shape)),
            **{f"o{n}": Out(stream.Signature(shape)) for n in range(branches)},
        })

    def elaborate(self, platform):
        m = Module()
        served = []
        for n in range(self.branches):
            branch = getattr(self, f"o{n}")
            accepted = Signal(name=f"accepted{n}")
            done = Signal(name=f"done{n}")
            m.d.comb += [
                branch.payload.eq(self.i.payload),
                branch.valid.eq(self.i.valid & ~accepted),
                done.eq(accepted | branch.ready),
            ]
            m.d.sync += accepted.eq(self.i.valid & done & ~self.i.ready)
            served.append(done)
        m.d.comb += self.i.ready.eq(reduce(and_, served))
        return m
