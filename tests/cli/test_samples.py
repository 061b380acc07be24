import numpy as np
import pytest
from cli_cases import SAMPLES


def save_inputs(**arrays):
    def write(folder):
        np.savez(folder / "wrong.npz", **arrays)
        return folder / "wrong.npz"

    return write


def not_an_archive(folder):
    (folder / "wrong.npz").write_text("1, 2, 3\n")
    return folder / "wrong.npz"


def half_an_archive(folder):
    raw = SAMPLES.read_bytes()
    (folder / "wrong.npz").write_bytes(raw[: len(raw) // 2])
    return folder / "wrong.npz"


GOOD = np.full((10, 1, 6, 6), 0.5)


WRONG_SAMPLES = {
    "missing": (lambda folder: folder / "nope.npz", r"sample file .*nope\.npz does not exist"),
    "not an npz": (
        not_an_archive,
        r"wrong\.npz is not an \.npz or \.npy file.*; write it with numpy.savez",
    ),
    "truncated": (half_an_archive, r"wrong\.npz is not an \.npz or \.npy file"),
    "NaN": (
        save_inputs(inputs=np.where(np.arange(10)[:, None, None, None] == 3, np.nan, GOOD)),
        r"wrong\.npz: array 'inputs' has NaN or infinity in sample 3",
    ),
    "infinity": (save_inputs(inputs=GOOD * np.inf), "in sample 0"),
    "wrong shape": (
        save_inputs(inputs=np.ones((10, 6, 6, 1))),
        r"wrong\.npz: array 'inputs' has shape \[10, 6, 6, 1\], but the model takes \[N, 1, 6, 6\]",
    ),
    "no inputs": (
        save_inputs(pixels=GOOD),
        r"wrong\.npz: no array 'image'; it holds pixels; store 'image' \(or 'inputs'\)",
    ),
    "empty": (save_inputs(inputs=GOOD[:0]), r"array 'inputs' has no samples"),
    "fewer labels": (
        save_inputs(inputs=GOOD, labels=np.zeros(9, int)),
        r"different numbers of samples: \[9, 10\]",
    ),
}


@pytest.mark.parametrize(("make", "match"), WRONG_SAMPLES.values(), ids=WRONG_SAMPLES)
def test_wrong_samples_are_refused(make, match, refused, tiny, built, tmp_path):
    samples, model = make(tmp_path), tiny / "tiny.nnef.tgz"
    refused(
        "build", model, "--board", "icebreaker", "--calibrate", samples, "--out", tmp_path / "out",
        match=match,
    )  # fmt: skip
    refused("quantize", model, "--calibrate", samples, "-o", tmp_path / "q.nnef.tgz", match=match)
    refused("sim", built, "--samples", samples, match=match)
    refused("compare", built, "--samples", samples, match=match)
    refused("run", built, "--input", samples, "--output", tmp_path / "y.npz", match=match)


@pytest.mark.verilator
@pytest.mark.parametrize("labels", [np.full(10, 4), np.full(10, -1)])
def test_labels_beyond_the_classes_are_refused(labels, refused, built, tmp_path):
    np.savez(tmp_path / "s.npz", inputs=GOOD, labels=labels)
    refused(
        "compare", built, "--samples", "s.npz",
        match=rf"has classes {labels[0]} to {labels[0]}, but the model gives 4; give .* 0 to 3",
    )  # fmt: skip


def test_labels_of_another_shape_are_refused(refused, built, tmp_path):
    np.savez(tmp_path / "s.npz", inputs=GOOD, labels=np.zeros((10, 3)))
    refused(
        "compare", built, "--samples", tmp_path / "s.npz",
        match=r"s\.npz: array 'labels' has shape \[10, 3\], 3 per sample; give one value per",
    )  # fmt: skip
