"""A board simulated behind its UART pins, as a transport for the host."""

from collections import deque

import pytest
from amaranth.hdl import Elaboratable, Module, ResetInserter, Signal, signed
from amaranth.sim import Simulator
from increment import Increment

from nnef_hw.boards.core import LinkedCore
from nnef_hw.run.link import Host, Timing

DIVIDER = 4
CYCLE = 1e-6
IDLE_CYCLES = 256
FRAME_BEATS = 5
MANIFEST_HASH = bytes(range(100, 132))
TIMING = Timing(
    silence=400 * CYCLE, reply=3500 * CYCLE, stall=20_000 * CYCLE, pause=50 * CYCLE, retries=4
)


class PowerButton(Elaboratable):
    """Resets a whole board, as power would; counts cycles."""

    def __init__(self, core):
        self.cycle = Signal(32)
        self.core = core
        self.pressed = Signal()

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = ResetInserter(self.pressed)(self.core)
        m.d.sync += self.cycle.eq(self.cycle + 1)
        return m


class SimulatedBoard:
    """Transport onto the rx and tx pins of a :class:`LinkedCore` in the simulator.

    ``mangle_request`` and ``mangle_reply`` may change the bytes of each write and each byte read.
    """

    def __init__(self, accelerator):
        self.accelerator = accelerator
        self.core = LinkedCore(
            accelerator,
            clk_hz=round(1 / CYCLE),
            baud=round(1 / CYCLE) // DIVIDER,
            manifest_hash=MANIFEST_HASH,
            idle_cycles=IDLE_CYCLES,
            frames={"i": FRAME_BEATS, "o": FRAME_BEATS},
        )
        self.mangle_request = bytes
        self.mangle_reply = lambda byte: bytes([byte])
        self.enable = True
        self.pressed = False
        self.accepted = []
        self.lit = 0
        self.request_starts, self.reply_starts = [], []
        self.outgoing, self.incoming = deque(), deque()
        top = PowerButton(self.core)
        self.top = top
        self.simulator = Simulator(top)
        self.simulator.add_clock(CYCLE)
        self.simulator.add_testbench(self._drive, background=True)
        self.simulator.add_testbench(self._listen, background=True)
        self.simulator.add_testbench(self._watch, background=True)
        self.simulator.add_testbench(self._light, background=True)
        self.now = 0.0
        self.advance(0)

    async def _drive(self, ctx):
        driven = None
        while True:
            if driven != (self.enable, self.pressed):
                driven = self.enable, self.pressed
                ctx.set(self.accelerator.enable, self.enable)
                ctx.set(self.top.pressed, self.pressed)
            if not self.outgoing:
                await ctx.delay(CYCLE)
                continue
            byte = self.outgoing.popleft()
            self.request_starts.append(ctx.get(self.top.cycle))
            for bit in [0, *((byte >> k) & 1 for k in range(8)), 1]:
                ctx.set(self.core.rx, bit)
                await ctx.delay(DIVIDER * CYCLE)

    async def _listen(self, ctx):
        while True:
            await ctx.negedge(self.core.tx)
            self.reply_starts.append(ctx.get(self.top.cycle))
            await ctx.delay(DIVIDER * CYCLE / 2)
            byte = 0
            for k in range(8):
                await ctx.delay(DIVIDER * CYCLE)
                byte |= ctx.get(self.core.tx) << k
            await ctx.delay(DIVIDER * CYCLE)
            assert ctx.get(self.core.tx) == 1
            self.incoming.extend(self.mangle_reply(byte))

    async def _watch(self, ctx):
        while True:
            await ctx.changed(self.accelerator.parity)
            beat = ctx.get(self.accelerator.beat)
            self.accepted.append(([*beat.data], beat.last))

    async def _light(self, ctx):
        while True:
            await ctx.changed(self.core.led)
            self.lit = ctx.get(self.core.led)

    def advance(self, cycles):
        """Let the board run."""
        self.now += (cycles + 0.25) * CYCLE
        self.simulator.run_until(self.now)

    def write(self, payload):
        self.outgoing.extend(self.mangle_request(payload))

    def read(self, timeout):
        waited = 0
        while not self.incoming and waited * CYCLE < timeout:
            self.advance(20)
            waited += 20
        received = bytes(self.incoming)
        self.incoming.clear()
        return received


@pytest.fixture
def make_board():
    """Build a simulated board with an accelerator that adds 1 to its codes."""

    def make(**arguments):
        return SimulatedBoard(Increment(**arguments))

    return make


@pytest.fixture
def board(make_board):
    """A simulated board with one 8-bit lane."""
    return make_board()


@pytest.fixture
def host(board):
    """A host in session with the board."""
    host = Host(board, TIMING)
    host.open(MANIFEST_HASH)
    return host


@pytest.fixture
def make_host():
    """Connect a host to a transport, with the timing of the simulated board."""
    return lambda transport, **arguments: Host(transport, TIMING, **arguments)


@pytest.fixture
def wide_signed():
    """Accelerator arguments for codes of two bytes."""
    return {"lanes": 3, "shape": signed(12)}
