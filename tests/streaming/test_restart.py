"""A restart in the middle of anything leaves an accelerator as it was after power-on."""

import numpy as np
import pytest
from recurrent_graphs import convolved, looped
from temporal_graphs import unlike_branches

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.host.streams import to_stream
from nnef_hw.ir import Stage
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.reference import run_fixed
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.streaming.hardware.accelerator import MOST_HOPS, Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.verilator

RESTARTS = 40
BEAT, RESTART, END = range(3)
# What i carries are commands: a beat; a restart after so many cycles; or so many cycles for all
# results to leave, which o has until then. Those of beats before a restart are thrown away.
BENCH = """
module top (
    input clk, rst,
    input [{command}+1:0] i__payload, input i__valid, output i__ready,
    output [{out_width}-1:0] o__payload, output o__valid, input o__ready
);
    wire [1:0] kind = i__payload[{command}+1:{command}];
    wire [15:0] cycles = i__payload[15:0];
    wire is_beat = kind == 0;
    reg [16:0] waited = 0;
    reg watched = 0;
    wire is_over = waited == cycles + (kind == 1 ? 1 + {hops} : 0);
    wire ready, valid;
    assign i__ready = is_beat ? ready : is_over;
    assign o__valid = valid & watched;
    always @(posedge clk)
        if (i__valid & !is_beat) begin
            waited <= is_over ? 0 : waited + 1;
            if (is_over) watched <= kind == 1;
        end
    accelerator accelerator (
        .clk(clk), .rst(rst), .restart(i__valid & kind == 1 & waited == cycles), .restarted(),
        .i__payload(i__payload[{width}-1:0]), .i__valid(i__valid & is_beat), .i__ready(ready),
        .o__payload(o__payload), .o__valid(valid), .o__ready(o__ready)
    );
endmodule
"""


def network(rng):
    """A shortcut, a pool and a padded convolution: forks, FIFOs, line buffers, a running pool."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 6, 6]), rng.normal(size=[4, 2, 3, 3]), padding=[(1, 1)] * 2)
    y = g.conv(x, rng.normal(size=[4, 4, 3, 3]), padding=[(1, 1)] * 2)
    x = g.pool("max_pool", g.op("add", x, y), 2)
    return g.build(g.conv(x, rng.normal(size=[3, 4, 2, 2])))


def recurrent(rng):
    """A state, which a restart resets: all that reads it has to be restarted first."""
    return convolved(seed=int(rng.integers(100)))


def loop(rng):
    """A loop that a restart may leave after any of its steps, with a memory that is filled."""
    return looped(3, step=-1)


def stepwise(rng):
    """Rows of steps before, in line buffers and a delay that gives codes as soon as it may."""
    step, _ = StreamTime().steps(simplify(unlike_branches(seed=int(rng.integers(100)))))
    return step.replaced(stage=Stage.FLOAT)


def early(rng):
    """A delay in front of many blocks: it may not begin before a restart has reached them."""
    g = GraphBuilder()
    x = g.input("x", [1, 2, 1, 1])
    both = g.op("concat", g.state("old", np.zeros([1, 2, 3, 1])), x, axis=2, name="both")
    parts = {"next": (1, 4), "late": (0, 1)}
    for name, (begin, end) in parts.items():
        g.op("slice", both, name=name, axes=[2], begin=[begin], end=[end], stride=[1],
             shape=[1, 2, end - begin, 1])  # fmt: skip
    g.update("old", "next")
    for _ in range(8):
        x = g.conv(x, rng.normal(size=[2, 2, 1, 1]))
    return g.build(g.op("add", "late", x))


@pytest.mark.parametrize(
    ("network", "board", "frames"),
    [
        pytest.param(network, "ice40", 1, marks=pytest.mark.nightly),
        pytest.param(network, "ecp5", 1, marks=pytest.mark.nightly),
        (recurrent, "ecp5", 2),
        (loop, "ecp5", 2),
        (stepwise, "ecp5", 14),
        (early, "ecp5", 6),
    ],
)
def test_restart_at_any_time(network, board, frames, fix, rng):
    graph = fix(network(rng))
    plan = schedule(graph, find_board(board))
    accelerator = Accelerator(plan, graph, restartable=True)
    tensor = graph.tensor(graph.inputs[0])
    codes = rng.integers(tensor.qtype.lo, tensor.qtype.hi + 1, (frames, *tensor.shape[1:]))
    expected = run_fixed(graph, {tensor.name: codes})[graph.outputs[0]]
    source, sink = (getattr(accelerator, name).payload.shape() for name in "io")
    taken, given = plan.inputs[0], plan.outputs[0]
    beats = [
        source.const({"data": word, "last": n % taken.beats == taken.beats - 1})
        for n, word in enumerate(to_stream(codes, taken).reshape(-1, taken.lanes).tolist())
    ]
    expected = to_stream(expected, given).reshape(-1, given.lanes).tolist()

    argument_bits = max(source.size, 16)
    bench = BENCH.format(
        width=source.size, out_width=sink.size, command=argument_bits, hops=MOST_HOPS
    )

    def command(kind, argument):
        return kind << argument_bits | argument

    commands = []
    for beats_before in rng.integers(1, 3 * len(beats) // frames, RESTARTS).tolist():
        commands += [command(BEAT, beats[n % len(beats)].as_bits()) for n in range(beats_before)]
        commands.append(command(RESTART, int(rng.integers(1, 60))))
        commands += [command(BEAT, beat.as_bits()) for beat in beats]
        commands.append(command(END, 4 * plan.latency + 2 * frames * plan.interval))
    runner = FastRunner(bench + to_verilog(accelerator, name="accelerator"))
    done = runner.run(
        np.array(commands, np.uint64), expected_beats=RESTARTS * len(expected), stall=0.5,
        seed=int(rng.integers(1 << 30)),
    )  # fmt: skip
    found = [list(sink.from_bits(word).data) for word in done.payloads.ravel().tolist()]
    assert found == RESTARTS * expected
