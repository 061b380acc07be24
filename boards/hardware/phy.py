"""Wires of a host link: one small interface, and the UART behind it.

A phy is a component with two byte streams and nothing else but pins:

* ``o`` : Out(stream.Signature(8)), bytes from the host. They cannot be stalled: one that is not
  taken before the next arrives is lost.
* ``i`` : In(stream.Signature(8)), bytes to the host. Within a packet they follow each other within
  32 cycles, and the phy sends them without anything in between: it holds one that waits. Its
  ``ready`` falls only after a byte, and rises before the other end has all of it: a host that has
  the last byte of a reply may send at once;
* every other member is a pin, which the board's top gets under the same name; the link
  (:mod:`nnef_hw.boards.interfaces`) says which these are;
* ``byte_cycles`` : least clock cycles between two bytes of ``o``, at least 16;
* ``latency`` : cycles from the beginning of a byte on the wires until it is at ``o``.
"""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.uart import UartReceiver, UartTransmitter, receiver_latency
from nnef_hw.boards.interfaces import Direction, PinUse
from nnef_hw.rtl.readers.pads import connect_pads, pad_ports

__all__ = ["MIN_BYTE_CYCLES", "CorePins", "UartPhy", "pin_members"]

MIN_BYTE_CYCLES = 16


def pin_members(interface, component):
    """Members of an interface's component that are pins of the board.

    Those that are not are streams, the losses of a source that does not wait, whether it has to,
    and what goes to pads of wires that are pulled low.

    Raises
    ------
    ValueError
        If they are not those that the interface says it needs.
    """
    pads = getattr(component, "pads", ())
    inner = {"i", "o", "lost", "inside", *pad_ports(pads)}
    members = {name: member for name, member in component.signature.members.items()
               if name not in inner}
    found = {name: PinUse(Direction.INPUT if member.flow == In else Direction.OUTPUT,
                          Shape.cast(member.shape).width)
             for name, member in members.items()}
    found |= {group.name: PinUse(Direction.BOTH) for group in pads}
    if found != dict(interface.pins):
        raise ValueError(f"{interface.title} says that its pins are {dict(interface.pins)}, and "
                         f"its component has {found}")
    return members


class CorePins:
    """Pins and pads of a board's core, each with the component inside that it belongs to.

    Parameters
    ----------
    accelerator : wiring.Component
        May have ``pads`` of memories.
    made : Iterable[tuple[Interface, wiring.Component]]
        Every interface, and its component.

    Attributes
    ----------
    pins : dict[str, wiring.Member]
        Members of the core for all pins.
    pads : Sequence[Pads]
        Those of the accelerator's memories.
    wires : dict[Pads, wiring.Component]
        Those of wires that components pull low.

    Raises
    ------
    ValueError
        If two interfaces have a pin of the same name.
    """

    def __init__(self, accelerator, made):
        self.accelerator = accelerator
        self.pads = getattr(accelerator, "pads", ())
        self.pins, self.wires, self._owners = {}, {}, {}
        for interface, component in made:
            members = pin_members(interface, component)
            if taken := members.keys() & self.pins.keys():
                raise ValueError(f"several interfaces have pins {sorted(taken)}")
            self.pins |= members
            self._owners |= dict.fromkeys(members, component)
            self.wires |= dict.fromkeys(getattr(component, "pads", ()), component)

    @property
    def pad_ports(self):
        """Members of the core for all pads."""
        return pad_ports((*self.pads, *self.wires))

    def connect(self, m, core):
        """Connect the core's members to what they belong to."""
        for name, member in self.pins.items():
            inner, outer = getattr(self._owners[name], name), getattr(core, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        connect_pads(m, self.pads, self.accelerator, core)
        for group, component in self.wires.items():
            connect_pads(m, [group], component, core)


class UartPhy(wiring.Component):
    """A UART as phy: pins ``rx`` and ``tx``.

    Parameters
    ----------
    divider : int
        Clock cycles per bit, at least 4.
    """

    def __init__(self, divider):
        self.divider = divider
        self.byte_cycles = 10 * divider
        self.latency = receiver_latency(divider)
        super().__init__({
            "o": Out(stream.Signature(8)),
            "i": In(stream.Signature(8)),
            "rx": In(1, init=1),
            "tx": Out(1, init=1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(self.divider)
        m.submodules.transmitter = transmitter = UartTransmitter(self.divider)
        wiring.connect(m, receiver.o, wiring.flipped(self.o))
        wiring.connect(m, wiring.flipped(self.i), transmitter.i)
        m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]
        return m
