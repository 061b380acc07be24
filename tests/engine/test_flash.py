"""Networks larger than the FPGA: their program comes from the board's flash."""

import json
import subprocess
import sys

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.cli import main
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.memory.store import FlashStore
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.program.image import image_bytes
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.hardware.memories.flash import FAST_READ, QUAD_IO, QUAD_IO_DDR
from nnef_hw.host.link import Host
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.report.pages.roofline import draw_roofline
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import open_device
from nnef_hw.run.flash import plan_flashing
from nnef_hw.run.memories import board_with_memories
from nnef_hw.run.simulate import simulate
from nnef_hw.samples.samples import load_samples
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

BOARD = find_board("icebreaker")


def wide(rng):
    """Return a network with more weights than an UP5K's memories hold."""
    builder = GraphBuilder("wide")
    x = builder.input("x", (1, 8, 2, 2))
    x = builder.op("relu", builder.conv(x, rng.normal(size=(192, 8, 1, 1))))
    x = builder.op("relu", builder.conv(x, rng.normal(size=(320, 192, 1, 1))))
    builder.conv(x, rng.normal(size=(256, 320, 1, 1)), name="last")
    return builder.build()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a build whose program is in flash, its samples, and its report."""
    folder, rng = tmp_path_factory.mktemp("flash"), np.random.default_rng(3)
    save(wide(rng), folder / "wide.nnef.tgz")
    np.savez(folder / "samples.npz", inputs=rng.normal(size=(12, 8, 2, 2)))
    options = BuildOptions(
        model=folder / "wide.nnef.tgz", board="icebreaker", out=folder / "out", arch="engine",
        calibrate=folder / "samples.npz", bitstream=False, frames=3,
    )  # fmt: skip
    return options.out, folder / "samples.npz", build(options)


@pytest.mark.verilator
def test_build_with_flash(built):
    """Bit-exact and predicted to the cycle, stalls included; the image belongs to the manifest."""
    out, samples, report = built
    simulation = report.simulation
    assert simulation.bit_exact
    assert simulation.cycles_per_inference == report.cycles_per_inference
    assert simulation.latency_cycles == report.latency_cycles
    folder = BuildFolder.open(out)
    assert folder.plan.dumps() == (out / "plan.json").read_text()
    data = image_bytes(folder.plan.design)
    assert (out / "board" / "weights.bin").read_bytes() == data
    entry = json.loads((out / "manifest.json").read_text())["memory"]
    assert (entry["address"], entry["bytes"]) == (BOARD.spi_flash.image_address, len(data))
    assert report.memory.bytes + report.memory.resident_bytes == len(data)
    assert 0 < report.memory.bytes < len(data)
    assert sum(layer.stall_cycles for layer in report.layers) > 0
    assert sum(layer.memory_bytes for layer in report.layers) < len(data)
    page = (out / "report.html").read_text()
    assert "MACs per byte that comes from SPI flash" in page
    assert page.count('class="place"') == len(folder.plan.design.placement.stays)
    stalled = simulate(folder, samples, limit=2, stall=0.3)
    assert (stalled.bit_exact, stalled.frames) == (True, 2)


@pytest.mark.verilator
def test_the_program_can_be_read(built, capsys):
    """Step by step, each with what it takes; all of it is the image."""
    out, _, report = built
    assert main(["inspect", str(out)]) == 0
    head, titles, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("wide on icebreaker (up5k), engine: 16 multipliers, ")
    assert titles.split()[:4] == ["step", "does", "tensor", "operation"]
    assert main(["inspect", str(out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["program"]
    assert [row["does"] for row in rows] == ["load", *["run"] * (len(rows) - 2), "send"]
    assert len(lines) == len(rows) > 2 + len(report.layers)
    come = [row["beats"] for row in rows if row["from"] != "chip"]
    assert 2 * sum(come) == report.memory.bytes
    assert {row["tensor"] for row in rows[1:-1]} == {layer.name for layer in report.layers}


def test_rooflines_of_a_memory(built):
    """The design lies below both; a layer's weights may have come while others ran."""
    _, _, report = built
    plot = draw_roofline(report)
    (slope,) = plot.slopes
    (begin, low), (ridge, flat), (_, same) = (
        map(float, point.split(",")) for point in slope.split()
    )
    assert begin < ridge
    assert low > flat == same
    speed = report.memory.bytes_per_cycle
    assert 0.9 < speed <= 1.0
    reached, per_byte = report.macs / report.cycles_per_inference, (
        report.macs / report.memory.bytes
    )  # fmt: skip
    assert reached <= speed * per_byte
    bound = low + (flat - low) * (plot.design.x - begin) / (ridge - begin)
    assert plot.design.y >= max(bound, flat) - 0.2
    assert len(plot.dots) == sum(layer.memory_bytes > 0 for layer in report.layers)


