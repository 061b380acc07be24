"""Generated tops of boards, simulated behind their UART pins: the fixed model's integers."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.top import board_top
from nnef_hw.boards.interfaces import DEFAULT_LINK, Uart
from nnef_hw.codegen.board import design_board, link_clock
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.host.link import Host, LinkError, Timing
from nnef_hw.host.manifest import manifest_hash
from nnef_hw.host.protocol import Request
from nnef_hw.host.streams import from_stream, to_stream
from nnef_hw.ir import Graph
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.netlist import mapped_verilog
from nnef_hw.samples.samples import Samples, load_samples
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

pytestmark = [pytest.mark.system, pytest.mark.verilator]

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"
# An unfinished packet is forgotten after 10.9 ms by an oscillator of 12 MHz; one lasts 0.63 ms.
TIMING = Timing(silence=0.015, reply=0.002, stall=0.002, pause=20e-6)
CODES = {False: np.uint8, True: np.int8}


@dataclass(frozen=True)
class Design:
    """A network on a board, and some inputs for it as codes."""

    graph: Graph
    plan: StreamingPlan
    verilog: str
    manifest_hash: bytes
    codes: dict[str, Any]

    @classmethod
    def of(cls, graph, samples, board, *, count=3, **options):
        fixed, _ = fix_model(graph, samples)
        target = find_board(board)
        plan = schedule(fixed, target, **options)
        manifest = make_manifest(
            fixed, plan, generator="test", link=DEFAULT_LINK,
            oscillator_mhz=link_clock(target, plan, DEFAULT_LINK),
        )  # fmt: skip
        verilog = design_board(plan, fixed, manifest, target).verilog
        codes = quantize_inputs(fixed, samples[:count].inputs)
        return cls(fixed, plan, verilog, manifest_hash(manifest), codes)

    @property
    def clk_hz(self):
        return round(self.plan.clock_mhz * 1e6)

    @property
    def board_hz(self):
        return round(find_board(self.plan.board).input_mhz * 1e6)

    def power_on(self):
        """Return the simulated board, as a transport."""
        return BoardTransport(self.verilog, clk_hz=self.board_hz, core_hz=self.clk_hz)

    def frames(self):
        """Inputs as the link wants them."""
        (source,) = self.plan.inputs
        beats = to_stream(self.codes[self.graph.inputs[0]], source)
        return [frame.astype(CODES[source.signed]).tobytes() for frame in beats]

    def infer(self, host):
        """Run all inputs through a board and return its codes."""
        (sink,) = self.plan.outputs
        results = list(host.infer(self.frames(), sink.beats * sink.lanes))
        beats = np.stack([np.frombuffer(result, CODES[sink.signed]) for result in results])
        return from_stream(beats, sink, self.graph.tensor(self.graph.outputs[0]).shape)

    def check(self, host):
        """Compare what a board computes with the fixed model."""
        expected = run_fixed(self.graph, self.codes)[self.graph.outputs[0]]
        assert len({row.tobytes() for row in expected}) == len(expected) >= 3
        np.testing.assert_array_equal(self.infer(host), expected)

    def check_on(self, line):
        """Compare what a board computes with the fixed model; return the host on its line."""
        host = Host(line, TIMING)
        host.open(self.manifest_hash)
        self.check(host)
        return host


class BadLine:
    """Transport that damages the first attempt of every request.

    ``request`` sends a damaged request; ``reply`` damages the byte at a position of the reply.
    """

    def __init__(self, board, request=None, reply=None):
        self.board = board
        self.damage_request = request or (lambda data: board.write(data))
        self.damage_reply = reply or (lambda _, byte: byte)
        self.requests, self.repeats = [], 0
        self.is_first = False
        self.position = 0

    def write(self, data):
        self.is_first = self.requests[-1:] != [data]
        self.position = 0
        if self.is_first:
            self.requests.append(data)
            self.damage_request(data)
        else:
            self.repeats += 1
            self.board.write(data)

    def read(self, timeout):
        received = self.board.read(timeout)
        while received and self.is_first:
            damaged = b""
            for byte in received:
                damaged += self.damage_reply(self.position, bytes([byte]))
                self.position += 1
            if damaged:
                return damaged
            received = self.board.read(timeout)
        return received


@pytest.fixture(scope="module")
def digits():
    """The example on an iCEBreaker."""
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    return Design.of(graph, load_samples(EXAMPLE / "samples.npz", graph), "icebreaker")


@pytest.fixture
def board(digits):
    """The example's board, just powered on."""
    with digits.power_on() as board:
        yield board


@pytest.fixture
def tiny(rng):
    """A network with frames of 16 bytes, results of 4 and much to do, and samples for it."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 1, 4, 4]), rng.normal(size=[3, 1, 2, 2]), rng.normal(size=[1, 3]))
    x = g.reshape(g.op("relu", x), [1, 27])
    for inputs, outputs in ((27, 160), (160, 4)):
        weights = rng.normal(size=[outputs, inputs])
        x = g.op("linear", x, weights, rng.normal(size=[1, outputs]))
    return g.build(), Samples({"x": rng.normal(size=[80, 1, 4, 4])})


def test_board_computes_the_integers_of_the_model(digits, board):
    host = Host(board, TIMING)
    identity = host.open(digits.manifest_hash)
    assert identity.manifest_hash == digits.manifest_hash
    assert host.clock_hz() == pytest.approx(digits.clk_hz, rel=2e-4)
    begin = board.cycles
    digits.check(host)
    # of the accelerator's clock
    on_line = (board.cycles - begin) * digits.clk_hz / digits.board_hz
    counters = host.counters()
    assert (counters.frames, counters.damaged) == (3, 0)
    # the UART feeds the accelerator more slowly than it works
    assert digits.plan.latency <= counters.latency < digits.plan.latency + on_line / 3
    assert digits.plan.interval < counters.interval < on_line / 2
    assert board.cycles / board.seconds > 100_000


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.parametrize("name", ["icebreaker", "ulx3s_85f", "tang_nano_9k"])
def test_mapped_board_computes_the_integers_of_the_model(tiny, name):
    """The cells that nextpnr gets: accelerator, link, reset and PLL, behind the UART's pins."""
    design = Design.of(*tiny, name)
    device = find_board(name).device
    mapped = mapped_verilog(design.verilog, device, top="board_top")
    with replace(design, verilog=mapped).power_on() as board:
        design.check_on(board)


