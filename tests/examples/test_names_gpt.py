"""examples/names_gpt: its step is built, and eight bits tell names as well as float does."""

from pathlib import Path

import numpy as np
import pytest

import nnef_hw as nh
from nnef_hw.host.tokenizer import read_tokenizer
from nnef_hw.run.generate import FixedSteps

FOLDER = Path(__file__).parents[2] / "examples" / "names_gpt"
SAMPLES = FOLDER / "samples.npz"

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def model():
    states = {"keys": "keys_next", "values": "values_next"}
    return nh.load(FOLDER / "names_gpt.onnx", states=states)


@pytest.fixture(scope="module")
def fixed(model):
    return model.quantize(SAMPLES, advice=False)


def loss(scores, labels):
    """Return the mean negative logarithm of what labels have by a softmax."""
    scores = np.reshape(scores, (*labels.shape, -1))
    chosen = np.take_along_axis(scores, labels[..., None], -1)[..., 0]
    return np.mean(np.log(np.exp(scores).sum(axis=-1)) - chosen)


def test_eight_bits_are_as_good_as_float(model, fixed):
    samples = np.load(SAMPLES)
    real, found = (loss(x.run(SAMPLES)["scores"], samples["labels"]) for x in (model, fixed))
    assert real < 2.2
    assert found < real + 0.02


@pytest.mark.nightly
def test_a_step_writes_a_row_of_each_cache(fixed):
    plan = fixed.schedule("ulx3s_85f")
    ops = [layer.op for layer in plan.layers]
    assert (ops.count("lookup"), ops.count("contraction"), ops.count("causal_mask")) == (2, 2, 1)
    assert plan.interval <= 128
    assert plan.latency <= 1200


def test_steps_give_what_sequences_do(fixed):
    samples = np.load(SAMPLES)
    steps, wanted = FixedSteps(fixed.graph), fixed.run_codes(SAMPLES)["scores"][0]
    for n in range(24):
        codes = {name: samples[name][0, n] for name in ("token", "position")}
        assert steps(codes)["scores"].reshape(-1).tolist() == wanted[n].reshape(-1).tolist()


def test_the_tokenizer_has_letters_and_the_end():
    tokenizer = read_tokenizer(FOLDER / "tokens.txt")
    assert (tokenizer.count, tokenizer.start) == (27, 26)
    assert tokenizer.decode(tokenizer.encode("emma\n")) == "emma\n"