@pytest.mark.nightly
@pytest.mark.verilator
def test_the_bench_of_a_build(built):
    """It needs nothing of this package, but the model of the flash in its Verilog."""
    out, _, _ = built
    run = [sys.executable, str(out / "sim" / "run.py")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.verilator
def test_a_board_with_flash(built):
    """The board's top with pads and flash, over its UART."""
    out, path, _ = built
    fixed = BuildFolder.open(out).fixed
    samples = load_samples(path, fixed)[:2]
    with open_device(out, "sim") as device:
        found = device.run_codes(quantize_inputs(fixed, samples.inputs))
    [name] = fixed.outputs
    assert (found[name] == run_fixed(fixed, quantize_inputs(fixed, samples.inputs))[name]).all()


@pytest.mark.verilator
def test_a_board_with_another_flash(built):
    """It says so instead of waiting for weights."""
    out, _, _ = built
    folder = BuildFolder.open(out)
    text = (out / "board" / "board_top.v").read_text()
    verilog, top = board_with_memories(text, folder.plan, out / "sim" / "memory.hex")
    [chip] = BOARD.spi_flash.chips
    verilog = verilog.replace(f"24'h{chip.jedec_id:06x}", "24'hef4018")
    with BoardTransport(verilog, clk_hz=folder.plan.clock_mhz * 1e6, top=top) as transport:
        transport.advance(20_000)
        host = Host(transport)
        host.open()
        for request in (lambda: host.send(b"\0"), host.read, lambda: host.replay(2)):
            transport.advance(2000)
            with pytest.raises(TargetError, match="its flash does not answer") as caught:
                request()
            assert caught.value.exit_status == 2


@pytest.mark.verilator
def test_an_image_of_another_build_is_refused(built, tmp_path):
    out, _, _ = built
    bitstream = out / "board" / "board_top.bin"
    bitstream.write_bytes(b"bits")
    first, second = plan_flashing(out).commands
    assert first.endswith(f"-f --file-type raw -o 0x100000 {out / 'board' / 'weights.bin'}")
    assert second.endswith(str(bitstream))
    path = out / "board" / "weights.bin"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    try:
        with pytest.raises(UsageError, match=r"weights.bin.*is not the image of this build"):
            plan_flashing(out)
        path.unlink()
        with pytest.raises(UsageError, match=r"has no board/weights.bin"):
            plan_flashing(out)
    finally:
        path.write_bytes(data)


def test_what_a_schedule_takes(fix, rng):
    """Block RAM where the weights fit; flash where they do not; no engine without flash."""
    graph = fix(wide(rng))
    plan = schedule_engine(graph, BOARD)
    memory = json.loads(plan.dumps())["memory"]
    assert (memory["read"], memory["address"]) == (QUAD_IO_DDR.name, 0x100000)
    assert plan.design.ring_words == 512
    assert schedule_engine(graph, find_board("ulx3s_85f")).design.store is None
    with pytest.raises(TargetError, match="are kept in block RAM"):
        schedule_engine(graph, find_board("ice40_hx8k_b_evn"))
    little = GraphBuilder("little")
    little.conv(little.input("x", (1, 4, 4, 4)), rng.normal(size=(4, 4, 3, 3)))
    assert "memory" not in json.loads(schedule_engine(fix(little.build()), BOARD).dumps())


@pytest.mark.parametrize(
    ("board", "clock", "reads"),
    [
        ("icebreaker", 24.0, [QUAD_IO, QUAD_IO_DDR]),
        ("icesugar", 24.0, [QUAD_IO]),
        ("upduino_v3", 24.0, [FAST_READ]),
        ("ulx3s_85f", 25.0, []),
    ],
)
def test_ways_to_read(board, clock, reads):
    """Both edges only where the board's chip is known to have them."""
    stores = list(FlashStore.ways(find_board(board), clock))
    found = [store.read for store in stores]
    assert [read.bits_per_clock for read in found] == [read.bits_per_clock for read in reads]
    for store in stores:
        assert FlashStore.from_json(store.to_json()) == store


def test_layers_are_divided_where_constants_do_not_fit(fix, rng, run_engine):
    """Channel blocks of a sliding window are parts; all channels of a pool have equal constants."""
    builder = GraphBuilder("pools")
    x = builder.input("x", (1, 68, 3, 3))
    x = builder.conv(x, rng.normal(size=(68, 1, 2, 2)), groups=68)
    builder.pool("max_pool", x, 2)
    graph = fix(builder.build())
    network = lower(graph, BOARD.device)
    plan = EnginePlan.of(Design(network, Shape(4, 4), BOARD.device, 128), BOARD, None)
    assert [[len(part.constants) for part in parts] for parts in plan.design.program.parts] == [
        [32, 36], [4],
    ]  # fmt: skip
    run_engine(plan, graph)
