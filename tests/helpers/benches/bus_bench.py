"""Cocotb bench of the wrappers with registers, by cocotbext-axi and cocotbext-wishbone."""

import json
import os
import random
from itertools import pairwise

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Lock, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus, AxiStreamSink, AxiStreamSource
from cocotbext.axi.constants import AxiResp
from cocotbext.wishbone.driver import WBOp, WishboneMaster

BENCH = json.loads(os.environ["BUS_BENCH"])
ADDRESS = BENCH["addresses"]
FRAMES = {name: [bytes.fromhex(x) for x in frames] for name, frames in BENCH["frames"].items()}
DONE = 1


class BusError(Exception):
    """The bus has answered with an error."""


def pauses(probability):
    """Yield whether an end pauses in a cycle."""
    while True:
        yield random.random() < probability


class AxiLite:
    """Software on AXI4-Lite, with pauses in every channel."""

    clock, reset, active = "aclk", "aresetn", 0

    def __init__(self, dut, stall):
        bus = AxiLiteBus.from_prefix(dut, "s_axi")
        self.master = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        for side in (self.master.write_if, self.master.read_if):
            for channel in ("aw_channel", "w_channel", "b_channel", "ar_channel", "r_channel"):
                if hasattr(side, channel):
                    getattr(side, channel).set_pause_generator(pauses(stall))

    async def read(self, name, offset=0):
        answer = await self.master.read(ADDRESS[name] + offset, 4)
        if answer.resp != AxiResp.OKAY:
            raise BusError
        return int.from_bytes(answer.data, "little")

    async def write(self, name, value, size=4):
        answer = await self.master.write(ADDRESS[name], value.to_bytes(4, "little")[:size])
        if answer.resp != AxiResp.OKAY:
            raise BusError


class Wishbone:
    """Software on Wishbone, with pauses between accesses."""

    clock, reset, active = "wb_clk_i", "wb_rst_i", 1

    def __init__(self, dut, stall):
        self.stall, self.clock_signal, self.lock = stall, dut.wb_clk_i, Lock()
        names = {"cyc": "cyc_i", "stb": "stb_i", "we": "we_i", "adr": "adr_i", "sel": "sel_i",
                 "datwr": "dat_i", "datrd": "dat_o", "ack": "ack_o", "err": "err_o"}  # fmt: skip
        self.master = WishboneMaster(dut, "wb", dut.wb_clk_i, timeout=1000, signals_dict=names)

    async def _do(self, operation):
        while random.random() < self.stall:
            await RisingEdge(self.clock_signal)
        operation.idle = int(random.random() < self.stall)
        async with self.lock:
            [answer] = await self.master.send_cycle([operation])
        if answer.ack != 1:
            raise BusError
        return answer

    async def read(self, name, offset=0):
        return int((await self._do(WBOp(ADDRESS[name] + offset))).datrd)

    async def write(self, name, value, size=4):
        await self._do(WBOp(ADDRESS[name], value, sel=(1 << size) - 1))


async def started(dut, stall):
    """Return software on the bus that the module has, after a reset."""
    kind = AxiLite if hasattr(dut, "aclk") else Wishbone
    cocotb.start_soon(Clock(getattr(dut, kind.clock), 10, "ns").start())
    software = kind(dut, stall)
    reset = getattr(dut, kind.reset)
    reset.value = kind.active
    await ClockCycles(getattr(dut, kind.clock), 4)
    reset.value = 1 - kind.active
    await ClockCycles(getattr(dut, kind.clock), 2)
    return software


async def refused(access):
    """Return whether the bus answers with an error."""
    try:
        await access
    except BusError:
        return True
    return False


def streams(dut, kind, stall):
    """Return the ends of AXI4-Streams by name; none if data passes through registers."""
    clock = getattr(dut, BENCH["clock"])
    ends = {"s_axis": AxiStreamSource, "m_axis": AxiStreamSink}
    found = {}
    for name in FRAMES:
        if name.startswith(kind) and hasattr(dut, f"{name}_tdata"):
            found[name] = ends[kind](AxiStreamBus.from_prefix(dut, name), clock)
            found[name].set_pause_generator(pauses(stall))
    return found


def words(frame):
    """Words of a frame, the last one filled with zeros."""
    filled = frame + bytes(-len(frame) % 4)
    return [int.from_bytes(filled[n : n + 4], "little") for n in range(0, len(filled), 4)]


