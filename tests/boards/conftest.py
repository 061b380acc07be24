"""A board simulated behind its UART pins, as a transport for the host."""

import functools

import pytest
from amaranth.hdl import signed
from increment import Increment
from linked_core import CoreModel, CoreRun

from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.interfaces import Uart
from nnef_hw.host.link import Host, Timing

DIVIDER = 4
CYCLE = 1e-6
IDLE_CYCLES = 256
FRAME_BEATS = 5
MANIFEST_HASH = bytes(range(100, 132))
TIMING = Timing(
    silence=400 * CYCLE, reply=3500 * CYCLE, stall=20_000 * CYCLE, pause=50 * CYCLE, retries=4
)


@functools.cache
def core_model(*, long_wires=False, frame_beats=FRAME_BEATS, **arguments):
    """An :class:`.Increment` behind its link, compiled once."""
    core = LinkedCore(
        Increment(**arguments),
        clk_hz=round(1 / CYCLE),
        link=Uart(round(1 / CYCLE) // DIVIDER),
        manifest_hash=MANIFEST_HASH,
        idle_cycles=IDLE_CYCLES,
        frames={"i": frame_beats, "o": frame_beats},
        long_wires=long_wires,
    )
    return CoreModel(core, DIVIDER)


class SimulatedBoard:
    """Transport onto the rx and tx pins of a :class:`LinkedCore` in Verilator.

    ``mangle_request`` and ``mangle_reply`` may change the bytes of each write and each byte read.
    """

    def __init__(self, model):
        self.mangle_request = bytes
        self.mangle_reply = lambda byte: bytes([byte])
        self.enable = True
        self.pressed = False
        self.latency = model.latency
        self.run = CoreRun(model)
        self.accepted = self.run.accepted
        self.request_starts = self.run.request_starts
        self.reply_starts = self.run.reply_starts
        self.outgoing, self.incoming = bytearray(), bytearray()

    @property
    def lit(self):
        return self.run.lit

    def advance(self, cycles):
        """Let the board run."""
        end = self.run.cycle + cycles
        while self.run.cycle < end:
            sent, self.outgoing = self.outgoing, bytearray()
            received = self.run.advance(
                end - self.run.cycle, sent=sent, enable=self.enable, pressed=self.pressed
            )
            for byte in received:
                self.incoming.extend(self.mangle_reply(byte))

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

    boards = []

    def make(**arguments):
        boards.append(SimulatedBoard(core_model(**arguments)))
        return boards[-1]

    yield make
    for board in boards:
        board.run.close()


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
