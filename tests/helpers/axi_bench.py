"""Cocotb bench of the AXI4-Stream wrapper, by cocotbext-axi's source and sink."""

import os
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, with_timeout
from cocotbext.axi import AxiStreamBus, AxiStreamSink, AxiStreamSource


def read_frames(name):
    """Frames as bytes, one per line."""
    lines = (Path(os.environ["AXI_BENCH_VECTORS"]) / name).read_text().split()
    return [bytes.fromhex(line) for line in lines]


def pauses(probability):
    while True:
        yield random.random() < probability


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.4], back_pressure=[0.0, 0.4])
async def frames_come_out_as_expected(dut, idle, back_pressure):
    cocotb.start_soon(Clock(dut.aclk, 10, "ns").start())
    ends = []
    for kind, prefix in ((AxiStreamSource, "s_axis"), (AxiStreamSink, "m_axis")):
        bus = AxiStreamBus.from_prefix(dut, prefix)
        ends.append(kind(bus, dut.aclk, dut.aresetn, reset_active_level=False))
    source, sink = ends
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 4)
    dut.aresetn.value = 1
    source.set_pause_generator(pauses(idle))
    sink.set_pause_generator(pauses(back_pressure))
    for frame in read_frames("input.hex"):
        await source.send(frame)
    for expected in read_frames("expected.hex"):
        frame = await with_timeout(sink.recv(), 1, "ms")
        assert bytes(frame.tdata) == expected
    await ClockCycles(dut.aclk, 100)
    assert sink.empty()
