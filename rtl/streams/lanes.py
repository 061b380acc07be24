"""Copies of a component side by side, for streams of several codes per beat."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In

from nnef_hw import parts

__all__ = ["Lanes"]


class Lanes(wiring.Component):
    """Give the n-th code of every beat to the n-th copy; golden model: that of a copy, by channel.

    All copies take and give their codes in the same cycles, since those do not depend on codes: the
    first one speaks for all. Throughput, stalls and latency are those of a copy.

    Parameters
    ----------
    copies : list[wiring.Component]
        Components of the part, each filled for its channels.

    Members
    -------
    i : In(stream.Signature)
        The operand, with as many codes in a beat as there are copies; if a copy has several, all of
        them, by their names.
    o : Out(stream.Signature)
        The result.

    Raises
    ------
    ValueError
        If there are not as many copies as lanes.
    """

    def __init__(self, part: parts.Lanes, copies):
        if len(copies) != part.lanes:
            raise ValueError(f"Lanes needs {part.lanes} copies, not {len(copies)}")
        self.part = part
        self.copies = copies
        super().__init__({
            name: member.flow(stream.Signature(_widened(_payload(member), part.lanes)))
            for name, member in copies[0].signature.members.items()
        })

    def elaborate(self, platform):
        m = Module()
        for n, copy in enumerate(self.copies):
            m.submodules[f"lane{n}"] = copy
            for name, member in copy.signature.members.items():
                inside, outside = getattr(copy, name), getattr(self, name)
                fields = [(field, isinstance(shape, data.ArrayLayout))
                          for field, shape in _payload(member).members.items()]
                if member.flow is In:
                    m.d.comb += inside.valid.eq(outside.valid)
                    m.d.comb += [
                        inside.payload[field][0].eq(outside.payload[field][n]) if has_lanes
                        else inside.payload[field].eq(outside.payload[field])
                        for field, has_lanes in fields
                    ]
                else:
                    m.d.comb += inside.ready.eq(outside.ready)
                    m.d.comb += [outside.payload[field][n].eq(inside.payload[field][0])
                                 for field, has_lanes in fields if has_lanes]
                if n == 0 and member.flow is In:
                    m.d.comb += outside.ready.eq(inside.ready)
                elif n == 0:
                    m.d.comb += outside.valid.eq(inside.valid)
                    m.d.comb += [outside.payload[field].eq(inside.payload[field])
                                 for field, has_lanes in fields if not has_lanes]
        return m


def _payload(member):
    """Return the payload's layout of a port."""
    return member.signature.members["payload"].shape


def _widened(layout, lanes):
    """Return a layout of one code per beat for several."""
    return data.StructLayout({
        field: data.ArrayLayout(shape.elem_shape, lanes * shape.length)
        if isinstance(shape, data.ArrayLayout) else shape
        for field, shape in layout.members.items()
    })
