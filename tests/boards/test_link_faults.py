"""Single faults on the line, in either direction: no wrong result, and one repeat mends them.

The board's top runs in Verilator; the faults are made between the host and the pins.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from increment import Increment

from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.hardware.top import BoardTop
from nnef_hw.boards.interfaces import Uart
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.host.link import Host, LinkError, Timing
from nnef_hw.sim.board_runner import BoardTransport

pytestmark = [pytest.mark.system, pytest.mark.verilator]

CLK_HZ = 4_000_000
BAUD = 1_000_000
IDLE_CYCLES = 512
TIMING = Timing(
    silence=1.5 * IDLE_CYCLES / CLK_HZ, reply=3000 / CLK_HZ, stall=0.01, pause=50 / CLK_HZ
)
FRAME_BYTES = 3
REPLAYED = 3
HASH = bytes(range(32))
# Bytes of one frame's packets: DATA_END and READ; ACK and RESULT.
LENGTHS = {"request": (7 + FRAME_BYTES, 7), "reply": (7, 7 + FRAME_BYTES)}


@dataclass(frozen=True)
class Fault:
    """What happens to one packet of a frame, from one of its bytes on."""

    direction: str
    packet: int
    kind: str
    place: int = 0
    value: int = 0

    def apply(self, packet):
        head, byte, tail = packet[: self.place], packet[self.place], packet[self.place + 1 :]
        return {
            "flip": head + bytes([byte ^ self.value]) + tail,
            "drop": head + tail,
            "insert": head + bytes([self.value, byte]) + tail,
            "double": head + bytes([byte, byte]) + tail,
            "cut": head,
            "lose": b"",
            "repeat": packet + packet,
        }[self.kind]


def single_faults(values, lengths=LENGTHS):
    """Yield every fault of one bit, one byte or one packet; bytes are changed by ``values``."""
    for direction, packets in lengths.items():
        for packet, length in enumerate(packets):
            yield Fault(direction, packet, "lose")
            yield Fault(direction, packet, "repeat")
            for place in range(length):
                for kind in ("drop", "double", "cut"):
                    yield Fault(direction, packet, kind, place)
                for value in values:
                    yield Fault(direction, packet, "flip", place, value)
                yield Fault(direction, packet, "insert", place, 0xA5)


class Line:
    """A transport that makes one fault per frame; a reply comes as one piece."""

    def __init__(self, board):
        self.board = board
        self.fault = None
        self.counts = {"request": 0, "reply": 0}

    def arm(self, fault):
        self.fault = fault
        self.counts = {"request": 0, "reply": 0}

    def write(self, packet):
        self.board.write(self._pass("request", packet))

    def read(self, timeout):
        received = self.board.read(timeout)
        while more := self.board.read(60 / CLK_HZ) if received else b"":
            received += more
        return self._pass("reply", received) if received else b""

    def _pass(self, direction, packet):
        fault = self.fault
        if fault is None or fault.direction != direction:
            return packet
        number = self.counts[direction]
        self.counts[direction] += 1
        return fault.apply(packet) if number == fault.packet else packet


@pytest.fixture(scope="module")
def verilog():
    core = LinkedCore(
        Increment(), clk_hz=CLK_HZ, link=Uart(BAUD), manifest_hash=HASH, idle_cycles=IDLE_CYCLES,
        frames={"i": FRAME_BYTES, "o": FRAME_BYTES},
    )  # fmt: skip
    top = BoardTop(core, pll=None, clk_hz=CLK_HZ)
    return to_verilog(top, name="board_top", ports=[top.clk, top.rx, top.tx, top.led])


def check(verilog, faults, frames):
    """Send frames, each with the next fault; results are right and no fault costs two repeats."""
    with BoardTransport(verilog, clk_hz=CLK_HZ, link=Uart(BAUD)) as board:
        line = Line(board)
        host = Host(line, TIMING)
        host.open(HASH)
        for fault, frame in zip(faults, frames, strict=False):
            before = host.repeats
            line.arm(fault)
            (result,) = host.infer([frame.tobytes()], FRAME_BYTES)
            assert result == (frame + 1).tobytes(), fault
            assert host.repeats - before <= 1, fault
        line.arm(None)
        assert host.repeats > 0
        assert host.counters().frames == len(frames) % 256


def test_every_bit_and_packet_over_a_thousand_frames(verilog, rng):
    faults = itertools.cycle(single_faults([1 << bit for bit in range(8)]))
    check(verilog, faults, rng.integers(0, 256, (1000, FRAME_BYTES), np.uint8))


@pytest.mark.nightly
def test_every_value_of_every_byte(verilog, rng):
    faults = list(single_faults(range(1, 256)))
    check(verilog, faults, rng.integers(0, 256, (len(faults), FRAME_BYTES), np.uint8))


class Session:
    """Requests that carry no data: each is made with a fault, and must do what it does, once."""

    def __init__(self, board):
        self.line = Line(board)
        self.host = Host(self.line, TIMING)
        self.identity = self.host.open(HASH)
        self.start()

    def start(self):
        """Begin anew, with a frame that has been through."""
        self.host.abort()
        assert list(self.host.infer([b"abc"], FRAME_BYTES)) == [b"bcd"]
        self.counters = self.host.counters()
        assert self.counters.frames == 1

    def identify(self, fault):
        self.line.arm(fault)
        assert self.host.identify() == self.identity, fault

    def count(self, fault):
        """Nothing that is counted changes, but how many packets were damaged: one at most."""
        before = self.host.counters()
        self.line.arm(fault)
        found = self.host.counters()
        assert found == replace(before, damaged=found.damaged), fault
        assert (found.damaged - before.damaged) % 256 <= 1, fault

    def refuse(self, fault):
        self.line.arm(fault)
        with pytest.raises(LinkError, match="refuses COUNTERS: tensor; it has no layer of that"):
            self.host.layer_counts(1)

    def replay(self, fault):
        """So many frames pass, and none of their results is there to be read."""
        before = self.host.counters().frames
        self.line.arm(fault)
        assert self.host.replay(REPLAYED), fault
        self.line.arm(None)
        self.host.wait_for_replay()
        assert (self.host.counters().frames - before) % 256 == REPLAYED, fault
        assert self.host.read() == b"", fault

    def abort(self, fault):
        self.host.send(b"x")
        self.line.arm(fault)
        self.host.abort()
        self.line.arm(None)
        assert self.host.counters().frames == 0, fault
        self.start()


LENGTHS_OF_REQUESTS = {
    "identify": (7, 47), "count": (7, 17), "refuse": (7, 7), "replay": (9, 7), "abort": (7, 7),
}  # fmt: skip


def check_requests(verilog, name, values):
    """Make a request with every fault; one repeat mends each, and data goes through afterwards."""
    request, reply = LENGTHS_OF_REQUESTS[name]
    with BoardTransport(verilog, clk_hz=CLK_HZ, link=Uart(BAUD)) as board:
        session = Session(board)
        attack = getattr(session, name)
        lengths = {"request": (request,), "reply": (reply,)}
        for fault in single_faults(values, lengths):
            before = session.host.repeats
            attack(fault)
            assert session.host.repeats - before <= 1, fault
        session.line.arm(None)
        assert session.host.repeats > request + reply
        assert list(session.host.infer([b"ABC"], FRAME_BYTES)) == [b"BCD"]


@pytest.mark.parametrize("name", LENGTHS_OF_REQUESTS)
def test_requests_without_data(name, verilog):
    check_requests(verilog, name, [1 << bit for bit in range(8)])


@pytest.mark.nightly
@pytest.mark.parametrize("name", LENGTHS_OF_REQUESTS)
def test_every_value_of_requests_without_data(name, verilog):
    check_requests(verilog, name, range(1, 256))
