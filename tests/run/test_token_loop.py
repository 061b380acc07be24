"""The loop of a language model on boards: texts are those of the fixed model's loop."""

import json
from pathlib import Path

import numpy as np
import pytest
from step_graphs import step
from text_boards import paused_board, texts, token_samples

import nnef_hw as nh
from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import Uart
from nnef_hw.codegen.board import design_board
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.errors import UsageError
from nnef_hw.flow import compilation
from nnef_hw.frontend import save
from nnef_hw.host.link import LinkError, Timing
from nnef_hw.host.manifest import read_manifest
from nnef_hw.host.tokens import TokenLoop
from nnef_hw.run.device import Device
from nnef_hw.run.generate import FixedSteps
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.testing import GraphBuilder

pytestmark = [pytest.mark.system, pytest.mark.verilator]

NAMES = Path(__file__).parents[2] / "examples" / "names_gpt"
HASTY = Timing(silence=0.001, reply=0.002, stall=0.1, pause=20e-6)


def fixed_names():
    with np.load(NAMES / "samples.npz") as samples:
        few = {name: samples[name][:16] for name in ("token", "position")}
    model = nh.load(NAMES / "names_gpt.onnx", states={"keys": "keys_next", "values": "values_next"})
    return model.quantize(few, advice=False).graph


@pytest.fixture(scope="module")
def names():
    """The fixed network that writes names."""
    return fixed_names()


@pytest.mark.nightly
@pytest.mark.parametrize("arch", ["engine", "streaming"])
def test_names_are_those_of_the_fixed_model_under_stalls(arch, names, tmp_path, monkeypatch):
    """272 tokens of the greatest scores, and as many at random, while all streams pause."""
    verilog, clk_hz, manifest = paused_board(names, arch, Uart(), tmp_path, monkeypatch)
    prompts = [[0], [0, 5], [0, 13, 1, 18]] * 6
    with BoardTransport(verilog, clk_hz=clk_hz) as transport:
        device = Device(manifest, transport, HASTY)
        for settings in ({}, {"temperature": 0.8, "seed": 1}):
            steps = FixedSteps(names)
            roles = device.manifest.roles
            wanted = TokenLoop(roles, steps, begin=steps.reset, **settings)
            found = texts(device.token_loop(**settings), prompts, 16)
            assert found == texts(wanted, prompts, 16)
            assert sum(map(len, found)) >= 256
            assert len({tuple(text) for text in found}) > 2


def write_step(folder):
    """Write a small step and its samples."""
    rng = np.random.default_rng(3)
    graph = step(rng, size=2)
    save(graph, folder / "step.nnef.tgz")
    samples = token_samples(rng)
    np.savez(folder / "samples.npz", **samples)
    return samples


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A build of a small step, whose board has a loop and is simulated."""
    folder = tmp_path_factory.mktemp("looped")
    samples = write_step(folder)
    fixed = nh.load(folder / "step.nnef.tgz").quantize(samples, advice=False)
    plan = fixed.schedule("ulx3s_85f")
    return plan.build(folder / "build", bitstream=False, token_loop=True)


@pytest.fixture(scope="module")
def board(build):
    """The build's board, simulated."""
    with build.open_device("sim") as board:
        yield board


def test_a_board_writes_what_the_fixed_model_does(build, board):
    """On the chip, on the host, and frames between them, whose states begin anew."""
    settings = {"temperature": 2.0, "seed": 5}
    wanted = list(build.generate([3, 1], 6, **settings))
    assert len(wanted) == 6
    assert list(board.generate([3, 1], 6, **settings)) == wanted
    assert board.counters().frames == 7
    once = board.step({"token": [4], "position": [0]})
    host = board.token_loop(**settings, on_board=False)
    assert list(host.generate([3, 1], 6)) == wanted
    # a text that nobody reads to its end
    assert next(board.generate([2], 7)) == next(build.generate([2], 7))
    again = board.step({"token": [4], "position": [0]})
    assert all((again[name] == once[name]).all() for name in once)
    assert list(board.generate([3], 8, stop=wanted[0])) == list(
        build.generate([3], 8, stop=wanted[0])
    )


def test_the_seed_goes_on_from_text_to_text(build, cli):
    words = "--prompt", "3", "--tokens", "5", "--texts", "3", "--temperature", "2", "--json"
    on_chip, fixed = (
        json.loads(cli("generate", build.path, *words, *port).out)["tokens"]
        for port in (["--port", "sim"], [])
    )
    assert on_chip == fixed
    assert len({tuple(text) for text in fixed}) > 1