def test_vectors_that_are_a_beat(rng):
    """The link gathers the bytes of a vector, and takes results apart."""
    g = GraphBuilder()
    x = g.op("linear", g.input("x", [1, 7]), rng.normal(size=[9, 7]), rng.normal(size=[1, 9]))
    x = g.op("linear", g.op("relu", x), rng.normal(size=[4, 9]), rng.normal(size=[1, 4]))
    samples = Samples({"x": rng.normal(size=[80, 7])})
    design = Design.of(g.build(x), samples, "ulx3s_85f", count=20, target_fps=87.5e6)
    assert (design.plan.interval, design.plan.inputs[0].lanes) == (1, 7)
    with design.power_on() as board:
        design.check_on(board)


def test_another_build_is_refused(digits, board):
    with pytest.raises(LinkError, match=f"board runs build {digits.manifest_hash.hex()[:16]}, not"):
        Host(board, TIMING).open(bytes(32))


@pytest.mark.parametrize(
    "kind",
    few(
        ["damaged request", "damaged reply", "damaged length", "lost request", "lost reply"],
        ["damaged request", "damaged length"],
    ),
)
def test_every_packet_fails_once(digits, board, rng, kind):
    """No first attempt of any request succeeds, every second one does."""

    def damage(data):
        position = int(rng.integers(len(data)))
        flipped = data[position] ^ 1 << int(rng.integers(8))
        board.write(data[:position] + bytes([flipped]) + data[position + 1 :])

    def flip_at(place):
        return lambda position, byte: bytes([byte[0] ^ 0x10]) if position == place else byte

    line = {
        "damaged request": BadLine(board, request=damage),
        # the first byte of a result, or the CRC
        "damaged reply": BadLine(board, reply=flip_at(5)),
        "damaged length": BadLine(board, reply=flip_at(4)),
        "lost request": BadLine(board, request=lambda data: None),
        "lost reply": BadLine(board, reply=lambda position, byte: b""),
    }[kind]
    counters = digits.check_on(line).counters()
    sent = [packet[1] for packet in line.requests]
    assert sent.count(Request.DATA) == sent.count(Request.DATA_END) == 3
    assert sent.count(Request.READ) >= 1
    assert line.repeats == len(line.requests)
    assert counters.frames == 3
    # a damaged start byte or length is not always answered
    assert (0 < counters.damaged <= len(sent)) == (kind == "damaged request")


@pytest.mark.parametrize("pause", [0, 50_000], ids=["at_once", "after_reply"])
def test_every_packet_comes_twice(digits, board, pause):
    def double(data):
        board.write(data)
        board.advance(pause)
        board.write(data)

    line = BadLine(board, request=double)
    assert digits.check_on(line).counters().frames == 3
    if pause:
        assert line.repeats == 0


def test_abort_within_a_frame(digits, board):
    """Neither the rest of a frame nor a result nobody read reaches the next frames."""
    host = Host(board, TIMING)
    host.open(digits.manifest_hash)
    first, second, _ = digits.frames()
    for offset in range(0, len(first), 56):
        assert host.send(first[offset : offset + 56], end=offset + 56 >= len(first))
    assert host.send(second[:56])
    host.abort()
    digits.check(host)
    assert host.counters().frames == 3


def test_counters_of_a_busy_accelerator(tiny):
    """On a line faster than the accelerator they are the plan's, and the host is told to wait."""
    design = Design.of(*tiny, "icebreaker", count=80, target_fps=5000)
    baud = design.clk_hz // 4
    top, ports = board_top(
        find_board("icebreaker"), Accelerator(design.plan, design.graph), design.plan.clock_mhz,
        design.manifest_hash, link=Uart(baud),
    )  # fmt: skip
    verilog = to_verilog(top, name="board_top", ports=ports)
    with BoardTransport(verilog, clk_hz=design.clk_hz, link=Uart(baud)) as board:
        line = BadLine(board)
        counters = design.check_on(line).counters()
        sent = [packet[1] for packet in line.requests]
        # there is room for some 50 frames on the way
        assert sent.count(Request.DATA_END) > counters.frames == 80
        assert line.repeats == counters.damaged == 0
        assert counters.interval == design.plan.interval
        assert counters.latency == pytest.approx(design.plan.latency, abs=20)


@pytest.mark.parametrize("name", few(["ulx3s_85f", "tang_nano_20k"], ["tang_nano_20k"]))
def test_other_tops(tiny, name):
    """The other devices and PLLs."""
    design = Design.of(*tiny, name)
    with design.power_on() as board:
        host = Host(board, TIMING)
        host.open(design.manifest_hash)
        assert host.clock_hz() == pytest.approx(design.clk_hz, rel=1e-3)
        design.check(host)
        assert host.counters().frames == 3
