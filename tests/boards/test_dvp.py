"""Cameras with a parallel port: their registers, pictures on whole boards, and what is lost."""

import itertools
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from amaranth.sim import Simulator

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.cameras.receiver import DvpReceiver
from nnef_hw.boards.hardware.cameras.sequencer import RegisterSequencer
from nnef_hw.boards.interfaces import Dvp, Feed, find_source, source_of
from nnef_hw.boards.interfaces.cameras import CAMERAS
from nnef_hw.boards.interfaces.cameras.camera import PAUSE
from nnef_hw.boards.interfaces.cameras.picture import camera_bytes
from nnef_hw.cli import main
from nnef_hw.errors import CheckError, TargetError, UsageError
from nnef_hw.frontend import save
from nnef_hw.frontend.picture_front import ImageFront
from nnef_hw.rtl.streams.stream import beat_layout
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.see import require_seen, see
from nnef_hw.samples.png import write_png
from nnef_hw.testing import GraphBuilder

ROWS, COLUMNS = 24, 32


def network(rng, *, is_slow=False):
    g = GraphBuilder("net")
    x = g.input("x", (1, 1, ROWS, COLUMNS))
    x = g.op("relu", g.conv(x, rng.normal(size=(4, 1, 3, 3)) / 3, np.zeros((1, 4))))
    if is_slow:
        for shape in ((32, 4, 3, 3), (36, 32, 3, 3)):
            x = g.op("relu", g.conv(x, rng.normal(size=shape) / 9, np.zeros((1, shape[0]))))
    return g.build(g.op("mean_reduce", x, axes=[2, 3]))


@pytest.fixture
def built(tmp_path, rng):
    """Builds a network with a camera, without a bitstream, and makes pictures for it."""

    def make(*arguments, front=None, pictures=2, is_slow=False):
        graph = network(rng, is_slow=is_slow)
        graph = graph if front is None else front.put(graph)
        save(graph, tmp_path / "net.nnef.tgz")
        [name] = graph.inputs
        shape = graph.tensor(name).shape[1:]
        np.savez(tmp_path / "s.npz", **{name: rng.integers(0, 256, (8, *shape)) / 255})
        folder = tmp_path / "pictures"
        folder.mkdir()
        size = (ROWS, COLUMNS) if front is None else front.size
        for n in range(pictures):
            colours = rng.integers(0, 256, (*size, 3 if n else 1)).astype(np.uint8)
            write_png(folder / f"{n}.png", colours)
        out = tmp_path / "out"
        status = main([
            "build", str(tmp_path / "net.nnef.tgz"), "--calibrate", str(tmp_path / "s.npz"),
            "--no-bitstream", "--out", str(out), *arguments,
        ])  # fmt: skip
        assert status == 0
        return SimpleNamespace(folder=BuildFolder.open(out), pictures=folder)

    return make


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("board", "arguments", "front"),
    [
        pytest.param(
            "icebreaker", ["--source", "dvp", "--freq", "12"], None, marks=pytest.mark.nightly
        ),
        ("icebreaker", ["--source", "dvp:lines=4", "--freq", "12"], None),
        ("upduino_v3", ["--source", "dvp", "--freq", "12", "--sink",
          "uart_text:names=a/b/c/d,threshold=0.2"], None),
        ("tang_nano_20k", ["--source", "dvp:camera=ov7670", "--freq", "27"],
         ImageFront(size=(60, 80), pixels="yuv422")),
        pytest.param(
            "ulx3s_12f", ["--source", "dvp:camera=ov7670,pixels=rgb565", "--freq", "25"],
            ImageFront(size=(48, 64), pixels="rgb565"), marks=pytest.mark.nightly,
        ),
        pytest.param(
            "ulx3s_12f", ["--source", "dvp:camera=ov2640", "--freq", "25"],
            ImageFront(size=(48, 64), pixels="yuv422"), marks=pytest.mark.nightly,
        ),
    ],
    ids=["8 lines", "4 lines", "text", "yuv422", "rgb565", "ov2640"],
)  # fmt: skip
def test_every_picture_gives_the_codes_of_the_model(built, board, arguments, front):
    made = built("--board", board, *arguments, front=front)
    found = see(made.folder, made.pictures)
    require_seen(found)
    assert (found.sent, found.computed, found.lost) == (2, 2, 0)
    assert [picture.name for picture in found.pictures] == ["0.png", "1.png"]
    assert found.pictures[0].scores != found.pictures[1].scores


