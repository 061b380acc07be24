# amaranth: UnusedElaboratable=no
"""Several tensors on one link: bytes to streams and back, and that nothing ever waits for ever."""

import contextlib

import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from simulators import run_benches

from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.hardware.counters import InferenceCounters
from nnef_hw.boards.hardware.frames import FrameMerger, FrameSplitter
from nnef_hw.boards.hardware.top import BoardTop
from nnef_hw.boards.interfaces import Uart
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.host.link import Host, LinkError, Timing
from nnef_hw.rtl.streams.stream import Fifo, beat_layout
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.sim.pysim import run_streams

CLK_HZ, BAUD = 1_000_000, 250_000
IDLE_CYCLES = 256
TIMING = Timing(silence=400e-6, reply=4e-3, stall=5e-3, pause=50e-6)
FRAME = 20

FORMATS = ((1, 8, False), (3, 12, True), (2, 5, False))
BEATS = (3, 2, 4)


def layout_of(lanes, bits, is_signed):
    shape = signed(bits) if is_signed else bits
    return data.StructLayout({"data": data.ArrayLayout(shape, lanes), "last": 1})


LAYOUTS = [layout_of(*each) for each in FORMATS]


def random_frames(rng, count):
    """Return (bytes of all frames, beats per stream)."""
    raw, beats = b"", [[] for _ in FORMATS]
    for _ in range(count):
        for n, (lanes, bits, is_signed) in enumerate(FORMATS):
            low = -(1 << (bits - 1)) if is_signed else 0
            for beat in range(BEATS[n]):
                codes = rng.integers(low, low + (1 << bits), lanes).tolist()
                beats[n].append({"data": codes, "last": beat == BEATS[n] - 1})
                size = 1 if bits <= 8 else 2
                raw += b"".join(c.to_bytes(size, "little", signed=is_signed) for c in codes)
    return raw, beats


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_frames_are_split(stall, rng):
    raw, beats = random_frames(rng, 4)
    splitter = FrameSplitter(LAYOUTS, BEATS)
    items = [{"data": [byte], "last": 0} for byte in raw]
    counts = {f"o{n}": len(each) for n, each in enumerate(beats)}
    run = run_streams(splitter, {"i": items}, counts, rng=rng, stall=stall)
    for n, each in enumerate(beats):
        assert run.items[f"o{n}"] == [LAYOUTS[n].const(beat) for beat in each]


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_frames_are_merged(stall, rng):
    raw, beats = random_frames(rng, 4)
    items = {f"i{n}": each for n, each in enumerate(beats)}
    run = run_streams(FrameMerger(LAYOUTS), items, {"o": len(raw)}, rng=rng, stall=stall)
    assert bytes(run.items["o"]) == raw


class Greedy(wiring.Component):
    """Takes a beat of every input at once, gives one of every output, and keeps hardly any.

    ``o_x`` gives sums, ``o_y`` differences.
    """

    def __init__(self):
        beat = stream.Signature(beat_layout(bits=8, signed=False, lanes=1))
        super().__init__({"i_x": In(beat), "i_y": In(beat), "o_x": Out(beat), "o_y": Out(beat)})

    def elaborate(self, platform):
        m = Module()
        x, y = self.i_x, self.i_y
        sums, differences = Fifo(x.payload.shape()), Fifo(x.payload.shape())
        m.submodules.sums, m.submodules.differences = sums, differences
        moves = x.valid & y.valid & sums.i.ready & differences.i.ready
        for queue, code, port in (
            (sums, x.p.data[0] + y.p.data[0], self.o_x),
            (differences, x.p.data[0] - y.p.data[0], self.o_y),
        ):
            wiring.connect(m, queue.o, wiring.flipped(port))
            m.d.comb += [
                queue.i.p.data[0].eq(code), queue.i.p.last.eq(x.p.last), queue.i.valid.eq(moves),
            ]  # fmt: skip
        m.d.comb += [x.ready.eq(moves), y.ready.eq(moves)]
        return m


