# amaranth: UnusedElaboratable=no
"""UART on a line with the other end slightly off, and the CRC beside it."""

import re
from binascii import crc_hqx

import pytest
from amaranth.hdl import Module
from simulators import run_benches

from nnef_hw.boards.hardware.crc import SerialCrc
from nnef_hw.boards.hardware.uart import UartReceiver, UartTransmitter
from nnef_hw.boards.interfaces.uart import uart_divider

CYCLE = 1e-6
BYTES = [0x00, 0xFF, 0xA5, 0x5A, 0x01, 0x80]


async def receive(ctx, stream, count):
    received = []
    ctx.set(stream.ready, 1)
    for _ in range(20_000):
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        if valid:
            received.append(payload)
        if len(received) == count:
            return received
    raise AssertionError(f"only {received} received")


@pytest.mark.parametrize("divider", [4, 5, 24], ids=str)
def test_loopback_back_to_back(divider):
    m = Module()
    m.submodules.transmitter = transmitter = UartTransmitter(divider)
    m.submodules.receiver = receiver = UartReceiver(divider)
    m.d.comb += receiver.rx.eq(transmitter.tx)
    cycles = []

    async def send(ctx):
        ctx.set(transmitter.i.valid, 1)
        for byte in BYTES:
            ctx.set(transmitter.i.payload, byte)
            waited = 1
            ready = 0
            while not ready:
                _, _, ready = await ctx.tick().sample(transmitter.i.ready)
                waited += not ready
            cycles.append(waited)
        ctx.set(transmitter.i.valid, 0)

    async def check(ctx):
        assert await receive(ctx, receiver.o, len(BYTES)) == BYTES

    run_benches(m, send, check)
    assert cycles == [1] + [10 * divider] * (len(BYTES) - 1)


@pytest.mark.parametrize("error", [-0.03, 0.03], ids=["fast", "slow"])
def test_receiver_tolerates_another_rate(error):
    receiver = UartReceiver(24)

    async def send(ctx):
        for byte in BYTES:
            for bit in [0, *((byte >> k) & 1 for k in range(8)), 1]:
                ctx.set(receiver.rx, bit)
                await ctx.delay(24 * CYCLE * (1 + error))

    async def check(ctx):
        assert await receive(ctx, receiver.o, len(BYTES)) == BYTES

    run_benches(receiver, send, check, period=CYCLE)


def test_receiver_ignores_glitches_and_broken_bytes():
    receiver = UartReceiver(8)

    async def send(ctx):
        async def line(bits, cycles=8):
            for bit in bits:
                ctx.set(receiver.rx, bit)
                await ctx.tick().repeat(cycles)

        await line([1] * 5)
        await line([0, 1], cycles=3)
        await line([1] * 12)
        await line([0, 1, 0, 1, 0, 1, 0, 1, 0, 0])
        await line([1] * 12)
        await line([0, 1, 1, 0, 0, 0, 0, 1, 0, 1])

    async def check(ctx):
        assert await receive(ctx, receiver.o, 1) == [0b01000011]

    run_benches(receiver, send, check, period=CYCLE)


@pytest.mark.parametrize("length", [1, 2, 60], ids="{}_bytes".format)
def test_crc_matches_model(rng, length):
    crc = SerialCrc()
    message = rng.bytes(length)

    async def check(ctx):
        async def enter(data):
            for byte in data:
                ctx.set(crc.i.payload, byte)
                ctx.set(crc.i.valid, 1)
                await ctx.tick()
                ctx.set(crc.i.valid, 0)
                await ctx.tick().repeat(crc.latency - 1)
                assert ctx.get(crc.i.ready)

        for _ in range(2):
            ctx.set(crc.start, 1)
            await ctx.tick()
            ctx.set(crc.start, 0)
            await enter(message)
            expected = crc_hqx(message, 0xFFFF)
            assert ctx.get(crc.crc) == expected
            await enter([expected >> 8])
            assert ctx.get(crc.crc) == (expected & 0xFF) << 8
            await enter([expected & 0xFF])
            assert ctx.get(crc.crc) == 0

    run_benches(crc, check)


def test_divider_is_checked():
    assert uart_divider(24_000_000, 1_000_000) == 24
    assert uart_divider(20_250_000, 1_000_000) == 20
    with pytest.raises(ValueError, match=re.escape("off by 3.1%, over 2%; 1031250 baud is exact")):
        uart_divider(16_500_000, 1_000_000)
    with pytest.raises(ValueError, match="needs a clock of at least 4000000 Hz, not 3000000"):
        uart_divider(3_000_000, 1_000_000)
    with pytest.raises(ValueError, match="UartReceiver divider must be an integer of at least 4"):
        UartReceiver(3)