@pytest.mark.verilator
def test_an_engine_takes_a_picture_when_it_is_done(built):
    """Pictures that come while it computes are dropped, and counted."""
    made = built(
        "--board", "icebreaker", "--arch", "engine", "--source", "dvp:fps=10", is_slow=True
    )
    [source] = map(source_of, made.folder.manifest["sources"])
    assert source.alone
    found = see(made.folder, made.pictures)
    require_seen(found)
    assert found.sent > found.computed >= 2
    assert found.lost == found.sent - found.computed
    assert all(picture.times for picture in found.pictures)


@pytest.mark.verilator
def test_a_picture_waits_in_memory_while_an_engine_computes(built):
    """No picture is lost, though the engine is not done when the next one begins."""
    made = built(
        "--board", "icebreaker", "--arch", "engine", "--source", "dvp:fps=90", is_slow=True,
        pictures=6,
    )  # fmt: skip
    [source] = map(source_of, made.folder.manifest["sources"])
    clk_hz = round(made.folder.plan.clock_mhz * 1e6)
    assert source.waiting
    assert replace(source, waiting=False).pictures_taken(made.folder.plan.interval, clk_hz) < 90
    found = see(made.folder, made.pictures)
    require_seen(found)
    assert (found.sent, found.computed, found.lost) == (6, 6, 0)
    assert [picture.times for picture in found.pictures] == [1] * 6


@pytest.mark.verilator
def test_a_camera_that_does_not_answer_is_told(built):
    made = built("--board", "icebreaker", "--source", "dvp", "--freq", "12")
    found = see(made.folder, made.pictures, answers=False)
    assert (found.error, found.computed) == (True, 0)
    with pytest.raises(CheckError, match=r"not acknowledge its registers.*cam_error is high"):
        require_seen(found)


def test_sim_wants_a_camera_and_pictures(built, tmp_path, cli):
    made = built("--board", "icebreaker", "--source", "dvp", "--freq", "12")
    sized = tmp_path / "sized"
    sized.mkdir()
    write_png(sized / "a.png", np.zeros((10, 20, 1), np.uint8))
    for folder, message in (
        (tmp_path / "none", "give --images FOLDER"),
        (sized, "has 20x10 pixels; the camera sends 162x122, and the network sees 32x24"),
    ):
        found = cli("sim", made.folder.path, "--images", folder)
        assert (found.status, message in found.err) == (2, True), found.err
    manifest = made.folder.path / "manifest.json"
    entries = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**entries, "sources": []}))
    found = cli("sim", made.folder.path, "--images", made.pictures)
    assert found.status == 2
    assert "build it with --source dvp" in found.err


def fed(picture=(1, ROWS, COLUMNS), **given):
    return Feed("x", 1, shape=picture, picture=picture, qtype=QType(8, True, 1.0), **given)


def wished(text, feed=None):
    wish = find_source(text)
    return wish.kind.of(feed or fed(), **dict(wish.options))


@pytest.mark.parametrize(
    ("text", "feed", "message"),
    [
        ("dvp:camera=ov9999", None, "no camera 'ov9999'; its cameras are hm01b0, ov2640, ov7670"),
        ("dvp:pixels=rgb565", None, "HM01B0 sends no 'rgb565'; it sends grey: pixels=NAME"),
        ("dvp:camera=ov7670,lines=4", None, "no port of 4 lines; give lines=8"),
        ("dvp:fps=-1", None, "fps=-1 is no number of pictures"),
        ("dvp:fps=150", None, "HM01B0 sends 120.9 pictures per second at most, and fps=150 are"),
        ("dvp:rate=3", None, "the source dvp has no option 'rate'; its options are camera, pixels"),
        ("dvp:lines=few", None, "'few' is no value of lines, an option of the source dvp"),
        ("i2s:gain=3", None, "the source i2s has no option 'gain'; its options are rate"),
        ("dvp", fed((1, 480, 640)), "takes 480x640 pixels, and HM01B0 sends 122x162 or 244x324"),
        ("dvp", fed((3, 96, 96)), "takes 3 codes per pixel, and HM01B0 sends 1; decode them in"),
        ("dvp", replace(fed(), picture=None), "gives bytes of a picture, and its shape is 1x24x32"),
        ("dvp", replace(fed(), qtype=QType(16, True, 1.0)), "of 16 bits; put a front end before"),
    ],
)
def test_says_what_it_cannot_give(text, feed, message):
    with pytest.raises((UsageError, TargetError), match=re.escape(message)):
        wished(text, feed)


