"""Cocotb bench of the driver for AXI DMA: software that waits, beside simulated AXI.

Registers are accessed by cocotbext-axi's AXI4-Lite; a channel of a DMA is one of its stream ends.
"""

import json
import os
import random
from pathlib import Path

import cocotb
import numpy as np
import pytest
from cocotb.clock import Clock
from cocotb.task import bridge, resume
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus, AxiStreamSink, AxiStreamSource

from nnef_hw.errors import UsageError
from nnef_hw.host.axi_dma import DmaAccelerator

BENCH = json.loads(os.environ["DMA_BENCH"])
POLL = 20
"""Cycles that software takes to look at a register of a DMA."""


def pauses(probability):
    """Yield whether an end pauses in a cycle."""
    while True:
        yield random.random() < probability


class Mmio:
    """``pynq.MMIO`` of the accelerator's registers."""

    def __init__(self, dut):
        bus = AxiLiteBus.from_prefix(dut, "s_axi")
        self.master = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)

    @resume
    async def read(self, offset):
        return await self.master.read_dword(offset)

    @resume
    async def write(self, offset, value):
        await self.master.write_dword(offset, value)


class Channel:
    """A direction of a DMA: a packet at a time, between a buffer and a stream."""

    def __init__(self, dut, end, name, stall):
        self.clock, self.is_begun, self.task = dut.aclk, False, None
        self.end = end(AxiStreamBus.from_prefix(dut, name), dut.aclk)
        self.end.set_pause_generator(pauses(stall))

    @property
    def idle(self):
        return self._look()

    @resume
    async def _look(self):
        await ClockCycles(self.clock, POLL)
        return self.task.done()

    @resume
    async def transfer(self, array):
        assert self.task is None, "a DMA in its simple mode does one transfer at a time"
        self.task = cocotb.start_soon(self.packet(array))

    def wait(self):
        assert self.task.done()
        self.task = None


class Sending(Channel):
    """From memory to the accelerator."""

    def __init__(self, *where):
        super().__init__(where[0], AxiStreamSource, *where[1:])

    async def packet(self, array):
        await self.end.send(array.tobytes())
        await self.end.wait()


class Receiving(Channel):
    """From the accelerator to memory."""

    def __init__(self, *where):
        super().__init__(where[0], AxiStreamSink, *where[1:])

    async def packet(self, array):
        frame = await self.end.recv()
        data = np.frombuffer(bytes(frame.tdata), array.dtype)
        array[:] = data.reshape(array.shape)


def software(mmio, send, receive):
    """Do what a user's program does; it waits as Python on the processor does."""
    build = Path(BENCH["build"])
    device = DmaAccelerator(build, send, receive, np.zeros, mmio, stall=60)
    expected = {name: np.array(codes) for name, codes in BENCH["outputs"].items()}
    inputs = {name: np.array(codes) for name, codes in BENCH["inputs"].items()}
    for _ in range(2):
        device.restart()
        found = device.run_codes(inputs)
        for name, codes in expected.items():
            np.testing.assert_array_equal(found[name], codes)
        assert device.frames == len(next(iter(inputs.values())))
    assert 0 < device.interval <= device.latency * device.frames
    if "other" not in BENCH:
        with pytest.raises(UsageError, match="takes no other program; build it with --bus-program"):
            device.load_program()
        return
    # the weights of another build, then those of this one again
    other = DmaAccelerator(Path(BENCH["other"]), send, receive, np.zeros, mmio, stall=60)
    for loading, codes in ((other, BENCH["other_outputs"]), (device, BENCH["outputs"])):
        loading.load_program()
        found = loading.run_codes(inputs)
        for name, values in codes.items():
            np.testing.assert_array_equal(found[name], np.array(values))


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def a_program_gets_the_integers_of_the_model(dut, stall):
    cocotb.start_soon(Clock(dut.aclk, 10, "ns").start())
    mmio = Mmio(dut)
    send = [Sending(dut, name, stall) for name in BENCH["sources"]]
    receive = [Receiving(dut, name, stall) for name in BENCH["sinks"]]
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 4)
    dut.aresetn.value = 1
    await ClockCycles(dut.aclk, 2)
    await bridge(software)(mmio, send, receive)
