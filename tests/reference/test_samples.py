import re

import numpy as np
import pytest
from recurrent_graphs import gru, looped, onnx_layer

from nnef_hw.errors import SampleError
from nnef_hw.frontend import load
from nnef_hw.samples.samples import Samples, load_samples, spread_order
from nnef_hw.samples.scoring import Score, labelled, score
from nnef_hw.testing import GraphBuilder


def make_graph(*names):
    builder = GraphBuilder()
    for name in names:
        builder.input(name, (1, 3, 2))
    builder.op("relu", names[0])
    return builder.build()


@pytest.fixture
def write(tmp_path):
    def write_(**arrays):
        np.savez(tmp_path / "s.npz", **arrays)
        return tmp_path / "s.npz"

    return write_


def test_inputs_by_either_name(write, rng):
    x, labels = rng.random((7, 3, 2)), np.arange(7) % 6
    for name in ("inputs", "image"):
        samples = load_samples(write(**{name: x, "labels": labels}), make_graph("image"))
        np.testing.assert_array_equal(samples.inputs["image"], x)
        np.testing.assert_array_equal(samples.labels, labels)
        assert len(samples) == 7


def test_several_inputs_by_name(write, rng):
    a, b = rng.random((2, 4, 3, 2))
    samples = load_samples(write(a=a, b=b), make_graph("a", "b"))
    np.testing.assert_array_equal(samples.inputs["b"], b)
    assert samples.labels is None


GOOD = np.zeros((4, 3, 2))
BAD = {
    "missing": ({"pixels": GOOD}, "no array 'x'; it holds pixels; store 'x' (or 'inputs')"),
    "shape": ({"x": np.zeros((4, 3, 3))}, "has shape [4, 3, 3], but the model takes [N, 3, 2]"),
    "rank": ({"x": np.zeros((3, 2))}, "has shape [3, 2], but the model takes [N, 3, 2]"),
    "empty": ({"x": np.zeros((0, 3, 2))}, "array 'x' has no samples"),
    "nan": ({"x": np.where(np.arange(4) == 2, np.nan, 0)[:, None, None] + GOOD}, "in sample 2"),
    "infinity": ({"x": GOOD - np.inf}, "array 'x' has NaN or infinity in sample 0"),
    "text": ({"x": np.full((4, 3, 2), "a")}, "holds <U1, not numbers"),
    "counts": ({"x": GOOD, "labels": np.arange(3)}, "different numbers of samples: [3, 4]"),
    "labels": ({"x": GOOD, "labels": np.full(4, np.nan)}, "array 'labels' has NaN"),
    "objects": ({"x": np.array([None, 1])}, "is not an .npz or .npy file of plain arrays"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_arrays_are_refused(case, write):
    arrays, message = case
    with pytest.raises(SampleError, match=re.escape(message)):
        load_samples(write(**arrays), make_graph("x"))


def test_sequences_of_another_length_than_a_loop(write, tmp_path):
    pytest.importorskip("onnx")
    symbolic = onnx_layer("GRU", tmp_path / "gru.onnx", steps="T")
    with pytest.raises(SampleError, match=r"its loop takes 5 steps: .* --dim x\.1=7"):
        load_samples(write(x=np.zeros((4, 7, 3))), looped(5))
    with pytest.raises(SampleError, match=r"its loop takes 1 step: .* --dim x\.0=7"):
        load_samples(write(x=np.zeros((4, 7, 1, 3))), load(symbolic))
    with pytest.raises(SampleError, match=r"the model takes \[N, 5, 3\]$"):
        load_samples(write(x=np.zeros((4, 5, 2))), looped(5))


def test_what_may_be_steps_or_sequences_is_said(write, caplog):
    """A batch extent of one reads as an axis of steps."""
    lone = load_samples(write(x=np.zeros((4, 1, 3))), gru())
    assert (lone.inputs["x"].shape, lone.is_lone) == ((1, 4, 3), True)
    assert "taken for one sequence of 4 steps; 4 sequences of one step have shape [4, 1, 1, 3]" in (
        caplog.text
    )
    caplog.clear()
    several = load_samples(write(x=np.zeros((4, 1, 1, 3))), gru())
    assert (several.inputs["x"].shape, several.is_lone) == ((4, 1, 3), False)
    assert load_samples(write(x=np.zeros((4, 3))), gru()).is_lone
    assert not caplog.text


def test_lone_inputs_do_not_serve_several_graph_inputs(write):
    with pytest.raises(SampleError, match="no array 'a'"):
        load_samples(write(inputs=GOOD), make_graph("a", "b"))


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04broken"], ids=["empty", "text", "zip"]
)
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "s.npz"
    path.write_bytes(content)
    with pytest.raises(SampleError, match=r"s\.npz is not an \.npz or \.npy file"):
        load_samples(path, make_graph("x"))


def test_an_absent_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(SampleError, match=r"none\.npz does not exist"):
        load_samples(tmp_path / "none.npz", make_graph("x"))
    with pytest.raises(SampleError, match="cannot be read"):
        load_samples(tmp_path, make_graph("x"))


def test_a_single_array_is_the_input(tmp_path):
    np.save(tmp_path / "s.npy", GOOD)
    samples = load_samples(tmp_path / "s.npy", make_graph("x"))
    np.testing.assert_array_equal(samples.inputs["x"], GOOD)
    assert samples.labels is None


@pytest.mark.parametrize(
    ("count", "calibration", "evaluation"),
    [
        (1, 1, 1), (2, 2, 2), (49, 49, 49),  # few
        (50, 40, 10), (60, 48, 12), (75, 50, 25), (98, 49, 49),
        (100, 50, 50), (150, 50, 100), (249, 62, 187), (250, 50, 200),
        (1000, 200, 800), (5000, 200, 4800),
    ],
)  # fmt: skip
def test_split(count, calibration, evaluation):
    samples = Samples({"x": np.arange(count)[:, None]}, np.arange(count))
    first, others = samples.split()
    assert (len(first), len(others)) == (calibration, evaluation)
    assert first.labels[0] == 0
    assert others.labels[-1] == count - 1
    assert len(others.labels) == evaluation
    assert samples.are_few == (count < 50)
    masks = samples.calibration_mask(), samples.evaluation_mask()
    assert [mask.sum() for mask in masks] == [calibration, evaluation]
    assert (masks[0] | masks[1]).all()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 20, 1032])