def test_says_what_it_needs():
    source = wished("dvp:lines=4,fps=10")
    assert source.pins["cam_data"].width == 4
    # every twelfth one, less the time of a picture's rows
    spacing = 376 * 132 / 6e6
    assert source.frames_per_second == pytest.approx(1 / (12 * spacing - spacing * ROWS / 132))
    assert Dvp.from_json(json.loads(json.dumps(source.to_json()))) == source
    assert dict(find_source("dvp:lines=4,fps=10").options).items() <= source.given.items()
    with pytest.raises(TargetError, match=r"10 MHz or more.*12 MHz give it 6; choose a faster"):
        wished("dvp:camera=ov7670").check_clock(12_000_000)
    streaming = wished("dvp", fed(alone=False))
    most = 376 * 8 * ROWS
    streaming.check_interval(most, 36_750_000)
    with pytest.raises(TargetError, match=f"in {most:,} cycles at 36.75 MHz.*--target-fps 509"):
        streaming.check_interval(most + 1, 36_750_000)
    wished("dvp").check_interval(1 << 30, 36_750_000)
    alone = wished("dvp:fps=60")
    alone.check_interval(300_000, 36_750_000)
    with pytest.raises(
        TargetError,
        match=r"sends 92.56, and the network, with 350,000 cycles each, "
        r"takes 46.28 of them \(92.56 if one could wait.*give fps=46.2, or a greater",
    ):
        alone.check_interval(350_000, 36_750_000)


