"""Other weights for the bitstream of a build: an image, and nothing else."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.architectures import find_architecture
from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import ClassOnLeds, SinkWish, Spi, Uart, find_streams
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.retrained import fit_shifts
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.host.manifest import manifest_hash, read_manifest
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import open_device
from nnef_hw.samples.samples import load_samples
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


def network(rng, *, inner=72, stride=1, names="abc", end="softmax", scale=1.0):
    """Return a network that an UP5K holds only with its weights in flash."""
    builder = GraphBuilder("net" + names)
    first, second, last = names
    x = builder.input("x", (1, 8, 2, 2))
    x = builder.op("relu", builder.conv(x, rng.normal(size=(inner, 8, 1, 1)), name=first))
    weights = scale * rng.normal(size=(inner, inner, 1, 1))
    y = builder.op("tanh", builder.conv(x, weights, name=second))
    x = builder.op("relu", builder.op("add", x, y))
    x = builder.conv(x, rng.normal(size=(72, inner, 1, 1)), name=last, stride=stride)
    if stride == 1:
        x = builder.pool("avg_pool", x, 2)
    x = builder.reshape(x, [1, 72])
    builder.op(end, x, axes=[1])
    return builder.build()


def options_of(folder, name, graph, rng, **options):
    save(graph, folder / f"{name}.nnef.tgz")
    np.savez(folder / f"{name}.npz", inputs=rng.normal(size=(12, 8, 2, 2)))
    return BuildOptions(
        model=folder / f"{name}.nnef.tgz", out=folder / name, calibrate=folder / f"{name}.npz",
        **{"board": None, "frames": 3, **options},
    )  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("base"), np.random.default_rng(1)
    options = options_of(
        folder, "base", network(rng), rng, board="icebreaker", arch="engine", bitstream=False
    )
    build(options)
    return options.out


@pytest.mark.verilator
@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_other_weights(base, tmp_path, seed):
    """The old Verilog computes them exactly, and is what would be made for them."""
    rng = np.random.default_rng(seed)
    options = options_of(tmp_path, "new", network(rng, names="pqr"), rng, weights_of=base)
    report = build(options)
    assert report.simulation.bit_exact
    assert report.simulation.cycles_per_inference == report.cycles_per_inference
    old, new = BuildFolder.open(base), BuildFolder.open(options.out)
    for file in ("rtl/top.v", "board/board_top.v", "board/board_top.pcf"):
        assert (base / file).read_bytes() == (options.out / file).read_bytes()
    assert to_verilog(EngineAccelerator(new.plan)) == to_verilog(EngineAccelerator(old.plan))
    images = [folder.plan.images[0].data for folder in (old, new)]
    assert images[0] != images[1]
    assert (options.out / "board" / "weights.bin").read_bytes() == images[1]
    assert new.plan.dumps() == (options.out / "plan.json").read_text()

    # The board answers with the hash of its bitstream; that of the manifest has both.
    manifest = json.loads((options.out / "manifest.json").read_text())
    assert read_manifest(options.out).hash == read_manifest(base).hash != manifest_hash(manifest)
    assert manifest["bitstream"]["manifest"] == read_manifest(base).hash.hex()
    assert manifest["memory"]["sha256"] != json.loads((base / "manifest.json").read_text())[
        "memory"]["sha256"]  # fmt: skip
    samples = load_samples(options.calibrate, new.fixed)[:2]
    codes = quantize_inputs(new.fixed, samples.inputs)
    with open_device(options.out, "sim") as device:
        found = device.run_codes(codes)
    [name] = new.fixed.outputs
    assert (found[name] == run_fixed(new.fixed, codes)[name]).all()

    # The old weights with the new build's host are noticed.
    text = (options.out / "sim" / "memory.hex").read_text()
    (options.out / "sim" / "memory.hex").write_text((base / "sim" / "memory.hex").read_text())
    with pytest.raises(TargetError, match="does not hold the weights of this build"):
        open_device(options.out, "sim").__enter__()
    (options.out / "sim" / "memory.hex").write_text(text)

    # A build of other weights may be the base of another one.
    again = options_of(tmp_path, "again", network(rng, names="stu"), rng, weights_of=options.out)
    assert build(again).simulation.bit_exact
    assert read_manifest(again.out).hash == read_manifest(base).hash


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inner": 68}, r"layer 1, 'relu2', is conv 1 x 1, 2 x 2 x 8 -> 2 x 2 x 68; there "),
        ({"stride": 2}, r"layer 4, 'q', is conv 1 x 1, 2 x 2 x 72 -> 1 x 1 x 72; there it is conv"),
        ({"end": "argmax_reduce"}, r"output 'argmax[^']*' has .* there it has"),
    ],
)  # fmt: skip
def test_another_network_is_refused(base, tmp_path, changes, message):
    rng = np.random.default_rng(4)
    graph = network(rng, names="npq", **changes)
    options = options_of(tmp_path, "new", graph, rng, weights_of=base)
    with pytest.raises(UsageError, match=message) as caught:
        build(options)
    assert "build it without --weights-of" in str(caught.value)
    assert not options.out.exists()


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clock_mhz": 12.0}, "--freq would change the bitstream"),
        ({"link": Spi()}, "--link would change the bitstream"),
        ({"link": Uart(9600)}, "--baud would change the bitstream"),
        ({"sinks": (SinkWish(ClassOnLeds),)}, "--sink would change the bitstream"),
        ({"board": "icesugar"}, "is a build for board 'icebreaker', not 'icesugar'"),
        ({"weights_of": "nowhere"}, "does not exist"),
    ],
)
def test_options_that_make_no_sense(base, tmp_path, changes, message):
    rng = np.random.default_rng(4)
    if "weights_of" in changes:
        changes = {"weights_of": tmp_path / changes["weights_of"]}
    options = options_of(tmp_path, "new", network(rng), rng, **{"weights_of": base, **changes})
    with pytest.raises(UsageError, match=message):
        build(options)
    plain = {"board": None, "clock_mhz": None, "link": Uart(), "sinks": ()}
    with pytest.raises(UsageError, match="is the build whose bitstream is kept"):
        build(replace(options, weights_of=base, out=base, **plain))


@pytest.mark.verilator
def test_other_weights_of_plain_ip(tmp_path):
    """Registers are those of the first build; the Verilog differs in contents of memories alone."""
    rng = np.random.default_rng(7)
    streams = find_streams("wishbone", "registers", program=True)
    first = options_of(
        tmp_path, "first", network(rng, inner=12), rng, board="none", device="generic",
        ip_name="my", arch="engine", target_fps=1000, streams=streams,
    )  # fmt: skip
    build(first)
    graph = network(rng, inner=12, scale=2.0)
    second = options_of(tmp_path, "second", graph, rng, weights_of=first.out)
    report = build(second)
    assert report.simulation.bit_exact
    assert report.simulation.cycles_per_inference == report.cycles_per_inference
    old, new = (BuildFolder.open(x.out) for x in (first, second))
    assert new.plan.loaded == (second.out / "ip" / "program.bin").read_bytes() != old.plan.loaded
    assert read_manifest(second.out).hash == read_manifest(first.out).hash
    for file in ("ip/my_wishbone.v", "ip/registers.h", "ip/my.svd"):
        assert (first.out / file).read_bytes() == (second.out / file).read_bytes()
    contents = re.compile(r"(tile_\d+_\d+\[\d+\] =)\s+\d+'h[0-9a-f]+;")
    rest = [contents.sub(r"\1", x.verilog) for x in (old, new)]
    assert rest[0] == rest[1]
    assert old.verilog != new.verilog


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arch": "auto"}, "--arch auto need not have one; give --arch engine"),
        ({"arch": "streaming"}, "--arch streaming need not have one"),
        ({"bus": None}, "needs registers by which the program comes; give --bus axi4-lite or"),
    ],
)
def test_programs_that_nobody_can_load(tmp_path, changes, message):
    rng = np.random.default_rng(7)
    options = {"arch": "engine", "bus": "wishbone", **changes}
    streams = find_streams(options["bus"], "streams", program=True)
    wanted = options_of(
        tmp_path, "net", network(rng), rng, board="none", device="generic", arch=options["arch"],
        streams=streams,
    )  # fmt: skip
    with pytest.raises(UsageError, match=message):
        build(wanted)


@pytest.mark.verilator
def test_weights_in_the_bitstream_are_refused(tmp_path):
    """As in a streaming design, and an engine that holds them in block RAM."""
    rng = np.random.default_rng(5)
    graph = network(rng, inner=4)
    options = options_of(
        tmp_path, "engine", graph, rng, board="ulx3s_85f", arch="engine", bitstream=False
    )
    build(options)
    other = options_of(tmp_path, "other", graph, rng, weights_of=options.out)
    with pytest.raises(UsageError, match="it has its weights in block RAM, not in a memory"):
        build(other)
    streaming = find_architecture("streaming")
    plan = streaming.plan(BuildFolder.open(options.out).fixed, find_board("ulx3s_85f"))
    with pytest.raises(UsageError, match="the bitstream has its weights in it, as all of --arch"):
        streaming.retrained(plan, graph, free=True)


def test_factors_are_rounded(fix, rng):
    """A shift that the bitstream does not have loses the lowest bits of its factors."""
    graph, device = fix(network(rng)), find_board("icebreaker").device
    design = Design(lower(graph, device), Shape(4, 4), device, 128)
    kept = {**design.engine.kept, "shift": design.program.scales.shift - 2}
    small = design.engine.with_kept({**kept, "residual_shift": design.program.residual_shift - 1})
    found = fit_shifts(graph, replace(design, existing=small))
    before, after = (
        {node.name: node.attrs["requant"] for node in g.nodes if "requant" in node.attrs}
        for g in (graph, found)
    )
    assert {name for name in before if before[name] != after[name]}
    for name, old in before.items():
        new = after[name]
        down = old.shift - new.shift
        assert 0 <= down <= 2
        factors = [[m / 2**r.shift for m in r.mult] for r in (old, new)]
        assert np.abs(np.subtract(*factors)).max() <= 0.5 / 2**new.shift
