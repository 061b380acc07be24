"""Boards that are moved: networks over windows of motion, from the sensor's wires to pins."""

import json
import re
import wave
from dataclasses import dataclass

import numpy as np
import pytest

from nnef_hw.boards.interfaces import link_of, sink_of
from nnef_hw.boards.interfaces.imu import ERROR, READ, WRITTEN
from nnef_hw.cli import main
from nnef_hw.errors import CheckError
from nnef_hw.frontend import save
from nnef_hw.host.manifest import read_manifest
from nnef_hw.reference import run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import Device
from nnef_hw.run.simulated_board import sources_of, with_pads
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.testing import GraphBuilder

pytestmark = [pytest.mark.system, pytest.mark.verilator]

TIME = 32
SOURCE = "imu:rate=1000,acceleration=8"
SINKS = (
    "--sink", "pin:threshold=0.36,quiet=1",
    "--sink", "uart_text:threshold=0.34,quiet=1,baud=500000",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A network's input, the order of its axes, and how it is built."""

    shape: tuple[int, ...]
    words: str


CASES = {
    "six": Case((1, 6, TIME), "--board icebreaker"),
    "last": Case((1, TIME, 6), "--board icebreaker --link none"),
    "ulx3s": Case((1, 6, 1, TIME), "--board ulx3s_85f --freq 12 --arch engine"),
    "steps": Case((1, 3, TIME), "--board icebreaker --stream time"),
}  # fmt: skip


def network(rng, shape, *, hidden=0):
    """A convolution in time, perhaps a layer that takes long, and a score for each of 3 classes."""
    g = GraphBuilder("net")
    x = g.input("motion", shape)
    if shape[1] == TIME:
        x = g.op("transpose", x, axes=[0, 2, 1], shape=(1, shape[2], TIME))
    weights = rng.normal(size=(4, shape[1] if shape[1] < TIME else shape[2], *shape[2:-1], 3)) / 2
    x = g.op("relu", g.conv(x, weights, np.zeros((1, 4))))
    count = 4 * (TIME - 2)
    x = g.reshape(x, [1, count])
    for size in (hidden, 3) if hidden else (3,):
        x = g.op("linear", x, rng.normal(size=(size, count)) / 4, np.zeros((1, size)))
        count = size
    return g.build(g.op("softmax", x, axes=[1]))


def command(folder, rng, shape, words, *, hidden=0):
    """Return the command that builds a network of such an input in a folder."""
    save(network(rng, shape, hidden=hidden), folder / "net.nnef.tgz")
    np.savez(folder / "samples.npz", motion=rng.uniform(-1, 1, (16, *shape[1:])))
    found = [
        "build", folder / "net.nnef.tgz", "--calibrate", folder / "samples.npz", "--frames", 3,
        *words.split(), "--source", SOURCE, *SINKS, "--no-bitstream", "--out", folder / "out",
    ]  # fmt: skip
    return list(map(str, found))


@pytest.fixture(scope="module", params=CASES)
def moved(request, tmp_path_factory):
    """Return a build, and the numbers that its sensor is to give."""
    case, rng = CASES[request.param], np.random.default_rng(7)
    folder = tmp_path_factory.mktemp(request.param)
    assert main(command(folder, rng, case.shape, case.words)) == 0
    [source] = sources_of(folder / "out")
    numbers = rng.integers(-32_768, 32_768, (4 * TIME + 5, source.channels))
    # the ends of the range, and what is nearly still
    numbers[:2] = [[-32_768], [32_767]]
    numbers[TIME : 2 * TIME] //= 64
    made = BuildFolder.open(folder / "out")
    # so beats of several codes are among the cases
    assert made.plan.inputs[0].lanes == 2 or request.param != "six"
    return made, source, numbers


def write_wav(path, numbers, rate):
    with wave.open(str(path), "wb") as file:
        file.setparams((numbers.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes(numbers.astype("<i2").tobytes())
    return path


def board_of(made, source, arguments):
    """Return a simulated board whose sensor has such arguments."""
    verilog, top = with_pads(made.path, (made.path / "board" / "board_top.v").read_text())
    return BoardTransport(
        verilog, clk_hz=made.manifest["clock_mhz"] * 1e6, link=link_of(made.manifest["link"]),
        others=[source, *map(sink_of, made.manifest["sinks"])],
        numbers={source.name: arguments}, top=top,
    )  # fmt: skip


def test_events_are_those_of_the_model(moved, cli, tmp_path):
    """Each step of 32 samples has an event with its score, or each sample has."""
    made, source, numbers = moved
    wav = write_wav(tmp_path / "motion.wav", numbers, source.rate)
    result = cli("sim", made.path, "--wav", wav, "--json")
    assert result.status == 0, result.err
    told = json.loads(result.out)
    assert (told["equal"], told["lost"], told["medium"]) == (True, 0, "motion")
    assert told["steps"] == len(numbers) // source.samples
    texts = [event for event in told["events"] if event["name"].isdecimal()]
    # behind an event comes a step without one
    assert told["steps"] // 3 <= len(texts) <= (told["steps"] + 1) // 2
    assert len({event["name"] for event in texts}) > 1
    page = (made.path / "sound.html").read_text()
    assert page.count('<polygon class="wave"') == source.channels
    assert "acceleration x" in page
    assert "<image" not in page


@pytest.mark.parametrize("moved", ["six", "ulx3s", "steps"], indirect=True)
def test_a_host_gets_the_codes_of_the_model(moved, rng):
    """Of a session that begins anywhere in the motion."""
    made, source, _ = moved
    steps = 3 if source.samples > 1 else 40
    numbers = rng.integers(-32_768, 32_768, (8 * TIME, source.channels))
    with board_of(made, source, source.moves(numbers)) as board:
        [scores] = Device(read_manifest(made.path), board).record(steps).values()
    fixed, count = made.fixed, steps * source.samples
    [name], [output] = fixed.inputs, fixed.outputs
    axis = fixed.tensor(name).shape[1:].index(source.channels)
    codes = source.codes(numbers)
    found = 0
    for begin in range(len(codes) - count):
        frames = codes[begin : begin + count].reshape(steps, source.samples, source.channels)
        frames = np.moveaxis(frames, 2, 1) if axis == 0 else frames
        frames = frames.reshape(steps, *fixed.tensor(name).shape[1:])
        lead = frames[None] if fixed.is_sequential else frames
        expected = run_fixed(fixed, {name: lead})[output]
        real = fixed.tensor(output).qtype.dequantize(expected).reshape(steps, -1)
        found += np.array_equal(real, scores.reshape(steps, -1))
    assert found == 1


@pytest.mark.parametrize("moved", ["six"], indirect=True)
@pytest.mark.parametrize(
    ("given", "reads"), [({"readings": 0}, 0), ({"identity": 0x70}, 0), ({"readings": 5}, 5)]
)
def test_a_sensor_that_is_not_there_is_told(moved, given, reads):
    """None answers, another one does, or one is taken away: the pin for errors is high."""
    made, source, numbers = moved
    with board_of(made, source, source.moves(numbers, **given)) as board:
        board.advance(int(0.04 * made.manifest["clock_mhz"] * 1e6))
        told = source.reported(board.received())
    assert [value for _, sort, value, _ in told if sort == ERROR] == [1]
    assert sum(sort == READ for _, sort, *_ in told) == reads
    writes = source.parameters(12_000_000)["writes"] if reads else ()
    assert tuple((x, y) for _, sort, x, y in told if sort == WRITTEN) == tuple(writes)
    with pytest.raises(CheckError, match=f"has read {reads} samples of the {6 * source.samples}"):
        source.frame_ends(
            b"".join(n.to_bytes(8, "little") + bytes([READ, 0, 0]) for n in range(reads)), 6, 1e6
        )


def test_a_network_that_is_too_slow_is_refused(cli, rng, tmp_path):
    words = "--board ulx3s_85f --freq 12 --stream time --target-fps 100"
    found = cli(*command(tmp_path, rng, (1, 3, TIME), words, hidden=160))
    assert found.status == 2
    assert re.search(
        r"source imu gives 1 samples every 12,000 cycles at 12 MHz, and the network takes [\d,]{6} "
        r"for them; omit --target-fps, so that the source says it, or give 1000, a faster --freq",
        found.err,
    )


@pytest.mark.parametrize("moved", ["six"], indirect=True)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.csv", "a.csv has 2 channels; the build's sensor of motion gives"),
        ("b.csv", "b.csv has 1 samples, and a step takes 32; give more of motion"),
        ("c.wav", "c.wav has 50 samples of 16 bits per second; the build's sensor of motion gives"),
    ],
)
def test_other_files_are_refused(moved, cli, tmp_path, name, message):
    made, _, numbers = moved
    (made.path / "sound.html").unlink(missing_ok=True)
    np.savetxt(tmp_path / "a.csv", numbers[:, :2], fmt="%d", delimiter=",")
    np.savetxt(tmp_path / "b.csv", numbers[:1], fmt="%d", delimiter=",")
    write_wav(tmp_path / "c.wav", numbers, 50)
    found = cli("sim", made.path, "--wav", tmp_path / name)
    assert (found.status, message in found.err) == (2, True), found.err
    assert not (made.path / "sound.html").exists()
