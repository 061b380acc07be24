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
from nnef_hw.errors import TargetError
from nnef_hw.rtl.base.reset import WithReset
from nnef_hw.rtl.readers.pads import connect_pads, pad_ports
from nnef_hw.rtl.streams.stream import Fifo

__all__ = ["MIN_BYTE_CYCLES", "PinnedCore", "UartPhy", "pin_members", "refuse_more"]

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


def refuse_more(accelerator, others, *, there_is, nobody_fills):
    """Refuse arguments that only a :class:`.LinkedCore` has, and a memory for a host to fill."""
    others = {name: value for name, value in others.items() if value and value != 1}
    if others:
        raise ValueError(f"{there_is} nothing for {', '.join(others)}")
    if "image" in accelerator.signature.members:
        raise TargetError(
            f"{nobody_fills} a memory with the weights",
            remedy="choose a board whose weights are in the FPGA or in its flash")


class PinnedCore(wiring.Component):
    """A board's core: an accelerator, and components whose pins and pads are the core's.

    Parameters
    ----------
    accelerator : wiring.Component
        May have ``pads`` of memories.
    made : Iterable[tuple[Interface, wiring.Component]]
        Every interface, and its component.
    more
        Members of the core besides those of all cores.

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

    def __init__(self, accelerator, made, **more):
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
        super().__init__({"reset": In(1), **more, **self.pins, "led": Out(1),
                          **pad_ports((*self.pads, *self.wires))})

    def _make_ends(self, accelerator, clk_hz, sources, sinks):
        """Make the components of sources and sinks; return each with its interface."""
        made = []

        def component(interface, name):
            layout = getattr(accelerator, name).payload.shape()
            found = interface.hardware_class()(layout, **interface.parameters(clk_hz))
            made.append((interface, found))
            return found

        self.sources = {name: component(source, name) for name, source in sources.items()}
        self.losing = [self.sources[name] for name, x in sources.items() if not x.waits]
        self.sinks = {name: [component(sink, name) for sink in found]
                      for name, found in sinks.items()}
        return made

    def _connect_pins(self, m):
        """Connect pins and pads to what they belong to."""
        for name, member in self.pins.items():
            inner, outer = getattr(self._owners[name], name), getattr(self, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        connect_pads(m, self.pads, self.accelerator, self)
        for group, component in self.wires.items():
            connect_pads(m, [group], component, self)

    def _add_accelerator(self, m, restart):
        """Add the accelerator, which a signal restarts; return when it has."""
        accelerator = self.accelerator
        if "restart" in accelerator.signature.members:
            m.submodules.accelerator = accelerator
            m.d.comb += accelerator.restart.eq(restart)
            return accelerator.restarted
        m.submodules.accelerator = WithReset(accelerator, restart)
        return restart

    def _hop(self, m, resets, name, origin):
        """Return a stream behind registers, if it comes from afar."""
        if not self.long_wires:
            return origin
        m.submodules[f"{name}_hop"] = resets(hop := Fifo(origin.payload.shape()))
        wiring.connect(m, origin, hop.i)
        return hop.o


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