def linked(accelerator, depth):
    """The accelerator's core with queues of so many beats."""
    shape = accelerator.i_x.payload.shape()
    frames = dict.fromkeys(("i_x", "i_y", "o_x", "o_y"), FRAME)
    queues = {name: Fifo(shape, depth=depth) for name in ("i_x", "o_y")}
    return LinkedCore(
        accelerator, clk_hz=CLK_HZ, link=Uart(BAUD), manifest_hash=bytes(32),
        idle_cycles=IDLE_CYCLES,        frames=frames, queues=queues,
    )  # fmt: skip


@pytest.fixture
def connect():
    """Return ``connect(depth)``: a host in session with a board whose queues have that depth."""
    with contextlib.ExitStack() as stack:

        def connect(depth):
            top = BoardTop(linked(Greedy(), depth), pll=None, clk_hz=CLK_HZ)
            verilog = to_verilog(top, name="board_top", ports=[top.clk, top.rx, top.tx, top.led])
            board = stack.enter_context(BoardTransport(verilog, clk_hz=CLK_HZ, link=Uart(BAUD)))
            host = Host(board, TIMING)
            host.open(bytes(32))
            return host

        yield connect


@pytest.mark.verilator
def test_host_runs_frames_of_several_tensors(connect, rng):
    """Inputs that are accepted together, outputs that are sent together, frames back to back."""
    host = connect(FRAME)
    x, y = rng.integers(0, 256, (2, 7, FRAME), np.uint8)
    frames = [a.tobytes() + b.tobytes() for a, b in zip(x, y, strict=True)]
    results = np.array([list(result) for result in host.infer(frames, 2 * FRAME)], np.uint8)
    np.testing.assert_array_equal(results, np.concatenate([x + y, x - y], axis=1))
    assert host.counters().frames == 7


@pytest.mark.verilator
def test_queues_of_less_than_a_frame_would_not_do(connect):
    """What the accelerator holds besides: two beats of results, and the link one of each input."""
    host = connect(FRAME - 6)
    with pytest.raises(LinkError, match="accelerator sent no result"):
        list(host.infer([bytes(2 * FRAME)], 2 * FRAME))


@pytest.mark.verilator
def test_replay_feeds_all_inputs_at_once(connect):
    host = connect(FRAME)
    host.replay(300)
    host.wait_for_replay()
    counters = host.counters()
    assert (counters.frames, counters.interval, counters.latency) == (300 % 256, FRAME, FRAME)


def test_queues_are_where_frames_wait():
    with pytest.raises(ValueError, match="cannot have queues"):
        LinkedCore(Greedy(), clk_hz=CLK_HZ, manifest_hash=bytes(32),
                   frames=dict.fromkeys(("i_x", "i_y", "o_x", "o_y"), FRAME))  # fmt: skip


def test_frames_are_counted_by_their_first_and_last_tensor():
    """A frame enters with any of its beats, and leaves with all of them."""
    counters = InferenceCounters(2, 2)
    busy, frames, latency = [], [], []

    async def bench(ctx):
        # (inputs taken, outputs taken); all frames have one beat
        script = [(0b01, 0), (0b01, 0), (0b10, 0), (0, 0b10), (0b10, 0b10), (0, 0b01), (0, 0b01)]
        ctx.set(counters.input_last, 0b11)
        ctx.set(counters.output_last, 0b11)
        for accepted, sent in [*script, (0, 0)]:
            ctx.set(counters.input_taken, accepted)
            ctx.set(counters.output_taken, sent)
            await ctx.tick()
            busy.append(ctx.get(counters.busy))
            frames.append(ctx.get(counters.counts.frames))
            latency.append(ctx.get(counters.counts.latency))

    run_benches(counters, bench)
    assert busy == [1, 1, 1, 1, 1, 1, 1, 0]
    assert frames == [0, 0, 0, 0, 0, 0, 1, 2]
    assert latency[-1] == 5
