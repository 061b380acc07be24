"""Two clocks of a board: what crosses between them, at any ratio and with any phases."""

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator
from increment import Increment

from nnef_hw.boards import BOARDS, find_board
from nnef_hw.boards.hardware.clocks.crossing import ByteCrossing
from nnef_hw.boards.hardware.clocks.ratio import ClockRatio
from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.hardware.pll import SettablePll
from nnef_hw.boards.hardware.top import BoardTop
from nnef_hw.boards.interfaces import ClassOnLeds, I2s, Spi, Uart
from nnef_hw.codegen.board import may_follow
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.host.link import Host, Timing
from nnef_hw.host.protocol import RATIO_CYCLES
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.sim.board_runner import BoardTransport

pytestmark = pytest.mark.system

RATIOS = [0.11, 0.5, 0.93, 1.0, 1.07, 2.0, 3.0625, 17.3]
BYTES = 60
MOST_CYCLES = 30_000


def two_clocks(component, ratio, rng):
    """Return a simulator in which ``target`` has so many cycles in one of ``source``."""
    m = Module()
    m.domains.source = ClockDomain("source", reset_less=True)
    m.domains.target = ClockDomain("target", reset_less=True)
    m.submodules.dut = component
    simulator = Simulator(m)
    period = 1e-6 * (1 + rng.random())
    for domain, length in (("source", period), ("target", period / ratio)):
        simulator.add_clock(length, phase=length * rng.random(), domain=domain)
    return simulator


@pytest.mark.parametrize("ratio", RATIOS)
def test_every_byte_crosses_once_and_in_order(ratio, rng):
    """Both ends hesitate; what waits at the input changes as soon as it may."""
    for _ in range(4):
        check_crossing(ratio, rng)


def check_crossing(ratio, rng):
    sent = rng.integers(256, size=BYTES).tolist()
    offers, takes = (0.2 + 0.8 * rng.random(2)).tolist()
    received = []
    dut = ByteCrossing("source", "target")
    simulator = two_clocks(dut, ratio, rng)

    async def offer(context):
        for byte in sent:
            while rng.random() > offers:
                # what nobody offers may be anything
                context.set(dut.i.payload, int(rng.integers(256)))
                await context.tick("source")
            context.set(dut.i.valid, 1)
            context.set(dut.i.payload, byte)
            await context.tick("source").until(dut.i.ready)
            context.set(dut.i.valid, 0)

    async def take(context):
        for _ in range(MOST_CYCLES):
            if len(received) == BYTES:
                break
            context.set(dut.o.ready, int(rng.random() < takes))
            *_, valid, byte, ready = await context.tick("target").sample(
                dut.o.valid, dut.o.payload, dut.o.ready
            )
            if valid and ready:
                received.append(byte)
        context.set(dut.o.ready, 1)
        *_, valid = await context.tick("target").sample(dut.o.valid).repeat(20)
        assert not valid

    simulator.add_testbench(offer)
    simulator.add_testbench(take)
    simulator.run()
    assert received == sent


@pytest.mark.parametrize("ratio", [0.11, 1.0, 3.0625])
def test_the_ratio_is_counted(ratio, rng):
    m = Module()
    m.domains.board = ClockDomain("board", reset_less=True)
    m.domains.sync = ClockDomain("sync", reset_less=True)
    m.submodules.dut = dut = ClockRatio("board")
    simulator = Simulator(m)
    simulator.add_clock(1e-6, domain="board")
    simulator.add_clock(1e-6 / ratio, phase=1e-6 / ratio * rng.random(), domain="sync")
    counts, spaces = [], []

    async def watch(context):
        for _ in range(3):
            spaces.append(0)
            tick = 0
            while not tick:
                *_, tick = await context.tick().sample(dut.tick)
                spaces[-1] += 1
            counts.append(context.get(dut.cycles))

    simulator.add_testbench(watch)
    simulator.run()
    first, *rest = counts
    assert first == 0
    assert rest == spaces[1:]
    assert all(abs(count - RATIO_CYCLES * ratio) <= 1 for count in rest)


BOARD_HZ = 4_000_000
BAUD = 1_000_000
FRAME_BYTES = 3
HASH = bytes(range(32))


@pytest.fixture(scope="module")
def verilog():
    """Return the top of a board whose accelerator has a clock of its own."""
    core = LinkedCore(
        Increment(), clk_hz=BOARD_HZ, has_own_clock=True, link=Uart(BAUD), manifest_hash=HASH,
        frames={"i": FRAME_BYTES, "o": FRAME_BYTES},
    )  # fmt: skip
    pll = find_board("ulx3s_85f").clock(50.0)
    top = BoardTop(core, pll=pll, clk_hz=BOARD_HZ)
    return to_verilog(top, name="board_top", ports=[top.clk, top.rx, top.tx, top.led])


@pytest.mark.verilator
@pytest.mark.parametrize("ratio", [0.42, 0.9973, 1.0, 1.51, 3.0625, 22.9])
def test_a_board_with_two_clocks_is_exact_and_tells_them(ratio, verilog, rng):
    """The line keeps the oscillator's time; 0.42 leaves the link 16.8 cycles for a byte."""
    timing = Timing(silence=0.05, reply=0.02, stall=0.1, pause=0.0005)
    link = Uart(BAUD)
    with BoardTransport(verilog, clk_hz=BOARD_HZ, core_hz=ratio * BOARD_HZ, link=link) as board:
        host = Host(board, timing=timing)
        identity = host.open(HASH)
        assert identity.clk_hz == BOARD_HZ
        host.abort()
        for frame in rng.integers(256, size=(4, FRAME_BYTES), dtype=np.uint8):
            (result,) = host.infer([frame.tobytes()], FRAME_BYTES)
            assert result == (frame + 1).tobytes()
        counters = host.counters()
        assert (counters.frames, counters.damaged) == (4, 0)
        assert host.clock_hz() == pytest.approx(ratio * BOARD_HZ, rel=2e-3)
        assert host.repeats == 0


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_every_board_can_make_its_clock(board):
    """A PLL may follow where our own toolchain places, the oscillator suits and nobody has time."""
    board.clock(board.clock_mhz)
    family = board.device.family
    is_ours = board.has_pll and toolchain_of(family).places
    assert may_follow(board, Uart()) == is_ours
    assert issubclass(family.pll_class(), SettablePll) or not is_ours
    assert not may_follow(board, Uart(), [I2s])
    assert may_follow(board, Spi(), [ClassOnLeds]) == is_ours
    too_fast = Uart(round(board.input_mhz * 1e6 / 3))
    assert not may_follow(board, too_fast)