def joined(kind):
    """Return the bytes of every frame, tensor after tensor."""
    tensors = [frames for name, frames in FRAMES.items() if name.startswith(kind)]
    return [b"".join(parts) for parts in zip(*tensors, strict=True)]


async def feed(software, frames):
    """Write frames as there is room."""
    for frame in frames:
        for word in words(frame):
            while not await software.read("input_free"):
                pass
            await software.write("input", word)


async def collect(software, frames):
    """Read as many results as there are frames, and compare them."""
    for expected in frames:
        for word in words(expected):
            while not await software.read("result_ready"):
                pass
            assert await software.read("result") == word


async def exchange(dut, software, stall):
    """Run all frames, and compare what comes."""
    sources, sinks = streams(dut, "s_axis", stall), streams(dut, "m_axis", stall)
    if not sources:
        feeding = cocotb.start_soon(feed(software, joined("s_axis")))
        await collect(software, joined("m_axis"))
        await feeding
        assert not await software.read("result_ready")
        assert await refused(software.read("result"))
        return
    for name, source in sources.items():
        for frame in FRAMES[name]:
            await source.send(frame)
    for name, sink in sinks.items():
        for expected in FRAMES[name]:
            frame = await with_timeout(sink.recv(), 2, "ms")
            assert bytes(frame.tdata) == expected
    await ClockCycles(getattr(dut, BENCH["clock"]), 20)
    assert all(sink.empty() for sink in sinks.values())


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def frames_are_those_of_the_model(dut, stall):
    software = await started(dut, stall)
    count = len(joined("m_axis"))
    # one frame too few for an event
    await software.write("threshold", count + 1)
    await software.write("interrupt_enable", DONE)
    await exchange(dut, software, stall)
    assert await software.read("frames") == count
    assert await software.read("interrupt") == 0
    assert not dut.irq.value
    assert await software.read("status") == 0
    assert 0 < await software.read("interval") <= await software.read("latency") * count
    # from the initial states, with the counters at 0, and as many as make an event
    await software.write("control", 3)
    assert await software.read("frames") == 0
    await software.write("threshold", count)
    await exchange(dut, software, stall)
    assert await software.read("frames") == count
    assert await software.read("interrupt") == DONE
    assert dut.irq.value
    await software.write("interrupt", DONE)
    await RisingEdge(getattr(dut, BENCH["clock"]))
    assert not dut.irq.value


@cocotb.test()
async def registers_are_those_of_the_table(dut):
    software = await started(dut, 0.3)
    for name, value in BENCH["constants"].items():
        assert await software.read(name) == value
    for name, value in BENCH["inits"].items():
        assert await software.read(name) == value
    for offset in (*BENCH["holes"],):
        assert await refused(software.read("id", offset))
    await software.write("id", 0)
    assert await software.read("id") == BENCH["constants"]["id"]
    await software.write("threshold", 0x1234)
    await software.write("threshold", 0xFF, size=1)
    assert await software.read("threshold") == 0x12FF


@cocotb.test()
async def a_stopped_accelerator_lets_no_frame_begin(dut):
    software = await started(dut, 0.0)
    await software.write("control", 0)
    clock = getattr(dut, BENCH["clock"])
    running = cocotb.start_soon(exchange(dut, software, 0.0))
    await ClockCycles(clock, 2000)
    assert await software.read("frames") == await software.read("status") == 0
    # a frame that has begun ends, and no other one begins
    await software.write("control", 1)
    while not await software.read("status"):
        pass
    await software.write("control", 0)
    seen = [-2, -1]
    while seen[-1] != seen[-2]:
        await ClockCycles(clock, BENCH["latency"] + 500)
        seen.append(await software.read("frames"))
    assert all(before <= after for before, after in pairwise(seen))
    assert 0 < seen[-1] < len(joined("m_axis"))
    await software.write("control", 1)
    await running
    assert await software.read("frames") == len(joined("m_axis"))


@cocotb.test(skip=bool("input" not in ADDRESS))
async def a_full_fifo_refuses_words(dut):
    software = await started(dut, 0.0)
    await software.write("control", 0)
    assert await refused(software.write("input", 0, size=3))
    room = await software.read("input_free")
    assert room >= len(words(joined("s_axis")[0]))
    free = room
    while free:
        assert not await refused(software.write("input", 0))
        free = await software.read("input_free")
    assert await refused(software.write("input", 0))
    await software.write("control", 3)
    assert await software.read("input_free") == room
    await exchange(dut, software, 0.0)
