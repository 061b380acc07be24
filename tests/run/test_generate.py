"""Texts of a build: the loop of the fixed model, and the same on a board."""

import json

import numpy as np
import pytest
from step_graphs import step

import nnef_hw as nh
from nnef_hw.arithmetic.sampling import Xorshift, choose_code, sampling_weights
from nnef_hw.frontend import save
from nnef_hw.reference import run_fixed

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A build of a small step, whose board is simulated."""
    rng, folder = np.random.default_rng(3), tmp_path_factory.mktemp("step")
    save(step(rng, size=2), folder / "step.nnef.tgz")
    shape = 6, 16, 1
    samples = {
        "token": rng.integers(0, 11, shape),
        "position": np.tile(np.arange(8), (6, 2))[..., None],
    }
    fixed = nh.load(folder / "step.nnef.tgz").quantize(samples, advice=False)
    plan = fixed.schedule("ulx3s_85f")
    return plan.build(folder / "build", bitstream=False)


def test_the_loop_is_that_of_the_fixed_model(build):
    """As if the network had been given what it wrote."""
    prompt, temperature, seed = [4, 7], 1.5, 9
    tokens = list(build.generate(prompt, 6, temperature=temperature, seed=seed))
    graph = build._folder.fixed
    given = [*prompt, *tokens[:-1]]
    codes = {"token": np.array(given)[:, None], "position": np.arange(len(given))[:, None]}
    [scores] = run_fixed(graph, codes).values()
    qtype, generator = graph.tensor(graph.outputs[0]).qtype, Xorshift(seed)
    weights = sampling_weights(qtype.scale, temperature, 256)
    scores = scores.reshape(len(given), -1)[len(prompt) - 1 :]
    assert tokens == [choose_code(row, weights, generator) for row in scores]
    assert len(tokens) == 6


def test_a_board_writes_what_the_fixed_model_does(build):
    settings = {"temperature": 2.0, "seed": 5}
    wanted = list(build.generate([3], 7, **settings))
    with build.open_device("sim") as board:
        assert list(board.generate([3], 7, **settings)) == wanted
        # the caches of the text before are hidden
        assert list(board.generate([3], 7, **settings)) == wanted


def test_the_command_prints_tokens(build, cli):
    found = cli("generate", build.path, "--prompt", "4,7", "--tokens", "5")
    assert found.status == 0
    assert found.out.split() == ["4", "7", *map(str, build.generate([4, 7], 5))]


def test_the_command_prints_texts(build, cli, tmp_path):
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\\n\n")
    words = "--tokenizer", tokens, "--texts", "3", "--temperature", "1.5", "--seed", "2"
    found = json.loads(cli("generate", build.path, *words, "--prompt", "ab", "--json").out)
    assert found["prompt"] == [10, 0, 1]
    assert len(found["texts"]) == 3
    letters = "abcdefghij\n"
    for text, written in zip(found["texts"], found["tokens"], strict=True):
        assert text == "ab" + "".join(letters[token] for token in written)
    shown = cli("generate", build.path, *words, "--prompt", "ab").out
    assert shown == "".join(text if text.endswith("\n") else f"{text}\n" for text in found["texts"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--prompt", "x"], "the prompt 'x' is not a list of tokens; give --tokenizer FILE"),
        (["--prompt", "12"], "the prompt has the token 12, but the network's are 0 to 10"),
        ([], "the prompt is empty"),
        (["--prompt", "1 2 3 4 5 6 7 8 9"], "more than the 8 places of the context"),
        (["--tokenizer", "two.txt"], "'two.txt' has 2 tokens, the network 11"),
    ],
)
def test_what_does_not_fit_is_refused(words, reason, build, cli, tmp_path):
    (tmp_path / "two.txt").write_text("a\n\\n\n")
    found = cli("generate", build.path, *words)
    assert found.status == 2
    assert reason in found.err
