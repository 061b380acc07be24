"""What a host link needs of its wires: one small interface, and the UART behind it.

A phy is a component with two byte streams and nothing else but pins:

* ``o`` : Out(stream.Signature(8)), bytes from the host. They cannot be stalled: one that is not
  taken before the next arrives is lost.
* ``i`` : In(stream.Signature(8)), bytes to the host. Within a packet they follow each other within
  32 cycles, and the phy sends them without anything in between: it holds one that waits. Its
  ``ready`` falls only after a byte;
* every other member is a pin, which the board's top gets under the same name;
* ``byte_cycles`` : least clock cycles between two bytes of ``o``, at least 16;
* ``latency`` : cycles from the beginning of a byte on the wires until it is at ``o``.
"""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.uart import UartReceiver, UartTransmitter, receiver_latency

__all__ = ["MIN_BYTE_CYCLES", "UartPhy", "phy_pins"]

MIN_BYTE_CYCLES = 16


def phy_pins(phy):
    """Members of a phy that are pins of the board."""
    return {name: member for name, member in phy.signature.members.items()
            if name not in {"i", "o"}}


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
