"""A board whose line carries texts alone: they are those of the fixed model's loop."""

import json
from pathlib import Path

import numpy as np
import pytest
from step_graphs import step
from sweeps import few
from text_boards import paused_board, texts, token_samples

import nnef_hw as nh
from nnef_hw.boards.hardware.texts import core
from nnef_hw.boards.interfaces import TextLine
from nnef_hw.frontend import save
from nnef_hw.host.line_loop import LineLoop, LineTiming
from nnef_hw.host.link import LinkError
from nnef_hw.host.tokens import TokenLoop
from nnef_hw.run.generate import FixedSteps
from nnef_hw.sim.board_runner import BoardTransport

pytestmark = [pytest.mark.system, pytest.mark.verilator]

HASTY = LineTiming(silence=0.003, reply=0.001)
SETTINGS = ({}, {"temperature": 0.8, "seed": 1})
PROMPTS = [[0], [0, 5], [0, 3, 1, 8]]


@pytest.fixture(scope="module")
def network():
    """A small step, quantized."""
    rng = np.random.default_rng(3)
    samples = token_samples(rng)
    return step(rng, size=2), samples


@pytest.fixture(scope="module")
def fixed(network, tmp_path_factory):
    """Its fixed graph."""
    folder = tmp_path_factory.mktemp("step")
    save(network[0], folder / "step.nnef.tgz")
    return nh.load(folder / "step.nnef.tgz").quantize(network[1], advice=False).graph


class Line:
    """The line of a simulated board, some of whose bytes are damaged or lost."""

    def __init__(self, transport):
        self.transport = transport
        self.changes = {}
        self.written = 0

    def write(self, data):
        for byte in data:
            change = self.changes.pop(self.written, lambda x: bytes([x]))
            self.written += 1
            if sent := change(byte):
                self.transport.write(sent)

    def read(self, timeout):
        return self.transport.read(timeout)


@pytest.fixture(scope="module")
def designed(fixed, tmp_path_factory):
    """A board on which all streams pause: its Verilog, its clock, and the manifest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "IDLE_SECONDS", 0.001)
        folder = tmp_path_factory.mktemp("designed")
        return paused_board(fixed, "engine", TextLine(), folder, patch)


@pytest.fixture
def line(designed):
    """The line of that board, just powered on, and the manifest."""
    verilog, clk_hz, manifest = designed
    with BoardTransport(verilog, clk_hz=clk_hz) as transport:
        yield Line(transport), manifest


def wanted(fixed, manifest, prompts, **settings):
    steps = FixedSteps(fixed)
    return texts(TokenLoop(manifest.roles, steps, begin=steps.reset, **settings), prompts, 5)


def test_texts_are_those_of_the_fixed_model_under_stalls(line, fixed):
    line, manifest = line
    for settings in SETTINGS:
        loop = LineLoop(manifest.roles, line, HASTY, manifest.hash, **settings)
        found = texts(loop, PROMPTS * 5, 5)
        assert found == wanted(fixed, manifest, PROMPTS * 5, **settings)
        assert sum(map(len, found)) >= 64
        assert len({tuple(text) for text in found}) > 2


def test_a_text_that_nobody_reads_to_its_end(line, fixed):
    line, manifest = line
    loop = LineLoop(manifest.roles, line, HASTY, manifest.hash)
    assert next(loop.generate([2], 7)) == wanted(fixed, manifest, [[2]])[0][0]
    assert texts(loop, PROMPTS, 5) == wanted(fixed, manifest, PROMPTS)
    # a host that ended within a head
    line.write(b"\x05\x00\x01")
    other = LineLoop(manifest.roles, line, HASTY, manifest.hash, temperature=0.8)
    assert texts(other, PROMPTS, 5) == wanted(fixed, manifest, PROMPTS, temperature=0.8)


@pytest.mark.parametrize(
    "place", few([2, 8, 519], [2, 519]), ids=["head", "weights", "last weight"]
)
def test_a_damaged_or_lost_byte_in_front_of_a_prompt_is_sent_again(line, fixed, place):
    line, manifest = line
    for change in (lambda x: bytes([x ^ 4]), lambda x: b""):
        line.written, line.changes = 0, {place: change}
        loop = LineLoop(manifest.roles, line, HASTY, manifest.hash, temperature=0.8, seed=2)
        assert texts(loop, PROMPTS, 5) == wanted(fixed, manifest, PROMPTS, temperature=0.8, seed=2)
        assert not line.changes


def test_a_damaged_prompt_is_told(line, fixed):
    line, manifest = line
    loop = LineLoop(manifest.roles, line, HASTY, manifest.hash)
    assert texts(loop, PROMPTS, 5) == wanted(fixed, manifest, PROMPTS)
    line.written, line.changes = 0, {8: lambda x: bytes([x ^ 2])}
    with pytest.raises(LinkError, match="took the token 3 of the prompt for 1"):
        list(loop.generate([3, 1], 4))
    line.written, line.changes = 0, {9: lambda x: b""}
    with pytest.raises(LinkError, match="stopped before its echo of a prompt's token"):
        list(loop.generate([3, 1], 4))
    assert texts(loop, PROMPTS, 5) == wanted(fixed, manifest, PROMPTS)


def test_another_build_is_told(line):
    line, manifest = line
    loop = LineLoop(manifest.roles, line, HASTY, bytes(32))
    with pytest.raises(
        LinkError, match=f"another build, whose hash begins {manifest.hash[:4].hex()}"
    ):
        list(loop.generate([3], 4))


class Silence:
    def write(self, data):
        pass

    def read(self, timeout):
        return b""


def test_a_board_that_does_not_answer_is_told(line):
    _, manifest = line
    with pytest.raises(LinkError, match="gave 0 of the 6 bytes of its answer"):
        list(LineLoop(manifest.roles, Silence(), HASTY, manifest.hash).generate([3], 4))


def test_commands_use_it(network, tmp_path, cli):
    save(network[0], tmp_path / "step.nnef.tgz")
    np.savez(tmp_path / "samples.npz", **network[1])
    words = (
        "build", "step.nnef.tgz", "--board", "ulx3s_85f", "--calibrate", "samples.npz",
        "--no-bitstream", "--link", "text_line", "--out", "out", "--frames", 3,
    )  # fmt: skip
    found = cli(*words)
    assert found.status == 2
    assert (
        "the link text_line carries texts, and nothing on the board writes any; give --to"
        in found.err
    )
    found = cli(*words, "--token-loop", "--layer-counters")
    assert "the link text_line has nothing for --layer-counters" in found.err
    assert cli(*words, "--token-loop").status == 0
    texts = "--prompt", "3", "--tokens", "5", "--texts", "3", "--temperature", "2", "--json"
    on_chip, on_host = (
        json.loads(cli("generate", "out", *texts, *port).out)["tokens"]
        for port in (["--port", "sim"], [])
    )
    assert on_chip == on_host
    found = cli(
        "run",
        "out",
        "--on",
        "device",
        "--port",
        "sim",
        "--input",
        "samples.npz",
        "--output",
        "y.npz",
    )
    assert found.status == 2
    assert "link 'text_line', which carries no arrays; run 'nnef-hw generate out'" in found.err
    assert json.loads(Path("out/manifest.json").read_text())["link"]["baud"] == 1_000_000
