"""Networks larger than the FPGA: their program comes from SDRAM, which the host fills."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from step_graphs import step
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import Uart, link_of
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.memory.addressed_tables import AddressedRowLayer
from nnef_hw.engine.memory.kept_tables import TableRowLayer
from nnef_hw.engine.memory.store import SdramStore, find_store
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning import feeding
from nnef_hw.engine.planning.feeding import streamed
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.program.image import image_bytes
from nnef_hw.errors import TargetError
from nnef_hw.flow.emit import emit
from nnef_hw.flow.options import BuildOptions
from nnef_hw.host.link import Host, LinkError
from nnef_hw.host.manifest import read_manifest
from nnef_hw.passes import simplify
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import Device
from nnef_hw.run.flash import plan_flashing
from nnef_hw.run.memories import board_with_memories
from nnef_hw.run.simulate import simulate
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

CLOCK_MHZ = 25.0
BOARD = find_board("ulx3s_12f")
BOARDS = {
    "16 bits": (BOARD, CLOCK_MHZ, 5_000_000),
    "32 bits": (find_board("tang_nano_20k"), 24.0, 4_800_000),
}


def conv_layers(rng, *channels):
    """Return a network of 1x1 convolutions."""
    builder = GraphBuilder("wide")
    x = builder.input("x", (1, channels[0], 2, 2))
    for n, (inputs, outputs) in enumerate(pairwise(channels)):
        x = builder.conv(x, rng.normal(size=(outputs, inputs, 1, 1)), name=f"conv{n}")
        if not n:
            x = builder.op("tanh", x)  # its table comes in every frame
    return builder.build()


@pytest.fixture(scope="module", params=few([*BOARDS], ["16 bits"]))
def built(request, tmp_path_factory):
    """Return a build whose program is in SDRAM, and its samples."""
    board, clock_mhz, baud = BOARDS[request.param]
    out, rng = tmp_path_factory.mktemp("sdram"), np.random.default_rng(3)
    samples = {"x": rng.normal(size=(12, 8, 2, 2))}
    fixed = quantize(simplify(conv_layers(rng, 8, 36, 52)), samples, Scheme())
    [store] = SdramStore.ways(board, clock_mhz)
    design = Design(lower(fixed, board.device), Shape(8, 4), board.device, 128, store)
    plan = EnginePlan.of(design, board, clock_mhz)
    options = BuildOptions(model=Path("wide.nnef"), board=board.name, out=out, link=Uart(baud))
    emit(out, fixed, None, plan, None, board, options)
    np.savez(out / "samples.npz", inputs=samples["x"])
    return out, quantize_inputs(fixed, samples)


@pytest.mark.verilator
def test_weights_from_sdram(built):
    """Bit-exact, and predicted to the cycle, stalls and refreshes included."""
    out, _ = built
    folder = BuildFolder.open(out)
    assert folder.plan.dumps() == (out / "plan.json").read_text()
    assert folder.plan.design.packets.repeats_tables
    found = simulate(folder, out / "samples.npz", limit=12)
    assert found.bit_exact
    interval = SharedArray().predict_interval(folder.plan, 12)
    assert found.cycles_per_inference == interval
    assert found.latency_cycles == folder.plan.latency
    assert sum(span.stalled for span in folder.plan.spans) > 0
    # A refresh comes in some frames and not in others; of 32 bits the queue outlasts it.
    spacings = {SharedArray().predict_spacing(folder.plan, n) for n in range(2, 40)}
    assert (len(spacings) > 1) == (folder.plan.design.store.chip.width == 16)
    stalled = simulate(folder, out / "samples.npz", limit=2, stall=0.3)
    assert (stalled.bit_exact, stalled.frames) == (True, 2)


def board_transport(out):
    folder = BuildFolder.open(out)
    text = (out / "board" / "board_top.v").read_text()
    verilog, top = board_with_memories(text, folder.plan, out / "unused")
    manifest = read_manifest(out)
    clk_hz = 1e6 * manifest.clock_mhz
    return BoardTransport(verilog, clk_hz=clk_hz, link=link_of(manifest.link), top=top)


def check_on_board(out, fixed, samples):
    """A build's board, simulated, gives the integers of the model."""
    codes = quantize_inputs(fixed, samples)
    [expected] = run_fixed(fixed, codes).values()
    with board_transport(out) as transport:
        image = (out / "board" / "weights.bin").read_bytes()
        device = Device(read_manifest(out), transport, image=image)
        [found] = device.run_codes(codes).values()
        assert (found == expected).all()