def test_pictures_that_are_taken():
    """The engine is done as the next picture's rows begin, or the next picture waits."""
    spacing = 376 * 8 * 132
    # as many cycles as codes pass while these come
    rest = spacing - 376 * 8 * ROWS + ROWS * COLUMNS
    clk_hz, sends = 36_750_000, 36_750_000 / (376 * 8 * 132)
    plain, waits = wished("dvp"), replace(wished("dvp"), waiting=True)
    for source, cycles, share in (
        (plain, rest, 1), (plain, rest + 1, 1 / 2),
        (waits, spacing, 1), (waits, 2 * spacing, 1 / 2), (plain, 2 * spacing, 1 / 3),
    ):  # fmt: skip
        assert source.pictures_taken(cycles, clk_hz) == pytest.approx(share * sends, rel=5e-3)
    between = waits.pictures_taken(spacing * 5 // 4, clk_hz)
    assert between == pytest.approx(sends * 4 / 5, rel=2e-3)


@pytest.mark.parametrize(
    ("text", "may_wait", "waiting"),
    [("dvp", True, True), ("dvp", False, False), ("dvp:fps=46", True, False),
     ("dvp:fps=47", True, True)],
)  # fmt: skip
def test_a_picture_waits_where_that_gives_what_is_wanted(text, may_wait, waiting):
    found = wished(text, fed(interval=350_000, clk_hz=36_750_000, may_wait=may_wait))
    assert found.waiting == waiting


@pytest.mark.parametrize("camera", CAMERAS, ids=lambda camera: camera.name)
def test_clocks_are_those_of_the_data_sheets(camera):
    """The camera's own clock is within its limits, and its pixel clock is seen four times."""
    for lines in camera.lines:
        for mode in camera.modes:
            source = Dvp("x", mode.rows, mode.columns, 1, camera=camera.name, lines=lines)
            assert source.mode == mode
            for clk_hz in (25_000_000, 27_000_000, 36_750_000, 87_500_000):
                source.check_clock(clk_hz)
                own = clk_hz / source.parameters(clk_hz)["clock_divider"]
                assert camera.clock_hz[0] <= own <= camera.clock_hz[1]
                assert source.period(clk_hz) >= 4


@pytest.mark.parametrize("camera", CAMERAS, ids=lambda camera: camera.name)
def test_a_line_holds_its_bytes(camera):
    """Registers and values are bytes, and a picture's lines fit between two of the next one."""
    for mode in camera.modes:
        assert mode.columns * camera.pixel_bytes * mode.byte < mode.line
        assert mode.rows < mode.lines
        for pixels in camera.pixels:
            for write in camera.writes(mode, pixels, camera.lines[0]):
                if write != PAUSE:
                    assert 0 <= write[0] < 1 << 8 * camera.register_bytes
                    assert 0 <= write[1] < 256


def test_exposure_ends_before_the_next_picture():
    """Of an HM01B0, whose automatic exposure has a limit of its own."""
    [camera] = [camera for camera in CAMERAS if camera.name == "hm01b0"]
    for mode in camera.modes:
        values = dict(mode.writes)
        assert values[0x0340] << 8 | values[0x0341] == mode.lines
        assert values[0x2105] << 8 | values[0x2106] == mode.lines - 2


@pytest.mark.parametrize("board", ["icebreaker", "upduino_v3", "tang_nano_20k", "ulx3s_85f"])
def test_boards_have_its_pins(board):
    assert find_board(board).has_pins(wished("dvp"))


def test_bytes_of_a_camera(rng):
    colours = rng.integers(0, 256, (4, 6, 3)).astype(np.uint8)
    grey = np.full((4, 6, 1), 77, np.uint8)
    assert (camera_bytes(grey, "yuv422") == [77, 128]).all()
    assert (camera_bytes(grey.repeat(3, -1), "grey") == 77).all()
    words = camera_bytes(colours, "rgb565").astype(int)
    assert (words[..., 0] >> 3 == colours[..., 0] >> 3).all()
    assert (words[..., 1] & 31 == colours[..., 2] >> 3).all()
    full = camera_bytes(np.full((1, 2, 3), [255, 0, 0], np.uint8), "yuv422")
    np.testing.assert_array_equal(full, [[[77, 85], [77, 255]]])


LAYOUT = beat_layout(bits=8, signed=True, lanes=1)
SHAPE = {
    "rows": 2, "columns": 3, "channels": 1, "step": 1, "top": 1, "left": 1,
    "waiting": False, "lines": 8, "clock_divider": 4, "vsync_in_frame": True, "address": 0x24,
    "register_bytes": 1,
    "writes": ((1, 2),), "quarter": 8, "wait": 2,
}  # fmt: skip


def receive(pictures, *, alone=False, ready=lambda cycle: 1, inside=lambda cycle: 0, **changed):
    """Send pictures, lists of rows; return beats, and what was lost."""
    dut = DvpReceiver(LAYOUT, alone=alone, **{**SHAPE, **changed})
    found, lost, wires = [], [], []
    for picture in pictures:
        for row in picture:
            wires += [(0, 1, 1, byte) for byte in map(int, row) for _ in range(4)]
            wires += [(0, 1, 0, 0)] * 6
        wires += [(0, 0, 0, 0)] * 30
    sim = Simulator(dut)
    sim.add_clock(1e-6)

    async def camera(ctx):
        # it acknowledges everything
        await ctx.tick().until(dut.sequencer.done)
        for cycle, (_, vsync, href, data) in enumerate(wires):
            ctx.set(dut.cam_vsync, vsync)
            ctx.set(dut.cam_href, href)
            ctx.set(dut.cam_data, data)
            ctx.set(dut.cam_pclk, href and cycle % 4 >= 2)
            ctx.set(dut.o.ready, ready(cycle))
            ctx.set(dut.inside, inside(cycle))
            if ctx.get(dut.o.valid) and ready(cycle):
                found.append((ctx.get(dut.o.p.data[0]), ctx.get(dut.o.p.last)))
            await ctx.tick()
        ctx.set(dut.o.ready, 1)
        async for _, _, valid, code, last in ctx.tick().sample(
            dut.o.valid, dut.o.p.data[0], dut.o.p.last
        ):
            if valid:
                found.append((code, last))
            if len(lost) > 60:
                break
            lost.append(ctx.get(dut.lost))

    sim.add_testbench(camera)
    sim.run()
    return found, lost[-1]


def expected(pictures):
    return [
        (int(byte) - 128, int(n == 5))
        for picture in pictures
        for n, byte in enumerate(np.asarray(picture)[1:3, 1:4].flat)
    ]


@pytest.fixture
def pictures(rng):
    # rows have a multiple of four cycles before the next one begins
    return rng.integers(0, 256, (3, 4, 5))


def test_the_middle_is_taken(pictures):
    assert receive(pictures) == (expected(pictures), 0)
    assert receive(pictures, alone=True) == (expected(pictures), 0)


def test_a_picture_that_is_cut_short_is_filled_and_counted(pictures):
    short = [pictures[0].tolist(), pictures[1][:2].tolist(), pictures[2].tolist()]
    found, lost = receive(short)
    assert lost == 1
    assert found[:6] + found[12:] == expected(pictures[[0, 2]])
    assert found[6:9] == expected(pictures)[6:9]
    assert found[9:12] == [(-128, 0), (-128, 0), (-128, 1)]


def test_a_picture_that_comes_too_early_is_dropped(pictures):
    """The accelerator holds a frame until the third picture has begun."""
    found, lost = receive(pictures, alone=True, inside=lambda cycle: 60 < cycle < 200)
    assert (found, lost) == (expected(pictures[[0, 2]]), 1)


def test_a_whole_picture_waits(pictures):
    """Nothing is taken until the second one has begun: the first one is whole, the second lost."""
    found, lost = receive(
        pictures, alone=True, waiting=True, ready=lambda cycle: cycle > 230, inside=lambda cycle: 1
    )
    assert (found, lost) == (expected(pictures[[0, 2]]), 1)
    slow = receive(pictures, alone=True, waiting=True, ready=lambda cycle: cycle % 3 == 0)
    assert slow == (expected(pictures), 0)


def test_bytes_that_nobody_takes_are_missed_in_whole_pictures(pictures):
    found, lost = receive(pictures, alone=True, ready=lambda cycle: 0)
    # two codes wait; the rest of the first picture has no room, and the others have none either
    assert lost == 3
    assert found[:2] == expected(pictures)[:2]
    assert [last for _, last in found] == [0, 0, 0, 0, 0, 1]


def wires_of(writes, *, acknowledged, cycles=4_000):
    """The two wires of a sequencer, and its members at the end."""
    dut = RegisterSequencer(address=0x24, register_bytes=2, writes=writes, quarter=8, wait=4)
    levels, end = [], {}
    sim = Simulator(dut)
    sim.add_clock(1e-6)

    async def bench(ctx):
        for cycle in range(cycles):
            low = ctx.get(dut.sda_low)
            released = not acknowledged(cycle)
            ctx.set(dut.sda_level, not low and released)
            levels.append((ctx.get(dut.scl), 1 - low))
            await ctx.tick()
        end.update(done=ctx.get(dut.done), failed=ctx.get(dut.failed))

    sim.add_testbench(bench)
    sim.run()
    return levels, end


def words(levels):
    """The bytes of all writes: bits are stable while the clock is high."""
    found = []
    for (scl, sda), (next_scl, next_sda) in itertools.pairwise(levels):
        if scl and next_scl and sda != next_sda:
            if not next_sda:
                found.append([])
        elif not scl and next_scl:
            found[-1].append(next_sda)
    return [
        [int("".join(map(str, bits[n : n + 8])), 2) for n in range(0, len(bits) - 8, 9)]
        for bits in found
    ]


def test_registers_are_written_in_order():
    levels, end = wires_of([(0x0103, 0x00), PAUSE, (0x3059, 0x42)], acknowledged=lambda cycle: True)
    assert end == {"done": 1, "failed": 0}
    assert words(levels) == [[0x48, 0x01, 0x03, 0x00], [0x48, 0x30, 0x59, 0x42]]


def test_a_camera_that_comes_late_is_asked_again():
    levels, end = wires_of([(0x0103, 0x00)], acknowledged=lambda cycle: cycle > 900)
    assert end == {"done": 1, "failed": 0}
    found = words(levels)
    assert found[-1] == [0x48, 0x01, 0x03, 0x00]
    assert len(found) > 1
    assert all(word == [0x48] for word in found[:-1])
    _, end = wires_of([(0x0103, 0x00)], acknowledged=lambda cycle: False)
    assert end == {"done": 0, "failed": 1}
