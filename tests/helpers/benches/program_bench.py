"""Cocotb bench of programs that software loads through registers, over the benches of the bus."""

import cocotb
from bus_bench import BENCH, FRAMES, exchange, refused, started
from cocotb.triggers import ClockCycles

RUN, RESTART, LOAD = 1, 2, 4
PROGRAMS = {name: bytes.fromhex(image) for name, image in BENCH["programs"].items()}
EXPECTED = {
    name: {port: [bytes.fromhex(x) for x in frames] for port, frames in found.items()}
    for name, found in BENCH["expected"].items()
}


def words(image):
    """Words of a program as the register takes them."""
    return [int.from_bytes(image[n : n + 4], "little") for n in range(0, len(image), 4)]


async def load(software, name):
    """Write a program as a whole."""
    await software.write("control", RUN | LOAD)
    for word in words(PROGRAMS[name]):
        await software.write("program", word)
    assert await software.read("program_left") == 0


async def computes(dut, software, stall, name):
    """Run all frames, whose results are those of a program."""
    FRAMES.update(EXPECTED[name])
    await exchange(dut, software, stall)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def each_program_computes_its_weights(dut, stall):
    software = await started(dut, stall)
    await computes(dut, software, stall, "first")
    for name in ("second", "first"):
        await load(software, name)
        assert await software.read("frames") == await software.read("status") == 0
        await computes(dut, software, stall, name)


@cocotb.test()
async def nothing_runs_with_half_a_program(dut):
    software = await started(dut, 0.0)
    clock = getattr(dut, BENCH["clock"])
    image = words(PROGRAMS["second"])
    # none was asked for
    assert await software.read("program_left") == 0
    assert await refused(software.write("program", image[0]))
    await software.write("control", RUN | LOAD)
    assert await software.read("program_left") == len(image)
    # a part of a word is none
    assert await refused(software.write("program", image[0], size=3))
    for word in image[:10]:
        await software.write("program", word)
    running = cocotb.start_soon(computes(dut, software, 0.0, "second"))
    await ClockCycles(clock, 3 * BENCH["latency"])
    assert await software.read("frames") == await software.read("status") == 0
    # neither a restart nor a reset of the bus ends it
    await software.write("control", RUN | RESTART)
    assert await software.read("program_left") == len(image) - 10
    reset = getattr(dut, software.reset)
    reset.value = software.active
    await ClockCycles(clock, 3)
    reset.value = 1 - software.active
    await ClockCycles(clock, 3)
    assert await software.read("program_left") == len(image) - 10
    # it comes anew from its first word on
    await software.write("control", RUN | LOAD)
    assert await software.read("program_left") == len(image)
    running.cancel()
    for word in image:
        assert await software.read("frames") == 0
        await software.write("program", word)
    assert await refused(software.write("program", image[0]))
    assert await software.read("program_left") == 0
