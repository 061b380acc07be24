"""Cocotb bench of the link over SPI: a host in mode 0, with the packets of docs/protocol.md."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Timer

from nnef_hw.host.packets import Packet, decode_packet, encode_packet
from nnef_hw.host.protocol import Reason, Reply, Request

CLOCK_NS = 10
HASH = bytes(32)


class SpiHost:
    """Clocks bytes in both directions; every level of ``sck`` lasts some clock cycles."""

    def __init__(self, dut, half_period):
        self.dut, self.half_period = dut, half_period

    async def select(self, selected):
        self.dut.cs_n.value = not selected
        await Timer(4 * CLOCK_NS + random.randrange(CLOCK_NS), "ns")

    async def transfer(self, byte, bits=8):
        received = 0
        for bit in range(bits):
            self.dut.copi.value = byte >> 7 - bit & 1
            await Timer(self.half_period, "ns")
            received = received << 1 | int(self.dut.cipo.value)
            self.dut.sck.value = 1
            await Timer(self.half_period, "ns")
            self.dut.sck.value = 0
        return received

    async def request(self, packet, *, pause=False, damage=0):
        """Send a packet and return the reply; ``pause`` deselects the board in between."""
        raw = bytearray(encode_packet(packet))
        raw[-1] ^= damage
        await self.select(True)
        for byte in raw:
            await self.transfer(byte)
        if pause:
            await self.select(False)
            await Timer(random.randrange(2000), "ns")
            await self.select(True)
        received = b""
        for _ in range(100):
            received += bytes([await self.transfer(0)])
            reply, rest = decode_packet(received)
            if reply is not None:
                assert rest == b""
                await self.select(False)
                return reply
        raise AssertionError(f"no reply to {packet}: {received.hex()}")


async def start(dut, half_period):
    dut.sck.value = dut.copi.value = 0
    dut.cs_n.value = 1
    cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
    dut.rst.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    host = SpiHost(dut, half_period)
    identity = await host.request(Packet(Request.IDENTIFY, 1))
    assert (identity.kind, identity.payload[8:]) == (Reply.IDENTITY, HASH)
    assert (await host.request(Packet(Request.ABORT, 2))).kind == Reply.ACK
    return host


@cocotb.test()
@cocotb.parametrize(half_period=[40, 43, 57, 200], pause=[False, True])
async def frames_go_in_and_results_come_out(dut, half_period, pause):
    host = await start(dut, half_period)
    number = 2
    for length in (1, 2, 30, 56):
        frame = random.randbytes(length)
        number += 2
        data = Packet(Request.DATA_END, number - 1, 0, frame)
        assert (await host.request(data, pause=pause)).kind == Reply.ACK
        await ClockCycles(dut.clk, 5 * length + 50)
        reply = await host.request(Packet(Request.READ, number), pause=pause)
        assert reply == Packet(Reply.RESULT, number, 0, bytes((b + 1) & 0xFF for b in frame))


@cocotb.test()
async def damaged_packet_is_refused_and_sent_again(dut):
    host = await start(dut, 40)
    data = Packet(Request.DATA_END, 3, 0, b"abc")
    reply = await host.request(data, damage=0x10)
    assert (reply.kind, reply.argument) == (Reply.NAK, Reason.DAMAGED)
    assert (await host.request(data)).kind == Reply.ACK
    assert (await host.request(data)).kind == Reply.ACK
    await ClockCycles(dut.clk, 100)
    assert (await host.request(Packet(Request.READ, 4))).payload == b"bcd"


@cocotb.test()
async def bits_of_a_byte_given_up_are_forgotten(dut):
    host = await start(dut, 40)
    for bits in range(1, 8):
        await host.select(True)
        await host.transfer(0xFF, bits)
        await host.select(False)
        reply = await host.request(Packet(Request.COUNTERS, 10 + bits))
        assert reply.kind == Reply.COUNTS
        assert reply.payload[9] == 0
