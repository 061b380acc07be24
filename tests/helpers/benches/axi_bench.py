"""Cocotb bench of the AXI4-Stream wrapper, by cocotbext-axi's source and sink."""

import os
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, with_timeout
from cocotbext.axi import AxiStreamBus, AxiStreamSink, AxiStreamSource


def read_frames(kind):
    """Frames as bytes, one per line, of every stream ``s_axis...`` or ``m_axis...``."""
    paths = Path(os.environ["AXI_BENCH_VECTORS"]).glob(f"{kind}*.hex")
    return {path.stem: [bytes.fromhex(line) for line in path.read_text().split()] for path in paths}


def pauses(probability):
    while True:
        yield random.random() < probability


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.4], back_pressure=[0.0, 0.4])
async def frames_come_out_as_expected(dut, idle, back_pressure):
    cocotb.start_soon(Clock(dut.aclk, 10, "ns").start())
    inputs, outputs = read_frames("s_axis"), read_frames("m_axis")

    def end(kind, name, probability):
        bus = AxiStreamBus.from_prefix(dut, name)
        made = kind(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        made.set_pause_generator(pauses(probability))
        return made

    sources = {name: end(AxiStreamSource, name, idle) for name in inputs}
    sinks = {name: end(AxiStreamSink, name, back_pressure) for name in outputs}
    has_states = hasattr(dut, "restart")
    if has_states:
        dut.restart.value = 0
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 4)
    dut.aresetn.value = 1
    for _ in range(1 + has_states):
        for name, source in sources.items():
            for frame in inputs[name]:
                await source.send(frame)
        for name, sink in sinks.items():
            for expected in outputs[name]:
                frame = await with_timeout(sink.recv(), 1, "ms")
                assert bytes(frame.tdata) == expected
        await ClockCycles(dut.aclk, 100)
        assert all(sink.empty() for sink in sinks.values())
        if has_states:
            # The same sequence once more, from the initial states.
            dut.restart.value = 1
            await ClockCycles(dut.aclk, 1)
            dut.restart.value = 0
