"""examples/digits_vit: the files of two exporters are one network, as good as it was trained."""

from pathlib import Path

import numpy as np
import pytest

import nnef_hw as nh

FOLDER = Path(__file__).parents[2] / "examples" / "digits_vit"
SAMPLES = FOLDER / "samples.npz"


@pytest.fixture(scope="module")
def exports():
    return [nh.load(FOLDER / name) for name in ("digits_vit.onnx", "digits_vit.nnef.tgz")]


def test_both_exports_have_the_same_integers(exports):
    both = [model.quantize(SAMPLES).run_codes(SAMPLES)["output"] for model in exports]
    np.testing.assert_array_equal(*both)


def test_eight_bits_are_as_good_as_float(exports):
    samples = np.load(SAMPLES)
    fixed = exports[0].quantize(SAMPLES)
    found = fixed.run_codes(SAMPLES)["output"].reshape(450, 10).argmax(axis=1)
    assert np.mean(found == samples["labels"]) >= 0.98


def test_attention_takes_no_multiplication_per_cycle(exports):
    """Products of activations have arrays of their own: 16 tokens are not 16 x 16 x 8 cycles."""
    plan = exports[0].quantize(SAMPLES).schedule("tang_nano_20k")
    assert plan.interval <= 2048