@pytest.mark.verilator
def test_the_host_fills_the_memory(built):
    """Once, whatever begins anew meanwhile; before that the board refuses frames."""
    out, codes = built
    folder = BuildFolder.open(out)
    image = (out / "board" / "weights.bin").read_bytes()
    data = image_bytes(folder.plan.design)
    granule = 16 * folder.plan.design.store.chip.width // 8
    assert len(data) % granule
    assert image == data + bytes(-len(data) % granule)
    few = {name: values[:2] for name, values in codes.items()}
    [expected] = run_fixed(folder.fixed, few).values()
    with board_transport(out) as transport:
        transport.advance(20_000)
        host = Host(transport)
        host.open()
        with pytest.raises(TargetError, match="has not been filled over the link") as caught:
            host.send(b"\0")
        assert caught.value.exit_status == 2
        # A host that gives up leaves nothing behind.
        loading = host.load(bytes(255 - byte for byte in image))
        assert [next(loading) for _ in range(3)] == [56, 56, 56]
        device = Device(read_manifest(out), transport, image=image)
        [found] = device.run_codes(few).values()
        assert (found == expected).all()
        with pytest.raises(LinkError, match="filled meanwhile"):
            device.host._load(b"\0")
        again = Device(read_manifest(out), transport, image=image)
        assert not list(again.host.load(image))
        [found] = again.run_codes(few).values()
        assert (found == expected).all()
        for cycles in (3, 700, 1000, 1313):
            again.host.send(bytes(20))
            transport.advance(cycles)
            again.host.abort()
            [found] = again.run_codes(few).values()
            assert (found == expected).all()
        assert not again.host.repeats


def test_only_the_bitstream_is_flashed(built):
    out, _ = built
    entry = json.loads((out / "manifest.json").read_text())["memory"]
    assert (entry["kind"], entry["over_link"]) == ("SDRAM", True)
    family = find_board(read_manifest(out).board).device.family
    suffix = toolchain_of(family).bitstream_suffix
    (out / "board" / f"board_top.{suffix}").write_bytes(b"bits")
    [command] = plan_flashing(out).commands
    assert "weights" not in command


def test_what_a_schedule_takes(fix, rng):
    """Block RAM where weights fit, SDRAM where they do not."""
    graph = fix(conv_layers(rng, 8, 256, 512))
    store = schedule_engine(graph, BOARD).design.store
    assert isinstance(store, SdramStore)
    assert find_store(store.to_json()) == store
    assert schedule_engine(graph, find_board("ulx3s_85f")).design.store is None


@pytest.mark.parametrize(
    ("board", "clock_mhz"),
    # too fast for the chip; none
    [("ulx3s_12f", 134.0), ("tang_nano_20k", 167.0), ("icebreaker", 24.0)],
)
def test_no_memory_to_read(board, clock_mhz):
    assert not list(SdramStore.ways(find_board(board), clock_mhz))


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("board", "kind", "choice"),
    few(
        [(board, TableRowLayer, "keeps_tables") for board in BOARDS]
        + [("16 bits", AddressedRowLayer, "addresses_tables")],
        [("32 bits", TableRowLayer, "keeps_tables")],
    ),
)
def test_a_step_of_a_language_model_from_sdram(board, kind, choice, tmp_path, rng):
    """Initial values, and tables that are kept, come once, and anew after a restart.

    Of other tables a row comes in every step.
    """
    board, clock_mhz, baud = BOARDS[board]
    positions = np.tile(np.arange(8), (3, 1))[..., None]
    samples = {"token": rng.integers(0, 11, positions.shape), "position": positions}
    graph = step(rng, size=8, turn="pairs", tiled=True, groups=2)
    fixed = quantize(simplify(graph), samples, Scheme())
    [store] = SdramStore.ways(board, clock_mhz)
    network = lower(fixed, board.device)
    design = Design(network, Shape(8, 4), board.device, 128, store, **{choice: True})
    plan = EnginePlan.of(design, board, clock_mhz)
    options = BuildOptions(model=Path("step.nnef"), board=board.name, out=tmp_path, link=Uart(baud))
    emit(tmp_path, fixed, None, plan, None, board, options)
    np.savez(tmp_path / "samples.npz", **samples)
    folder = BuildFolder.open(tmp_path)
    assert folder.plan.dumps() == (tmp_path / "plan.json").read_text()
    packets = folder.plan.design.packets
    assert packets.once_words
    assert not packets.repeats_tables
    # one has a sum behind it, so it is not kept
    rows = 5 + (kind is AddressedRowLayer)
    assert sum(isinstance(x, kind) for x in folder.plan.design.frame_layers) == rows
    for stall in (0.0, 0.3):
        found = simulate(folder, tmp_path / "samples.npz", limit=None, stall=stall)
        assert (found.bit_exact, found.frames) == (True, 24)
        assert stall or found.latency_cycles == folder.plan.latency
    # The host ends every sequence: the memory keeps its words, and is read from its begin.
    check_on_board(tmp_path, fixed, samples)