def test_what_cannot_be_is_refused_before_it_is_sent(board):
    for arguments, reason in (
        ({"prompt": [12]}, "the prompt has the token 12, but the network's are 0 to 10"),
        ({"prompt": [1] * 9}, "the prompt has 9 tokens, more than the 8 places of the context"),
        ({"prompt": [1], "stop": 11}, "the token 11 ends no text: the network's are 0 to 10"),
        ({"prompt": []}, "the prompt is empty"),
    ):
        with pytest.raises(UsageError, match=reason):
            board.generate(tokens=4, **arguments)


def test_a_board_without_a_loop_says_so(build, tmp_path):
    """By its manifest, and over the link."""
    plan = build._folder.plan
    folder = tmp_path / "plain"
    folder.mkdir()
    board = find_board("ulx3s_85f")
    graph = build._folder.fixed
    manifest = make_manifest(graph, plan, generator="test", link=Uart())
    (folder / "manifest.json").write_text(json.dumps(manifest))
    design = design_board(plan, graph, manifest, board)
    with BoardTransport(design.verilog, clk_hz=round(plan.clock_mhz * 1e6)) as transport:
        device = Device(read_manifest(folder), transport, HASTY)
        with pytest.raises(UsageError, match="no loop on the board; build it with --token-loop"):
            device.token_loop(on_board=True)
        with pytest.raises(LinkError, match="board refuses ABORT"):
            device.host.begin_texts()


def test_a_network_that_chooses_its_tokens_itself(tmp_path, cli):
    """A table of the next token, and an argmax behind it."""
    rng = np.random.default_rng(2)
    g = GraphBuilder("chain")
    token = g.input("token", [1], "integer")
    rows = g.op("gather", g.constant("rows", rng.normal(size=(9, 9))), token, axis=0)
    g = g.build(g.reshape(g.op("argmax_reduce", rows, axes=[1]), [1]))
    save(g, tmp_path / "chain.nnef.tgz")
    np.savez(tmp_path / "samples.npz", token=np.arange(9)[:, None])
    found = cli(
        "build", "chain.nnef.tgz", "--board", "ulx3s_85f", "--token-loop", "--calibrate",
        "samples.npz", "--frames", 3, "--no-bitstream", "--out", "out",
    )  # fmt: skip
    assert found.status == 0, found.err
    wanted = cli("generate", "out", "--prompt", "4", "--tokens", 12).out
    assert len(wanted.split()) == 13
    assert cli("generate", "out", "--prompt", "4", "--tokens", 12, "--port", "sim").out == wanted
    found = cli("generate", "out", "--prompt", "4", "--temperature", 1)
    assert found.status == 2
    assert "is a token, not scores to choose from with a temperature of 1" in found.err


@pytest.mark.parametrize("words", [[], ["--token-loop"]])
def test_a_loop_asks_for_the_least_latency(words, tmp_path, cli, monkeypatch):
    write_step(tmp_path)

    def choose(*arguments, by_latency, **wishes):
        raise UsageError(f"chosen by latency: {by_latency}")

    monkeypatch.setattr(compilation, "choose_plan", choose)
    found = cli(
        "build", "step.nnef.tgz", "--board", "ulx3s_85f", "--calibrate", "samples.npz",
        "--no-bitstream", "--out", "out", *words,
    )  # fmt: skip
    assert f"chosen by latency: {bool(words)}" in found.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--board", "none", "--device", "generic"], "--token-loop needs a board; omit it, or"),
        (["--board", "icebreaker", "--source", "i2s"], "--token-loop feeds all inputs, and the so"),
        (
            ["--board", "ulx3s_85f", "--set", "of_scores_y.activation_bits=16"],
            "its scores have 16 bits, and",
        ),
    ],
)
def test_wrong_options_are_refused(words, reason, tmp_path, cli):
    write_step(tmp_path)
    found = cli(
        "build", "step.nnef.tgz", "--token-loop", "--calibrate", "samples.npz", "--out", "out",
        "--no-bitstream", *words,
    )  # fmt: skip
    assert found.status == 2
    assert reason in found.err
    assert not (tmp_path / "out").exists()


def test_other_networks_are_refused(tiny, tmp_path, cli):
    found = cli(
        "build", tiny / "tiny.nnef.tgz", "--board", "ulx3s_85f", "--token-loop", "--calibrate",
        tiny / "bare.npz", "--no-bitstream", "--out", "out",
    )  # fmt: skip
    assert found.status == 2
    assert "the network is no step of a language model" in found.err
