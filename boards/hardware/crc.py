"""CRC-16 of the host link, one bit per cycle."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SerialCrc"]


class SerialCrc(wiring.Component):
    """CRC-16/IBM-3740 (polynomial 0x1021, initial value 0xFFFF, most significant bit first).

    Golden model: ``binascii.crc_hqx(data, 0xFFFF)``. Takes a byte every 9 cycles, which is faster
    than any UART delivers them and half the size of a byte-wide CRC. After a message and its own
    CRC, high byte first, the value is 0; entering the high byte of the value moves the low byte
    into its place.

    Members
    -------
    start : In(1)
        Go back to the initial value; only while idle (``i.ready``).
    i : In(stream.Signature(8))
        Bytes of the message.
    crc : Out(16)
        CRC of all bytes since ``start``, meaningful while ``i.ready``.

    Attributes
    ----------
    latency : int
        Cycles from an accepted byte until ``crc`` includes it.
    """

    latency = 9

    def __init__(self):
        super().__init__({"start": In(1), "i": In(stream.Signature(8)), "crc": Out(16)})

    def elaborate(self, platform):
        m = Module()
        shift = Signal(8)
        bits_left = Signal(range(9))
        feedback = Signal()
        m.d.comb += [
            self.i.ready.eq(bits_left == 0),
            feedback.eq(self.crc[15] ^ shift[7]),
        ]

        with m.If(bits_left != 0):
            m.d.sync += [
                bits_left.eq(bits_left - 1),
                shift.eq(shift << 1),
                self.crc.eq((self.crc << 1) ^ Mux(feedback, 0x1021, 0)),
            ]
        with m.Else():
            m.d.sync += shift.eq(self.i.payload)
            with m.If(self.i.valid):
                m.d.sync += bits_left.eq(8)
            with m.If(self.start):
                m.d.sync += self.crc.eq(0xFFFF)
        return m