def test_every_beginning_of_the_order_is_spread_evenly(count):
    order = spread_order(count)
    assert sorted(order) == list(range(count))
    assert order[0] == 0
    for used in range(1, count + 1):
        places = np.sort(order[:used])
        gaps = np.diff([*places, count])
        assert gaps.max() <= 4 * count / used


def test_integer_labels_give_the_accuracy():
    outputs = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    assert score(outputs, np.array([1, 0, 0, 0])) == Score("accuracy", 0.75)
    assert score(np.array([[3], [1]]), np.array([3, 2])) == Score("accuracy", 0.5)


def test_float_labels_give_the_mean_absolute_error():
    assert score(np.array([[1.0], [2.0]]), np.array([1.5, 2.5])) == Score("mae", 0.5)


@pytest.mark.parametrize("labels", [np.arange(3), np.arange(3.0)], ids=["integer", "float"])
def test_labels_of_another_shape_are_refused(labels):
    with pytest.raises(SampleError, match=re.escape("labels have shape [3]")):
        score(np.zeros((2, 2)), labels)


def test_sequences_of_a_network_with_states(write, rng):
    x, labels = rng.random((6, 4, 3)), np.arange(6) % 2
    graph = gru()
    samples = load_samples(write(x=x, labels=labels), graph)
    assert len(samples) == 6
    assert [len(part) for part in samples.split()] == [6, 6]
    y = rng.random((6, 4, 2))
    outputs, expected = labelled(graph, y, samples.labels)
    np.testing.assert_array_equal(outputs, y[:, -1])
    np.testing.assert_array_equal(expected, labels)

    steps = load_samples(write(x=x, labels=np.arange(24).reshape(6, 4) % 2), graph)
    outputs, expected = labelled(graph, y, steps.labels)
    np.testing.assert_array_equal(outputs, y.reshape(24, 2))
    np.testing.assert_array_equal(expected.ravel(), np.arange(24) % 2)


def test_one_sequence_needs_no_axis(write, rng):
    x = rng.random((4, 3))
    samples = load_samples(write(x=x, labels=np.array([0, 1, 0, 1])), gru())
    assert samples.is_lone
    np.testing.assert_array_equal(samples.inputs["x"], x[None])
    outputs, expected = labelled(gru(), x[None, :, :2], samples.labels)
    np.testing.assert_array_equal(outputs, x[:, :2])
    np.testing.assert_array_equal(expected.ravel(), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((5, 4, 2))}, r"the model takes \[N, T, 3\], or \[T, 3\] of one sequence"),
        ({"x": np.zeros((5, 0, 3))}, "has no samples"),
        (
            {"x": np.zeros((5, 4, 3)), "labels": np.zeros((5, 3), int)},
            r"'labels' has shape \[5, 3\], 3 per sample",
        ),
    ],
)
def test_wrong_sequences(write, arrays, message):
    with pytest.raises(SampleError, match=message):
        load_samples(write(**arrays), gru())
