"""A sensor decides how fast a design has to be."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from nnef_hw.boards.interfaces import find_sink, find_source
from nnef_hw.flow.sources import bind_sources, wanted_rate
from nnef_hw.frontend import save
from nnef_hw.frontend.audio_front import LogMelFront, put_in_front
from nnef_hw.hardware.devices import Resources
from nnef_hw.testing import GraphBuilder

FRONT = """front = "log_mel"
window = 512
hop = 16
points = 1024
bands = 4
emphasis = 0.0
"""
HOP, RATE = 16, 16_000


@pytest.fixture
def ear(cli, tmp_path, rng):
    """Return ``build(*options)`` of a network whose steps take longer than a hop."""
    net = GraphBuilder("ear")
    x = net.conv(net.input("features", [1, 4, 2, 1]), rng.normal(size=(3, 4, 2, 1)))
    save(net.build(net.reshape(x, [1, 3])), tmp_path / "ear.nnef.tgz")
    (tmp_path / "front.toml").write_text(FRONT)
    np.savez(tmp_path / "samples.npz", inputs=rng.uniform(-1, 1, (4, 1, 528, 1)))
    return lambda *options: cli(
        "build", "ear.nnef.tgz", "--front", "front.toml", "--stream", "time", "--board",
        "tang_nano_20k", "--freq", 27, "--calibrate", "samples.npz", "--no-bitstream",
        "--source", "i2s", *options,
    )  # fmt: skip


def test_a_design_has_to_keep_up_with_a_sensor(ear):
    """Nobody has given a rate; a lower one is no remedy."""
    result = ear()
    assert result.status == 2
    assert re.search(
        r"source i2s gives 1000 frames per second; model 'ear' does not reach 1000 inferences/s on "
        r"tang_nano_20k at 27 MHz \(27,000 cycles each\) .* take fewer than [\d,]+ cycles",
        result.err,
    ), result.err  # fmt: skip
    assert "use --target-fps" not in result.err


def test_a_rate_that_is_too_low_for_a_sensor_is_refused(ear):
    result = ear("--target-fps", 100)
    assert result.status == 2
    assert re.search(
        r"source i2s gives 16 samples every 27,000 cycles at 27 MHz, and the network takes [\d,]+ "
        r"for them; omit --target-fps", result.err,
    ), result.err  # fmt: skip


def test_a_rate_of_the_user_comes_first(rng):
    net = GraphBuilder("ear")
    x = net.conv(net.input("features", [1, 4, 2, 1]), rng.normal(size=(3, 4, 2, 1)))
    front = LogMelFront(rate=RATE, window=32, hop=HOP, points=32, bands=4, emphasis=0.0)
    graph = put_in_front(net.build(x), front)
    wishes = [find_source("i2s")]
    assert wanted_rate(None, [], graph) is None
    assert wanted_rate(None, wishes, graph) == RATE / 48
    assert wanted_rate(7.0, wishes, graph) == 7.0


def camera_of(rng, **plan):
    """Return the source of a network that sees, bound to a plan of an UP5K."""
    net = GraphBuilder("eye")
    graph = net.build(net.conv(net.input("x", [1, 1, 24, 32]), rng.normal(size=(2, 1, 3, 3))))
    port = SimpleNamespace(image=(24, 32, 1), bits=8, lanes=1, beats=24 * 32)
    plan = SimpleNamespace(inputs=(port,), clock_mhz=24.0, device="up5k", **plan)
    [source] = bind_sources([find_source("dvp")], graph, plan)
    return source


@pytest.mark.parametrize(("arch", "alone"), [("engine", True), ("streaming", False)])
def test_an_engine_takes_one_picture_at_a_time(arch, alone, rng):
    """Its next frame may enter a little before the last one has left; it waits all the same."""
    source = camera_of(rng, arch=arch, interval=99, latency=100, resources=Resources(bram=28))
    assert (source.alone, source.rows, source.columns) == (alone, 24, 32)
    assert not source.waiting


@pytest.mark.parametrize(("bram", "waiting"), [(28, True), (29, False)])
def test_a_picture_waits_if_block_ram_is_left(bram, waiting, rng):
    """An UP5K has 30, and 768 codes take 2 of them."""
    resources = Resources(bram=bram)
    source = camera_of(rng, arch="engine", interval=190_000, resources=resources)
    assert source.waiting == waiting


def test_a_plan_says_which_boards_keep_up(ear, cli):
    """Without their pins, or too slow, boards are refused; nobody has given a rate."""
    del ear
    arguments = (
        "plan", "ear.nnef.tgz", "--front", "front.toml", "--stream", "time", "--calibrate",
        "samples.npz", "--source", "i2s", "--board", "tang_nano_20k,fomu_pvt", "--json",
    )  # fmt: skip
    slow = cli(*arguments, "--freq", 24)
    assert slow.status == 2
    rows = {row["board"]: row for row in slow.json["boards"]}
    assert list(rows) == ["tang_nano_20k", "fomu_pvt"]
    assert "does not reach 1000 inferences/s" in rows["tang_nano_20k"]["refusal"]
    assert not rows["tang_nano_20k"]["remedy"].startswith("use --target-fps")
    assert "'fomu_pvt' has no pins i2s_bclk, i2s_ws, i2s_data" in rows["fomu_pvt"]["refusal"]
    fast = cli(*arguments, "--freq", 54)
    assert fast.status == 0, fast.err
    rows = {row["board"]: row for row in fast.json["boards"]}
    assert rows["tang_nano_20k"]["cycles_per_inference"] <= 54_000


def test_a_plan_has_room_for_sinks(ear, cli):
    """Boards need their pins; what they take is in the plan."""
    del ear
    arguments = (
        "plan", "ear.nnef.tgz", "--front", "front.toml", "--stream", "time", "--calibrate",
        "samples.npz", "--board", "tang_nano_20k,fomu_pvt", "--arch", "streaming", "--json",
    )  # fmt: skip
    plain = {row["board"]: row for row in cli(*arguments).json["boards"]}
    assert find_sink("uart_text:mean=4").blocks == 2
    assert find_sink("uart_text").blocks == 0
    result = cli(*arguments, "--source", "i2s", "--sink", "pin:threshold=-3")
    assert result.status == 0, result.err
    rows = {row["board"]: row for row in result.json["boards"]}
    assert (
        "'fomu_pvt' has no pins i2s_bclk, i2s_ws, i2s_data, which the source i2s needs"
        in rows["fomu_pvt"]["refusal"]
    )
    one, other = (row["tang_nano_20k"] for row in (rows, plain))
    assert round((one["lut"] - other["lut"]) * 20_736) == 120 + 45
    assert round((one["bram"] - other["bram"]) * 46) == 1
    result = cli(*arguments, "--sink", "pin:number=3")
    assert result.status == 2
    assert "there is no class 3" in result.out + result.err
