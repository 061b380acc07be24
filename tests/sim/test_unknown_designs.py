"""Engines, plain IP and a board's top under Icarus Verilog, with unknown registers at power-up."""

import re
import subprocess

import numpy as np
import pytest
from cli_cases import tiny_graph
from engine_graphs import grown, planned
from icarus_bench import (
    run_bench,
    run_board,
    with_random_initial_values,
    without_initial_values,
)

from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import DEFAULT_LINK
from nnef_hw.codegen.board import link_clock
from nnef_hw.codegen.fusesoc import axi_testbench
from nnef_hw.codegen.ip import axi_wrapper
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.timing.timing import simulate_frames
from nnef_hw.flow.emit import GENERATOR, board_of
from nnef_hw.hardware.devices import GENERIC, Target
from nnef_hw.host.manifest import manifest_hash
from nnef_hw.host.packets import Packet, encode_packet
from nnef_hw.host.protocol import MAX_PAYLOAD, Reply, Request, identity_payload
from nnef_hw.host.streams import to_stream
from nnef_hw.reference import run_fixed
from nnef_hw.run.rtl import payloads
from nnef_hw.run.simulate import random_codes
from nnef_hw.sim.board_runner import PLL_MODELS
from nnef_hw.sim.cocotb_bench import write_bench
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

pytestmark = [pytest.mark.system, pytest.mark.icarus]

PLAIN = Target("none", "IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)
FRAMES = 2


def vectors_of(graph, plan, frames=FRAMES):
    """Return what goes in and what must come out, by port."""
    codes = random_codes(graph, frames)
    return (
        payloads(graph.inputs, plan.inputs, codes),
        payloads(graph.outputs, plan.outputs, run_fixed(graph, codes)),
        codes,
    )


def check_engine(graph, plan, folder, rng):
    verilog = to_verilog(EngineAccelerator(plan))
    fed, expected, _ = vectors_of(graph, plan)
    predicted = int(np.max(simulate_frames(plan.design, FRAMES).last_outputs))
    anything = with_random_initial_values(verilog, rng)
    amid = int(rng.integers(1, predicted + 1))
    run_bench(folder, anything, fed, expected, stall=40, amid=amid, start=1)
    assert run_bench(folder, verilog, fed, expected, stall=0, amid=None, start=1) == predicted
    return anything, fed, expected


def test_an_engine(fix, rng, tmp_path):
    graph = fix(tiny_graph())
    anything, fed, expected = check_engine(graph, planned(graph), tmp_path, rng)
    with pytest.raises(AssertionError, match="FAILED"):  # it is the reset that helps
        run_bench(tmp_path, anything, fed, expected, stall=0, amid=None, start=1)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [1, 2, 3, 8, 21])
def test_random_engines(number, fix, tmp_path):
    rng = np.random.default_rng(number)
    graph = fix(grown(rng, 4), calibration="minmax")
    check_engine(graph, planned(graph), tmp_path, rng)


@pytest.fixture
def ip(fix, tmp_path):
    """A folder with plain IP, and the texts of its accelerator, wrapper and bench."""
    graph = fix(tiny_graph())
    plan = schedule(graph, PLAIN)
    fed, expected, _ = vectors_of(graph, plan, 3)
    vectors = {**fed, **expected}
    write_bench(tmp_path / "sim", vectors, top="my")
    bench = axi_testbench(plan, "my", {name: len(x) for name, x in vectors.items()}, 3)
    verilog = to_verilog(Accelerator(plan, graph), name="my", prefix="my_")
    return tmp_path, verilog, axi_wrapper(plan, graph, "my"), bench


WATCH = """
    always @(posedge aclk) if (aresetn) begin
        if (m_axis_tvalid === 1'bx || s_axis_tready === 1'bx) $fatal(1, "a port is unknown");
        if (m_axis_tvalid && ^{m_axis_tdata, m_axis_tlast} === 1'bx) $fatal(1, "a code is unknown");
    end
endmodule
"""


def run_ip(folder, *texts):
    (folder / "all.v").write_text("".join(texts))
    command = ["iverilog", "-g2012", "-s", "my_tb", "-o", "my_tb", "all.v"]
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run(["vvp", "-n", "my_tb"], cwd=folder, capture_output=True, text=True)


def test_plain_ip(ip):
    folder, verilog, wrapper, bench = ip
    bench = bench.replace("endmodule\n", WATCH)
    done = run_ip(folder, without_initial_values(verilog), wrapper, bench)
    assert (done.returncode, "3 frames as expected" in done.stdout) == (0, True), done.stdout


def test_plain_ip_without_its_reset_is_unknown(ip):
    """What the test above shows, it shows of the reset."""
    folder, verilog, wrapper, bench = ip
    bench = bench.replace("endmodule\n", WATCH).replace("aresetn = 0", "aresetn = 1")
    bench = bench.replace("== 1000000)", "== 1000)")
    done = run_ip(folder, without_initial_values(verilog), wrapper, bench)
    assert done.returncode != 0
    assert "unknown" in done.stdout + done.stderr


def requests_of(graph, plan, board):
    """Return a session: requests and replies, which run a frame."""
    board_mhz = link_clock(board, plan, DEFAULT_LINK)
    manifest = make_manifest(
        graph, plan, generator=GENERATOR, link=DEFAULT_LINK, oscillator_mhz=board_mhz
    )
    codes = random_codes(graph, 1)
    [source], [sink] = plan.inputs, plan.outputs
    sent = to_stream(codes[graph.inputs[0]], source).astype(np.int8).tobytes()
    result = to_stream(run_fixed(graph, codes)[graph.outputs[0]], sink).astype(np.int8).tobytes()
    assert len(result) <= MAX_PAYLOAD
    identity = identity_payload(
        clk_hz=board_mhz * 1e6, manifest_hash=manifest_hash(manifest),
        in_bytes=source.lanes, out_bytes=sink.lanes,
    )  # fmt: skip
    pieces = [sent[n : n + MAX_PAYLOAD] for n in range(0, len(sent), MAX_PAYLOAD)]
    session = [
        (Request.ABORT, b"", Reply.ACK, b""), (Request.IDENTIFY, b"", Reply.IDENTITY, identity),
        *((Request.DATA, piece, Reply.ACK, b"") for piece in pieces[:-1]),
        (Request.DATA_END, pieces[-1], Reply.ACK, b""), (Request.READ, b"", Reply.RESULT, result),
    ]  # fmt: skip
    return [
        (
            encode_packet(Packet(kind, number, 0, data)),
            encode_packet(Packet(reply, number, 0, text)),
        )
        for number, (kind, data, reply, text) in enumerate(session, 1)
    ]


def core_without_initial_values(verilog):
    """Registers are unknown but for those of the board's own module: clock, lock and start."""
    return re.sub(
        r"^module (?!board_top\b|\S*locked)\S+.*?^endmodule",
        lambda found: without_initial_values(found[0]) if "reg " in found[0] else found[0],
        verilog, flags=re.MULTILINE | re.DOTALL,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["icebreaker", "ulx3s_12f"])
def test_a_boards_top(name, fix, tmp_path):
    graph, board = fix(tiny_graph()), find_board(name)
    plan = schedule(graph, board)
    verilog = core_without_initial_values(board_of(graph, plan, board).verilog)
    run_board(
        tmp_path, verilog + PLL_MODELS, requests_of(graph, plan, board),
        bit=round(board.input_mhz * 1e6 / DEFAULT_LINK.baud),
        startup=2000, pause=plan.latency + 100,
    )  # fmt: skip
