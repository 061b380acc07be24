"""An accelerator whose streams pause at random."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

__all__ = ["Hesitant"]


class Hesitant(wiring.Component):
    """An accelerator, each stream of which is open in about half of the cycles.

    Parameters
    ----------
    accelerator : wiring.Component
    """

    def __init__(self, accelerator):
        self.accelerator = accelerator
        self.pads = getattr(accelerator, "pads", ())
        super().__init__(accelerator.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.accelerator = accelerator = self.accelerator
        noise = Signal(31, init=0x2545F491)
        m.d.sync += noise.eq(Cat(noise[1:], noise[0] ^ noise[3]))
        for number, (name, member) in enumerate(self.signature.members.items()):
            inner, outer = getattr(accelerator, name), getattr(self, name)
            if not isinstance(member.signature if member.is_signature else None, stream.Signature):
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
                continue
            origin, target = (outer, inner) if member.flow == In else (inner, outer)
            is_open = Signal(name=f"{name}_is_open")
            m.d.comb += [
                target.payload.eq(origin.payload),
                target.valid.eq(origin.valid & is_open),
                origin.ready.eq(target.ready & is_open),
            ]
            # what has been offered stays
            m.d.sync += is_open.eq((is_open & origin.valid & ~target.ready) | noise[5 * number + 2])
        return m