def test_every_sequence_begins_with_the_initial_values(tmp_path, rng):
    net = GraphBuilder("summing")
    x, past = net.input("x", (1, 8)), net.state("past", np.full((1, 8), 0.5))
    weights, out = rng.normal(size=(8, 8)), rng.normal(size=(12, 8))
    new = net.op("tanh", net.op("add", net.op("linear", x, weights, np.asarray(0.0)), past))
    net.update(past, new)
    graph = simplify(net.build(net.op("linear", new, out, np.asarray(0.0))))
    samples = {"x": rng.normal(size=(3, 4, 8))}
    fixed = quantize(graph, samples, Scheme())
    [store] = SdramStore.ways(BOARD, CLOCK_MHZ)
    design = Design(lower(fixed, BOARD.device), Shape(4, 4), BOARD.device, 128, store)
    plan = EnginePlan.of(design, BOARD, CLOCK_MHZ)
    options = BuildOptions(
        model=Path("summing.nnef"), board=BOARD.name, out=tmp_path, link=Uart(5_000_000)
    )
    emit(tmp_path, fixed, None, plan, None, BOARD, options)
    check_on_board(tmp_path, fixed, samples)


@pytest.mark.parametrize("tokens", [11, 600])
def test_rows_come_from_memory_where_no_ring_holds_a_table(tokens, rng):
    positions = np.arange(8)[None, :, None]
    samples = {"token": rng.integers(0, tokens, positions.shape), "position": positions}
    fixed = quantize(simplify(step(rng, size=8, tokens=tokens)), samples, Scheme())
    [store] = SdramStore.ways(BOARD, CLOCK_MHZ)
    design = Design(lower(fixed, BOARD.device), Shape(4, 4), BOARD.device)
    found = [plan.design for plan in streamed(design, BOARD, CLOCK_MHZ)]
    assert {design.store for design in found} == {store}
    assert {design.addresses_tables for design in found} == {tokens > 256}
    assert not any(design.keeps_tables for design in found)


@pytest.mark.parametrize(("rate", "rings"), [(100.0, [1024]), (0.5, [1024, 512, 256, 128])])
def test_a_long_frame_needs_no_other_ring_where_memory_is_as_fast_as_it_can_be(
    rate, rings, rng, monkeypatch
):
    samples = {"x": rng.normal(size=(2, 8, 2, 2))}
    fixed = quantize(simplify(conv_layers(rng, 8, 36, 52)), samples, Scheme())
    [store] = SdramStore.ways(BOARD, CLOCK_MHZ)
    design = Design(lower(fixed, BOARD.device), Shape(4, 4), BOARD.device, store=store)
    monkeypatch.setattr(feeding, "LONG_FRAME", 1)
    monkeypatch.setattr(feeding, "NEAR_RATE", rate)
    plans = feeding.rings(design, BOARD, CLOCK_MHZ, math.inf)
    assert [plan.design.ring_words for plan in plans] == rings
