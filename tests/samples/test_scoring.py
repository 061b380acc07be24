"""Confusion and the worst samples, against what they mean."""

import numpy as np
import pytest

from nnef_hw.samples.scoring import WORST, confusion, nats, worst


@pytest.fixture
def scores(rng):
    """Outputs of 40 samples for 4 classes, and labels of which most are found."""
    outputs = rng.normal(size=(40, 4, 1, 1))
    labels = outputs.reshape(40, 4).argmax(axis=1)
    labels[::5] = rng.integers(0, 4, 8)
    return outputs, labels


def test_confusion_counts_every_sample(scores):
    outputs, labels = scores
    table = np.array(confusion(outputs, labels))
    found = outputs.reshape(40, 4).argmax(axis=1)
    for label in range(4):
        for other in range(4):
            assert table[label, other] == ((labels == label) & (found == other)).sum()


def test_the_worst_are_those_of_the_least_margin(scores):
    outputs, labels = scores
    positions = np.arange(100, 140)
    rows = worst(outputs, labels, positions)
    margins = [
        y[label] - max(value for n, value in enumerate(y) if n != label)
        for y, label in zip(outputs.reshape(40, 4).tolist(), labels, strict=True)
    ]
    order = sorted(range(40), key=lambda n: margins[n])[:WORST]
    assert [row["sample"] for row in rows] == [100 + n for n in order]
    for row, n in zip(rows, order, strict=True):
        assert row["margin"] == margins[n]
        assert row["label"] == labels[n]
        assert (row["found"] == row["label"]) == (row["margin"] > 0)


def test_numbers_are_judged_by_their_error(rng):
    outputs, labels = rng.normal(size=(2, 12, 3))
    rows = worst(outputs, labels, np.arange(12))
    errors = np.abs(outputs - labels).mean(axis=1)
    assert [row["error"] for row in rows] == sorted(errors, reverse=True)[:WORST]
    assert confusion(outputs, labels) is None


def test_what_cannot_be_told_is_left_out(scores):
    outputs, labels = scores
    assert worst(outputs[:, :1], labels, np.arange(40)) == []  # classes already
    assert worst(outputs, labels, np.arange(20)) == []  # of steps, not of samples


def test_nats_are_those_of_a_softmax(rng):
    """Of every label, whatever is added to the scores of a step."""
    outputs, labels = rng.normal(0, 3, (40, 5, 1)), rng.integers(0, 5, (40, 1))
    shares = np.exp(outputs[..., 0])
    shares /= shares.sum(axis=1, keepdims=True)
    expected = -np.log(shares[np.arange(40), labels[:, 0]]).mean()
    assert nats(outputs, labels) == pytest.approx(expected, rel=1e-12)
    assert nats(outputs + 1000 * rng.normal(size=(40, 1, 1)), labels) == pytest.approx(expected)
    assert nats(np.zeros((40, 5)), labels) == pytest.approx(np.log(5))


def test_what_is_no_score_of_classes_has_no_nats(rng):
    labels = rng.integers(0, 5, 40)
    assert nats(np.eye(5)[labels], labels) is None
    assert nats(rng.normal(size=(40, 1)), labels) is None
    assert nats(rng.normal(size=(40, 5)), labels - 1) is None
    assert nats(rng.normal(size=(40, 4)), labels) is None
    assert nats(rng.normal(size=(40, 5)), labels.astype(np.float64)) is None
