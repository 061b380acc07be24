"""Random accelerators under Icarus Verilog: unknown registers at power-up, resets at any time."""

import re
import subprocess

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from streamable_graphs import random_networks

from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import ErrorGroup, TargetError, UnsupportedError
from nnef_hw.reference import run_fixed
from nnef_hw.run.rtl import payloads
from nnef_hw.run.simulate import random_codes
from nnef_hw.streaming import find_board, schedule
from nnef_hw.streaming.accelerator import Accelerator
from nnef_hw.streaming.beats import simulate_beats

pytestmark = pytest.mark.icarus

FRAMES = 2
SHORT = 2
SHARDS = 10
PER_SHARD = 10

SOURCE = """
    reg [{width}-1:0] {name}_items [0:{count}-1];
    integer {name}_next = 0;
    reg {name}__valid = 0;
    wire {name}__ready;
    reg [{width}-1:0] {name}__payload = 0;
    initial $readmemh("{name}.hex", {name}_items);
    always @(negedge clk) begin
        if (rst) {name}_next = 0;
        if (rst) {name}__valid = 0;
        else if (!{name}__valid) {name}__valid = {name}_next < {count} && go(stall);
        {name}__payload = {name}__valid ? {name}_items[{name}_next] : {{{width}{{1'bx}}}};
    end
    always @(posedge clk) if (!rst) begin
        if ({name}__ready === 1'bx) fail("{name}__ready is unknown");
        if ({name}__valid && {name}__ready) begin
            {name}_next <= {name}_next + 1;
            {name}__valid <= 0;
        end
    end
"""
SINK = """
    reg [{width}-1:0] {name}_items [0:{count}-1];
    integer {name}_next = 0;
    wire {name}__valid;
    reg {name}__ready = 0;
    wire [{width}-1:0] {name}__payload;
    initial $readmemh("{name}.hex", {name}_items);
    always @(negedge clk) begin
        if (rst) {name}_next = 0;
        {name}__ready = go(stall);
    end
    always @(posedge clk) if (!rst) begin
        if ({name}__valid === 1'bx) fail("{name}__valid is unknown");
        if ({name}__valid && {name}__ready) begin
            if ({name}__payload !== {name}_items[{name}_next]) fail("{name} is another code");
            {name}_next <= {name}_next + 1;
            last_cycle = cycle;
        end else if ({name}__valid && ^{name}__payload === 1'bx) fail("{name} is unknown");
    end
"""
BENCH = """`timescale 1ns / 1ns
module bench;
    reg clk = 1, rst = {resets};
    integer cycle = 0, last_cycle = 0, stall = {stall}, random = {seed};
    function go(input integer percent);
        go = $unsigned($random(random)) % 100 >= percent;
    endfunction
    task fail(input [8*60-1:0] text);
        begin $display("FAILED %0s in cycle %0d", text, cycle); $finish; end
    endtask
{ports}
    top dut (.clk(clk), .rst(rst){connections});
    always #5 clk = ~clk;
    always @(posedge clk) if (rst) cycle <= 0; else cycle <= cycle + 1;
    initial begin
{sequence}
        repeat ({most}) @(negedge clk) if ({done}) begin
            $display("DONE %0d", last_cycle); $finish;
        end
        fail("it hangs");
    end
endmodule
"""
RESETS = """
        repeat (2) @(negedge clk); #1 rst = 0;
        repeat ({amid}) @(negedge clk); #1 rst = 1;
        @(negedge clk); #1 rst = 0;
"""


def without_initial_values(verilog):
    """Registers are unknown until they are reset or written."""
    initialized = re.compile(r"^\s+reg [^;]*;", re.MULTILINE)
    value = re.compile(r" = (\{[^}]*\}+|[^,;{])+")
    text, count = initialized.subn(lambda found: value.sub("", found[0]), verilog)
    assert count
    return text


def run_bench(folder, verilog, fed, expected, *, stall, amid, start):
    """Run the bench; return the cycle of the last beat. Without ``amid`` there is no reset."""
    ports = []
    for template, streams in ((SOURCE, fed), (SINK, expected)):
        for name, items in streams.items():
            [width] = re.findall(rf"\[(\d+):0\] {name}__payload", verilog)[:1]
            (folder / f"{name}.hex").write_text("\n".join(f"{item:x}" for item in items.tolist()))
            ports.append(template.format(name=name, width=int(width) + 1, count=len(items)))
    names = [f"{name}__{field}" for name in (*fed, *expected)
             for field in ("payload", "valid", "ready")]  # fmt: skip
    beats = sum(map(len, (*fed.values(), *expected.values())))
    (folder / "bench.v").write_text(BENCH.format(
        resets=int(amid is not None), stall=stall, seed=start, ports="".join(ports),
        connections="".join(f", .{name}({name})" for name in names),
        sequence="" if amid is None else RESETS.format(amid=amid), most=1000 * beats + 100_000,
        done=" && ".join(f"{name}_next == {len(items)}" for name, items in expected.items()),
    ))  # fmt: skip
    (folder / "top.v").write_text(verilog)
    subprocess.run(["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", "bench.v", "top.v"],
                   cwd=folder, check=True)  # fmt: skip
    done = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=folder, capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert done.stdout.startswith("DONE "), done.stdout
    return int(done.stdout.split()[1])


def check_networks(start, count, fix, rng, folder):
    """Compare random networks: unknown registers, stalls and a reset; and a start without one."""
    state = rng.bit_generator.state

    @seed(start)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(random_networks())
    def run(network):
        rng.bit_generator.state = state
        try:
            graph = fix(network.graph, **network.scheme)
            plan = schedule(graph, find_board("ecp5"))
        except (ErrorGroup, UnsupportedError, TargetError):
            reject()
        verilog = to_verilog(Accelerator(plan, graph))
        codes = random_codes(graph, FRAMES)
        fed = payloads(graph.inputs, plan.inputs, codes)
        expected = payloads(graph.outputs, plan.outputs, run_fixed(graph, codes))
        times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, FRAMES)
        predicted = int(np.max(times.last_outputs))
        amid = int(rng.integers(1, predicted + 1))
        run_bench(folder, without_initial_values(verilog), fed, expected, stall=40, amid=amid,
                  start=start)  # fmt: skip
        last = run_bench(folder, verilog, fed, expected, stall=0, amid=None, start=start)
        assert last == predicted

    run()


def test_unknown_values_reach_no_port(fix, rng, tmp_path):
    check_networks(0, SHORT, fix, rng, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("shard", range(SHARDS))
def test_unknown_values_of_many_networks(shard, fix, rng, tmp_path):
    check_networks(1 + shard, PER_SHARD, fix, rng, tmp_path)
