"""A component beside a path that takes longer than any of its own."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Beside", "LongPath"]


class LongPath(wiring.Component):
    """The last carry of an adder of so many bits."""

    def __init__(self, bits: int) -> None:
        super().__init__({"path_a": In(bits), "path_b": In(bits), "path_o": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the adder."""
        del platform
        module = Module()
        module.d.comb += self.path_o.eq((self.path_a + self.path_b)[-1])
        return module


class Beside(wiring.Component):
    """A component and, unconnected to it, a :class:`LongPath`; it has the ports of both."""

    def __init__(self, component: Any, bits: int) -> None:
        self._path = LongPath(bits)
        self._component = component
        super().__init__({
            **dict(component.signature.members), **dict(self._path.signature.members),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build both."""
        del platform
        module = Module()
        for name, part in (("component", self._component), ("path", self._path)):
            setattr(module.submodules, name, part)
            for port, member in part.signature.members.items():
                inner, outer = getattr(part, port), getattr(self, port)
                if member.is_signature:
                    wiring.connect(module, wiring.flipped(outer), inner)
                elif member.flow is In:
                    module.d.comb += inner.eq(outer)
                else:
                    module.d.comb += outer.eq(inner)
        return module
